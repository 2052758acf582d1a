//! Peer: its state machine, and the octets that belong to it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64};

use mpjdev_buffer::{Slab, SlabSource};
use mpjdev_proto::datagram::reliable::connection::Connection;
use mpjdev_proto::datagram::reliable::message_rx::ArrivalId;
use mpjdev_proto::datagram::reliable::message_tx::Cancel;
use mpjdev_proto::datagram::reliable::time::Nanos;
use mpjdev_sys::sync::{LockRank, Mutex, MutexGuard};

use super::gso::Outgoing;
use super::placement::{Expected, HEAD_LEN};
use super::prefix::Prefix;
use super::retransmit_buffer::Store;
use super::session_state::{Lost, SessionState};
use super::timers::NEVER;
use crate::Header;
use crate::net::incoming_message::IncomingMessage;

/// Messages that leave one by one while the rank does nothing but send.
const BURST: u32 = 1;
/// Octets that leave at once, without waiting for more.
const TOGETHER_LEN: usize = 4 << 10;
/// Messages that leave at once: their receiver takes them while the next ones are sent.
const TOGETHER: u32 = 16;

/// Peer of a rank: its address, its state machine, and the octets of its messages.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) rank: u32,
    pub(super) address: SocketAddr,
    /// Whether its packets have a checksum.
    pub(super) is_checked: bool,
    /// Octets of a message to it that leave before it is matched.
    pub(super) eager_len: usize,
    /// Most octets of a message from it that arrive before it is matched.
    pub(super) eager_max: usize,
    session: Mutex<PeerSession>,
    /// Time of its next timer.
    pub(super) next_timeout: AtomicU64,
    /// Messages wait for others to leave with them, or for the next poll.
    pub(super) has_waiting: AtomicBool,
    /// The peer has announced the end of its packets.
    pub(super) has_finished: AtomicBool,
}

/// State machine of a peer, and the octets that belong to it.
#[derive(Debug)]
pub(super) struct PeerSession {
    pub(super) connection: Connection,
    pub(super) store: Store,
    pub(super) outgoing: Outgoing,
    /// Arriving messages that are not complete, by destination id.
    pub(super) arrivals: HashMap<u64, NumberedMessage>,
    /// The eager message that arrives in parts now, unmatched.
    pub(super) eager: Option<Eager>,
    /// The fragment that is expected next.
    pub(super) expected: Option<Expected>,
    /// Matched octets to report to the peer.
    pub(super) pending_credit: Option<u64>,
    /// Reason why the job has failed, to report to the peer.
    pub(super) failure: Option<String>,
    /// Heartbeat that the peer has requested: the number of calls of the program.
    pub(super) alive: Option<u64>,
    /// Octets of the messages that wait for others to leave with them, and the number of messages.
    pub(super) waiting: (usize, u32),
    /// The rank's write round in which messages were sent last, and their number.
    burst: (u32, u32),
    /// A send found no room.
    pub(super) has_refused: bool,
    pub(super) state: SessionState,
    /// Reason why nothing can be sent to the peer, until the next poll closes the session.
    pub(super) fault: Option<String>,
    pub(super) tally: Tally,
}

/// Counts of messages; the state machine counts packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Messages of the program that were sent, and that were received.
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Octets of these messages.
    pub(super) data_sent: u64,
    pub(super) data_received: u64,
    /// Octets copied in addition to the system's copy.
    pub(super) copied: u64,
}

/// A message that arrives in parts before it is matched.
#[derive(Debug)]
pub(super) struct Eager {
    pub(super) id: ArrivalId,
    pub(super) header: Header,
    pub(super) slab: Slab,
    pub(super) len: usize,
    /// No octet from here on has arrived.
    pub(super) end: usize,
}

/// A message that is numbered, or whose octets were requested.
#[derive(Debug)]
pub(super) struct NumberedMessage {
    pub(super) arriving: IncomingMessage<ArrivalId>,
    /// No octet from here on has arrived.
    pub(super) end: usize,
    /// Octets that have arrived from the start on.
    pub(super) prefix: Prefix,
}

impl NumberedMessage {
    /// A message of which the first `len` octets have arrived.
    pub(super) fn new(arriving: IncomingMessage<ArrivalId>, len: usize) -> NumberedMessage {
        NumberedMessage { arriving, end: len, prefix: Prefix::new(len) }
    }
}

impl Peer {
    pub(super) fn new(
        rank: u32,
        address: SocketAddr,
        [eager_len, eager_max]: [usize; 2],
        connection: Connection,
        outgoing: Outgoing,
    ) -> Peer {
        let is_checked = connection.settings().checked;
        let session = PeerSession {
            connection,
            store: Store::default(),
            outgoing,
            arrivals: HashMap::new(),
            eager: None,
            expected: None,
            pending_credit: None,
            failure: None,
            alive: None,
            waiting: (0, 0),
            burst: (0, 0),
            has_refused: false,
            state: SessionState::Open,
            fault: None,
            tally: Tally::default(),
        };
        Peer {
            rank,
            address,
            is_checked,
            eager_len,
            eager_max,
            session: Mutex::new(LockRank::SendSide, session),
            next_timeout: AtomicU64::new(NEVER),
            has_waiting: AtomicBool::new(false),
            has_finished: AtomicBool::new(false),
        }
    }

    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn session(&self) -> MutexGuard<'_, PeerSession> {
        self.session.lock()
    }
}

impl PeerSession {
    /// Whether the message sent in this write round of the rank may wait for others to leave with. A few have
    /// left one by one before.
    pub(super) fn may_wait(&mut self, round: u32) -> bool {
        let before = if self.burst.0 == round { self.burst.1 } else { 0 };
        self.burst = (round, before.saturating_add(1));
        before >= BURST && self.waiting.0 < TOGETHER_LEN && self.waiting.1 < TOGETHER
    }

    /// Whether nothing is sent to the peer any more; later messages are dropped.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.state, SessionState::Closed(_))
    }

    /// Whether sent data leaves only after an answer of the peer.
    pub(super) fn has_rest(&self) -> bool {
        !self.is_closed() && (self.store.unanswered() > 0 || self.connection.has_queued())
    }

    /// Records that a receive has matched a numbered message. `wanted` octets of a long one are wanted.
    /// Datagrams have at most `len_max` octets.
    pub(super) fn matched(&mut self, token: u64, wanted: u64, source: &dyn SlabSource, len_max: usize) {
        let Some(NumberedMessage { arriving, end, .. }) = self.arrivals.get_mut(&token) else { return };
        if self.connection.matched(arriving.id).is_err() {
            return;
        }
        if !arriving.is_long() {
            self.arrivals.remove(&token);
            return;
        }
        arriving.make_room(wanted, source);
        let settings = self.connection.settings();
        if settings.checked {
            return;
        }
        let ids = (settings.ours, token as u32);
        let (at, len_max) = (*end, len_max.saturating_sub(HEAD_LEN));
        self.expected = arriving
            .room()
            .filter(|_| !self.connection.settings().checked)
            .and_then(|slab| Expected::new(ids, slab, at, arriving.len(), len_max));
    }

    /// Accepts no more messages, and cancels the unmatched ones, since no request waits for them any more.
    pub(super) fn finish(&mut self, deadline: Nanos) {
        for token in self.store.unanswered_tokens() {
            if self.connection.cancel(token) == Cancel::Done {
                self.store.answer(token);
                self.store.release(token);
            }
        }
        self.connection.close(deadline);
        self.state = self.state.finished();
    }

    /// Stops sending, and drops all octets. If the peer's machine is unreachable, unacked octets are lost.
    /// Otherwise the peer itself has ended and takes nothing more.
    pub(super) fn close(&mut self, is_unreachable: bool) {
        let (messages, octets) = if is_unreachable { self.store.held_messages() } else { (0, 0) };
        self.state = self.state.closed(Lost { messages, octets });
        self.connection.abort();
        self.store.clear();
        self.outgoing.clear();
        self.arrivals.clear();
        self.eager = None;
        self.expected = None;
        self.pending_credit = None;
        self.failure = None;
        self.alive = None;
    }
}
