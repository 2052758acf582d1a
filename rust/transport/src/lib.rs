//! Transports, which move packets between ranks: the interface that they share, and each of them. Matching is above them.
//!
//! The pure parts are elsewhere: the format in `mpjdev-buffer`, the protocols in `mpjdev-proto`. This crate owns the clock and
//! how a thread waits.
#![forbid(unsafe_code)]

pub mod config;
#[cfg(not(loom))]
pub mod hybrid;
pub mod local;
#[cfg(not(loom))]
pub mod net;
pub mod pool;
#[cfg(not(loom))]
mod progress;
#[cfg(not(loom))]
pub mod room;
#[cfg(not(loom))]
pub mod shm;
pub mod stats;
#[cfg(not(loom))]
pub mod tcp;
#[cfg(not(loom))]
pub mod udp;
pub mod waiting;

use std::fmt::Debug;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use mpjdev_buffer::{Message, Slab};

use crate::stats::OverDatagrams;
#[cfg(not(loom))]
pub use progress::Progress;
#[cfg(not(loom))]
pub(crate) use progress::goes_on;

/// What a packet is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A message; nobody waits to hear of it.
    #[default]
    Eager,
    /// A message whose sender waits until it is matched: synchronous mode, or no credit left. `token` is the
    /// sender's request.
    Synchronous,
    /// A synchronous message of which next to nothing leaves before it is matched. Only for ranks whose messages are
    /// copied.
    Announced,
    /// A synchronous message was matched. `token` is the sender's request; where the message has only begun to arrive, `context`
    /// says how many octets of it are wanted.
    Matched,
    /// Coming in only: the whole of a message that had begun to arrive when it was matched, by its `token`.
    Rest,
    /// Coming in only: a message was taken back by its sender, by its `token`.
    Withdrawn,
}

impl Kind {
    /// Whether its receiver answers it when it is matched.
    #[inline]
    pub fn is_answered(self) -> bool {
        matches!(self, Kind::Synchronous | Kind::Announced)
    }
}

/// What every packet carries.
#[derive(Clone, Copy, Debug, Default)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// Context of the message.
    pub context: u64,
    /// Tag of the message.
    pub tag: i32,
    /// Request of the sender, where the kind has one.
    pub token: u64,
}

/// The octets of a packet by reference.
#[derive(Clone, Debug)]
pub enum Payload {
    /// A logical message with both its payloads.
    Whole(Message),
    /// One physical message: the first so many octets of a slab.
    Physical(Slab, usize),
    /// One physical message, and its headers beside it.
    Headed(Slab, usize, [[u8; 8]; 3]),
    /// A logical message in two: what would be its two physical messages.
    Parts((Slab, usize), (Slab, usize)),
    /// One physical message of which only the first octets are here, `here` of them in this rank's memory. All of it comes
    /// when it is matched.
    Begun {
        /// Octets of the message.
        len: usize,
        /// Octets of this rank's memory that it holds.
        here: usize,
    },
    /// One physical message that is longer than was wanted: its primary and its secondary header, if they were there.
    Cut {
        /// Octets of the message.
        len: usize,
        /// Both headers.
        headers: Option<[[u8; 8]; 2]>,
    },
}

impl Payload {
    /// Octets of the packet.
    pub fn len(&self) -> usize {
        match self {
            Payload::Whole(message) => message.logical_len(),
            Payload::Physical(_, len) | Payload::Headed(_, len, _) => *len,
            Payload::Parts(first, second) => first.1 + second.1,
            Payload::Begun { len, .. } | Payload::Cut { len, .. } => *len,
        }
    }

    /// Octets of memory that the packet keeps from other uses.
    pub fn held_len(&self) -> usize {
        match self {
            Payload::Whole(message) => message.held_len(),
            Payload::Physical(slab, _) | Payload::Headed(slab, ..) => slab.len(),
            Payload::Parts(first, second) => first.0.len() + second.0.len(),
            Payload::Begun { here, .. } => *here,
            Payload::Cut { .. } => 0,
        }
    }

    /// The one physical message, or the first of a logical one: its slab and its octets there.
    /// None while it is not here.
    pub fn into_physical(self) -> Option<(Slab, usize)> {
        match self {
            Payload::Whole(message) => Some((message.first_slab().clone(), message.first_len())),
            Payload::Physical(slab, len) | Payload::Headed(slab, len, _) | Payload::Parts((slab, len), _) => {
                Some((slab, len))
            }
            Payload::Begun { .. } | Payload::Cut { .. } => None,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The octets of a packet on their way out.
#[derive(Clone, Copy, Debug)]
pub enum Outgoing<'a> {
    /// None.
    Nothing,
    /// These, borrowed: the transport copies them or takes a reference.
    Payload(&'a Payload),
    /// These, borrowed, of a logical message.
    Message(&'a Message),
}

/// Whether a logical message is copied into the packet, and not passed by reference.
#[inline(always)]
pub fn goes_inline(message: &Message, inline_max: usize) -> bool {
    message.first_len() <= inline_max && !message.is_split()
}

/// The octets of a packet coming in.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// None.
    Nothing,
    /// The first `len` octets of these words, which are good for the length of the call: one physical message. Its sender may
    /// still change them.
    Inline(&'a [AtomicU64], usize),
    /// A reference, to be taken.
    Reference(Payload),
    /// They found no memory.
    Lost(mpjdev_buffer::SlabError),
}

/// What a rank that finishes has sent to another one, and the other's machine has not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unacked {
    /// The other rank.
    pub rank: u32,
    /// Number of messages; none where a stream of octets is acknowledged.
    pub messages: Option<usize>,
    /// Octets, with headers where a stream is acknowledged.
    pub octets: u64,
}

/// What is known about a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// It may send and receive.
    Alive,
    /// It has finished: everything it sent is on its way or here.
    Finished,
    /// It is dead, for this reason.
    Failed(String),
}

/// The sending side of a rank's transport, and its sleep.
pub trait Wire: Debug + Send + Sync {
    /// Sends a packet to a rank of the world, or says that its queue is full: then this rank is woken when there is room.
    /// Does not block. A message whose sender waits until it is matched goes by reference, whatever its length.
    fn try_send(&self, dest: u32, header: Header, body: Outgoing<'_>) -> bool;

    /// Nothing of what found no room at a rank waits for it any more.
    fn forget_room(&self, dest: u32) {
        let _ = dest;
    }

    /// Whether messages of this rank and to it are copied, as physical messages, so that they use the receiver's memory before
    /// they are matched.
    fn is_remote(&self, rank: u32) -> bool {
        let _ = rank;
        false
    }

    /// Whether a rank is not one of ours: nobody there counts credit, knows pairing numbers or answers but to IMPI.
    fn is_foreign(&self, rank: u32) -> bool {
        let _ = rank;
        false
    }

    /// Octets of a message to a remote rank that leave all before it is matched; a longer one is answered when it is.
    fn eager_max(&self, dest: u32) -> usize {
        let _ = dest;
        usize::MAX
    }

    /// Whether what a foreign rank sends fills more memory than it may: then it is asked to send no more.
    fn hold_back(&self, source: u32, full: bool) {
        let _ = (source, full);
    }

    /// Whether messages in this memory go by reference as they are; else they are copied first.
    fn carries(&self, slab: &Slab) -> bool {
        let _ = slab;
        true
    }

    /// Whether something may have arrived for this rank; costs next to nothing.
    fn is_ready(&self) -> bool;

    /// Sleeps until something arrives, somebody rings, or the time is over, unless `ready`.
    fn sleep(&self, most: Duration, ready: &mut dyn FnMut() -> bool);

    /// Whether ranks have helpers, which go on for them when they are called.
    fn has_helpers(&self) -> bool {
        false
    }

    /// Calls the helper of a rank, which goes on once more, asleep or not.
    fn call(&self, rank: u32) {
        let _ = rank;
    }

    /// Wakes the thread of this rank that sleeps here.
    fn ring(&self);

    /// A number that changes whenever the state of a rank does.
    fn epoch(&self) -> u32;

    /// What is known about a rank of the world.
    fn peer(&self, rank: u32) -> PeerState;

    /// The rank whose failure ends the whole job, and why; none while there is none.
    fn abort(&self) -> Option<(u32, String)>;

    /// None when all that this rank was given to send has left; else a number that changes while it leaves. A send may be
    /// done before.
    fn leaving(&self) -> Option<u64> {
        None
    }

    /// Tells everybody that this rank has finished. Gives what was sent to ranks that are there and that their machines had not
    /// acknowledged when this gave up.
    fn finish(&self) -> Vec<Unacked>;

    /// Ends the job: every operation of every rank fails from now on.
    fn fail(&self, why: &str);

    /// Reports to the launcher, where it cannot know by itself, that a rank has failed that this rank was told of by another one.
    fn blame(&self, rank: u32) {
        let _ = rank;
    }

    /// Octets that `dest` has matched of what this rank sent it, a running number that may lag behind.
    fn matched_by(&self, dest: u32) -> u64;

    /// Tells `source` how many octets of what it sent this rank has matched, a running number.
    fn tell_matched(&self, source: u32, octets: u64);

    /// Notes that this rank is alive and may still receive.
    fn show_life(&self);

    /// A number that changes while a rank shows life.
    fn life(&self, rank: u32) -> u64;

    /// What people call this transport.
    fn name(&self) -> &'static str;

    /// What has been counted so far, where messages go by datagrams. Takes locks, each for a moment.
    fn datagrams(&self) -> Option<OverDatagrams> {
        None
    }
}

/// A packet is one that its sender must not send: what it has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAllowed(pub &'static str);

/// Takes a packet: its source, what it carries, its octets.
pub type Each<'a> = dyn FnMut(u32, Header, Incoming<'_>) -> Result<(), NotAllowed> + 'a;

/// The receiving side of a rank's transport.
pub trait Inbox: Debug + Send {
    /// Hands the packets that have arrived to `each`, in order per source, at most `most`; gives how many. A source that
    /// sends what it must not is not listened to any more, where sources are not trusted.
    fn receive(&mut self, most: usize, each: &mut Each<'_>) -> usize;

    /// From now on polls ranks that have finished or died although no hint says that they have sent something: hints may be
    /// lost, and nobody repeats those of a rank that is gone.
    fn poll_gone(&mut self) {}
}
