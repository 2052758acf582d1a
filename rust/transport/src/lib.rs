//! Transports, which move packets between ranks: their common interface, and each of them. Matching is done
//! in the layer above.
//!
//! The pure parts are in other crates: the format in `mpjdev-buffer`, the protocols in `mpjdev-proto`. This
//! crate owns the clock and the waiting of threads.
#![forbid(unsafe_code)]

pub mod config;
#[cfg(not(loom))]
pub mod hybrid;
pub mod local;
#[cfg(not(loom))]
mod loopback;
#[cfg(not(loom))]
pub mod net;
pub mod pool;
#[cfg(not(loom))]
mod progress;
#[cfg(not(loom))]
pub mod room;
#[cfg(not(loom))]
pub mod shm;
pub mod slots;
pub mod stats;
mod status_reporter;
#[cfg(not(loom))]
pub mod tcp;
#[cfg(not(loom))]
pub mod udp;
pub mod wait;

use std::fmt::Debug;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use mpjdev_buffer::{Message, Slab};

use crate::slots::Slots;
use crate::stats::UdpStats;
#[cfg(not(loom))]
pub use progress::Progress;
pub use status_reporter::StatusReporter;

/// Kind of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A message. No request of the sender waits for its match.
    #[default]
    Eager,
    /// A message whose sender waits for its match: synchronous mode, or no credit left. `token` is the
    /// sender's request.
    Synchronous,
    /// A synchronous message: only its first octets are sent before the match. Only for ranks whose messages
    /// are copied.
    Rts,
    /// The answer to a matched synchronous message. `token` is the sender's request. If the message has only
    /// begun to arrive, `context` is the number of octets wanted.
    MatchAck,
    /// Received only: more octets of a message that had begun to arrive when it was matched, by its `token`.
    /// The payload counts them.
    RendezvousPart,
    /// Received only: the whole of a message that had begun to arrive when it was matched, by its `token`.
    RendezvousData,
    /// Received only: the sender has cancelled a message, by its `token`.
    Cancelled,
}

impl Kind {
    /// Whether the receiver answers the packet when it is matched.
    #[inline]
    pub fn is_answered(self) -> bool {
        matches!(self, Kind::Synchronous | Kind::Rts)
    }
}

/// Header of every packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Header {
    /// Kind of the packet.
    pub kind: Kind,
    /// Context of the message.
    pub context: u64,
    /// Tag of the message.
    pub tag: i32,
    /// Request of the sender, if the kind has one.
    pub token: u64,
}

/// The octets of a packet by reference.
#[derive(Clone, Debug)]
pub enum Payload {
    /// A logical message with both its payloads.
    Logical(Message),
    /// One physical message: the first octets of a slab, and their number.
    Physical(Slab, usize),
    /// One physical message, and its headers beside it.
    WithHeaders(Slab, usize, [[u8; 8]; 3]),
    /// A logical message as the slabs of its two physical messages.
    Split((Slab, usize), (Slab, usize)),
    /// One physical message of which only the first octets have arrived, `here` of them in this rank's
    /// memory. The rest arrives after the match.
    Partial {
        /// Octets of the message.
        len: usize,
        /// Octets of this rank's memory that it holds.
        here: usize,
        /// Its first 16 octets, if they have arrived.
        start: Option<[[u8; 8]; 2]>,
    },
    /// One physical message that is longer than wanted: its primary and its secondary header, if present.
    Truncated {
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
            Payload::Logical(message) => message.logical_len(),
            Payload::Physical(_, len) | Payload::WithHeaders(_, len, _) => *len,
            Payload::Split(first, second) => first.1 + second.1,
            Payload::Partial { len, .. } | Payload::Truncated { len, .. } => *len,
        }
    }

    /// Octets of memory that the packet keeps from other uses.
    pub fn held_len(&self) -> usize {
        match self {
            Payload::Logical(message) => message.held_len(),
            Payload::Physical(slab, _) | Payload::WithHeaders(slab, ..) => slab.len(),
            Payload::Split(first, second) => first.0.len() + second.0.len(),
            Payload::Partial { here, .. } => *here,
            Payload::Truncated { .. } => 0,
        }
    }

    /// The physical message, or the first one of a logical message: its slab and its octets there. `None`
    /// while it has not arrived.
    pub fn into_physical(self) -> Option<(Slab, usize)> {
        match self {
            Payload::Logical(message) => Some((message.first_slab().clone(), message.first_len())),
            Payload::Physical(slab, len)
            | Payload::WithHeaders(slab, len, _)
            | Payload::Split((slab, len), _) => Some((slab, len)),
            Payload::Partial { .. } | Payload::Truncated { .. } => None,
        }
    }

    /// Whether octets of the message are missing: its sender still packs it.
    pub fn is_incomplete(&self) -> bool {
        match self {
            Payload::Logical(message) => {
                message.is_packing() && message.packed_len() < Some(message.first_len())
            }
            Payload::WithHeaders(slab, len, _) => slab.is_packing() && slab.packed_len() < Some(*len),
            _ => false,
        }
    }

    /// Whether the packet has no octets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The octets of a packet to send.
#[derive(Clone, Copy, Debug)]
pub enum Outgoing<'a> {
    /// No octets.
    Nothing,
    /// A borrowed payload: the transport copies it or takes a reference.
    Payload(&'a Payload),
    /// A borrowed logical message: the transport copies it or takes a reference.
    Message(&'a Message),
}

/// Whether a logical message is copied into the packet, and not passed by reference.
#[inline(always)]
pub fn goes_inline(message: &Message, inline_max: usize) -> bool {
    message.first_len() <= inline_max && !message.is_split()
}

/// Whether a packet can hold a copy of a logical message beside a token. Such a message goes by reference if
/// the receiver can map its memory.
pub fn fits_with_token(message: &Message, inline_max: usize) -> bool {
    goes_inline(message, inline_max.saturating_sub(config::TOKEN_LEN))
}

/// The octets of a received packet.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// No octets.
    Nothing,
    /// The first `len` octets of these words: one physical message. They are valid for the length of the
    /// call, and the sender may still change them.
    Inline(&'a [AtomicU64], usize),
    /// A reference, which the receiver takes.
    Reference(Payload),
    /// There was no memory for the octets.
    Lost(mpjdev_buffer::SlabError),
}

/// Data that a finishing rank has sent to another one and that the other's machine has not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unacked {
    /// The other rank.
    pub rank: u32,
    /// Number of messages; `None` if a stream of octets is acknowledged.
    pub messages: Option<usize>,
    /// Octets, with headers if a stream is acknowledged.
    pub octets: u64,
}

/// State of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// It may send and receive.
    Alive,
    /// It has finished: all its packets are in flight or have arrived.
    Finished,
    /// It has failed, for this reason: a text, because it may come from another process.
    Failed(String),
}

/// Outcome of the attempt to send a short message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShortSend {
    /// It is sent.
    Sent,
    /// The prepaid credit does not suffice.
    Unpaid,
    /// It is not possible now; [`Transport::try_send`] may be.
    Unavailable,
}

/// The sending side of a rank's transport, and its sleep.
pub trait Transport: Debug + Send + Sync {
    /// Sends a packet to a rank of the world, without blocking. Returns false if its queue is full; this rank
    /// is then woken when there is room. A message whose sender waits for its match goes by reference,
    /// whatever its length.
    fn try_send(&self, dest: u32, header: Header, body: Outgoing<'_>) -> bool;

    /// Sends a short message eagerly to a rank that was sent to before: the first `len` octets of these
    /// words. Its credit charge was [prepaid](Self::prepay).
    fn try_send_short(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        words: &[AtomicU64],
        len: usize,
    ) -> ShortSend {
        let _ = (dest, context, tag, words, len);
        ShortSend::Unavailable
    }

    /// As [`try_send_short`](Self::try_send_short), for a message that is too long for it, and would be a
    /// loan. The copy is sent if it is faster, and if it leaves room for others in the queue.
    fn try_send_copy(&self, dest: u32, context: u64, tag: i32, words: &[AtomicU64], len: usize) -> ShortSend {
        let _ = (dest, context, tag, words, len);
        ShortSend::Unavailable
    }

    /// Adds octets that the caller has charged to the credit at a rank, for short messages.
    fn prepay(&self, dest: u32, octets: u64) {
        let _ = (dest, octets);
    }

    /// The slots for short vectors, if the ranks of this machine have them. All ranks of a job have them, or
    /// none has.
    fn slots(&self) -> Option<&dyn Slots> {
        None
    }

    /// Withdraws the request for room at a rank: no packet waits for it any more.
    fn cancel_room_request(&self, dest: u32) {
        let _ = dest;
    }

    /// Whether messages from and to this rank are copied, as physical messages, so that they use the
    /// receiver's memory before they are matched.
    fn is_remote(&self, rank: u32) -> bool {
        let _ = rank;
        false
    }

    /// Whether a rank is of another implementation: it counts no credit, uses no pairing numbers and answers
    /// only as IMPI requires.
    fn is_foreign(&self, rank: u32) -> bool {
        let _ = rank;
        false
    }

    /// Octets of a message to a remote rank that all leave before the match. A longer message is answered at
    /// its match.
    fn eager_max(&self, dest: u32) -> usize {
        let _ = dest;
        usize::MAX
    }

    /// Sets backpressure on a foreign rank, whose messages fill more memory than allowed if `full`.
    fn set_backpressure(&self, source: u32, full: bool) {
        let _ = (source, full);
    }

    /// Whether messages in this memory go by reference. Otherwise they are copied first.
    fn can_send_by_reference(&self, slab: &Slab) -> bool {
        let _ = slab;
        true
    }

    /// Octets from which a message to a remote rank may be sent before it is packed. It is a rendezvous. Its
    /// octets leave when they are packed: see [`send_packed`](Self::send_packed).
    fn ahead_from(&self, dest: u32) -> usize {
        let _ = dest;
        usize::MAX
    }

    /// Sends octets of matched messages to a remote rank that were packed since the last call. The caller is
    /// the thread that packs them.
    fn send_packed(&self, dest: u32) {
        let _ = dest;
    }

    /// Whether a packet may have arrived for this rank. This is a cheap poll.
    fn is_ready(&self) -> bool;

    /// Sleeps until a packet arrives, a thread wakes this one, or `most` has passed. Returns at once if
    /// `ready`.
    fn park(&self, most: Duration, ready: &mut dyn FnMut() -> bool);

    /// The processor on which the sender of a packet ran that has ended the last sleep here, if it is known.
    fn waker_processor(&self) -> Option<u32> {
        None
    }

    /// Whether ranks have progress threads, which drive progress when they are woken.
    fn has_progress_threads(&self) -> bool {
        false
    }

    /// Wakes the progress thread of a rank, which then drives progress once more, asleep or not.
    fn kick_progress_thread(&self, rank: u32) {
        let _ = rank;
    }

    /// Wakes the thread of this rank that sleeps here.
    fn wake(&self);

    /// A number that changes whenever the state of a rank does.
    fn epoch(&self) -> u32;

    /// The number of a rank's site, the same at all ranks.
    fn site_of(&self, rank: u32) -> u32 {
        let _ = rank;
        0
    }

    /// State of a rank of the world.
    fn peer(&self, rank: u32) -> PeerState;

    /// The rank whose failure ends the whole job, and the reason: a text, because it may come from another
    /// process. `None` without a failure.
    fn abort(&self) -> Option<(u32, String)>;

    /// `None` when all data of this rank are sent; otherwise a number that changes while they are being sent.
    /// A send may complete earlier.
    fn tx_pending(&self) -> Option<u64> {
        None
    }

    /// Notifies all ranks that this one has finished. Returns the data that the machines of running ranks had
    /// not acked at the deadline.
    fn finish(&self) -> Vec<Unacked>;

    /// Ends the job: every operation of every rank fails from now on. The reason is a text, because the
    /// program gives it and other processes get it.
    fn fail(&self, why: &str);

    /// Reports a failed rank, which another rank has named, to the launcher, if the launcher cannot see the
    /// failure itself.
    fn report_failed_peer(&self, rank: u32) {
        let _ = rank;
    }

    /// Octets from this rank that `dest` has matched: a running number that may lag behind.
    fn credits_returned_by(&self, dest: u32) -> u64;

    /// Reports to `source` the octets from it that this rank has matched: a running number.
    fn return_credit(&self, source: u32, octets: u64);

    /// Records a heartbeat: this rank is alive and may still receive.
    fn heartbeat(&self);

    /// Records that the program sends without driving progress. A progress thread does not take such a
    /// program for one that computes.
    fn note_send(&self) {}

    /// The heartbeat of a rank: a number that changes while the rank makes progress.
    fn heartbeat_of(&self, rank: u32) -> u64;

    /// Name of this transport for users.
    fn name(&self) -> &'static str;

    /// Statistics so far, if messages go by datagrams. Takes locks, each for a moment.
    fn datagrams(&self) -> Option<UdpStats> {
        None
    }
}

/// Error of a packet that its sender must not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolViolation {
    /// The sender had no credit left for the message.
    #[error("more messages than its credit allows")]
    Credit,
    /// The sender keeps as many messages past its credit as it may.
    #[error("more unmatched messages than may wait past its credit")]
    Unmatched,
}

/// Handler of a packet: its source, its header, its octets.
pub type PacketHandler<'a> = dyn FnMut(u32, Header, Incoming<'_>) -> Result<(), ProtocolViolation> + 'a;

/// Copies a short message, given its words and its number of octets; returns false for a message that it does
/// not take. The sender can still change the words.
pub type ShortTaker<'a> = dyn FnMut(&[AtomicU64], usize) -> bool + 'a;

/// The receiving side of a rank's transport.
pub trait PacketSource: Debug + Send {
    /// Passes at most `most` arrived packets to `each`, in order per source. Returns their number. A source
    /// that violates the protocol is ignored from then on, if sources are not trusted.
    fn receive(&mut self, most: usize, each: &mut PacketHandler<'_>) -> usize;

    /// Whether [`take_short`](Self::take_short) can take messages.
    fn takes_short(&self) -> bool {
        false
    }

    /// Polls for the next packet of one source, at most `polls` times, with a heartbeat. If it is an eager
    /// message of this context and tag with its octets in the packet, and they fit `to`, takes it: copies the
    /// octets and returns their number. Otherwise nothing has changed.
    fn take_short(
        &mut self,
        source: u32,
        context: u64,
        tag: i32,
        polls: u32,
        to: &[AtomicU64],
    ) -> Option<usize> {
        let _ = (source, context, tag, polls, to);
        None
    }

    /// As [`take_short`](Self::take_short), for a message that `take` copies and takes.
    fn take_short_with(
        &mut self,
        source: u32,
        context: u64,
        tag: i32,
        polls: u32,
        take: &mut ShortTaker<'_>,
    ) -> Option<usize> {
        let _ = (source, context, tag, polls, take);
        None
    }

    /// From now on also polls ranks that have finished or died, without a hint of theirs. Hints may be lost,
    /// and a rank that has ended repeats none.
    fn poll_ended(&mut self) {}
}
