//! Output of one channel: headers and small bodies from a staging buffer, large bodies from the messages
//! themselves.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Instant;

use mpjdev_buffer::octets::{copy_in, copy_words};
use mpjdev_buffer::{Slab, SlabSource};
use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::fini::FiniState;
use mpjdev_proto::impi::layout::HEADER_LEN;
use mpjdev_proto::impi::message_rx::ArrivalId;
use mpjdev_proto::impi::message_tx::Body;
use mpjdev_proto::impi::packet::Packet;
use mpjdev_proto::impi::pair::{Pair, Transmit};
use mpjdev_sys::memory::Memory;
use mpjdev_sys::stream::{self, PARTS_MAX, Part};

use super::channel_state::{Fault, TxState};
use crate::net::incoming_message::IncomingMessage;
use crate::net::packed_octets::{is_given_up, packed_of};

/// Octets of the staging buffer.
const STAGE_LEN: usize = 128 << 10;
/// Largest body that is copied to the staging buffer. A copy costs less than one more part of a system call.
const COPY_MAX: usize = 4 << 10;
/// Packets that leave one by one while the rank does nothing but send.
const BURST: u32 = 1;
/// Octets that leave at once, without waiting for more.
const TOGETHER_LEN: usize = 4 << 10;
/// Octets waiting for the socket at which no more are taken.
const WAITING_MAX: usize = 256 << 10;

/// A piece of the output, in order.
#[derive(Debug)]
enum Piece {
    /// Octets of the staging buffer.
    Staged(usize),
    /// Octets of a message.
    Referenced { slab: Slab, offset: usize, len: usize },
}

/// Session with one rank behind a channel.
#[derive(Debug)]
pub(super) struct PeerSession {
    pub(super) rank: u32,
    pub(super) is_foreign: bool,
    pub(super) pair: Pair,
    /// Messages with octets that are still to be handed over, by token.
    pub(super) sends: HashMap<u64, Slab>,
    /// Arriving messages that are not complete, by token.
    pub(super) arrivals: HashMap<u64, IncomingMessage<ArrivalId>>,
    /// Flow control of a foreign rank: whether its messages fill more memory than allowed, the number of
    /// packets that are acknowledged nevertheless, and the number of its long messages that are matched and
    /// in flight.
    is_full: bool,
    granted: i64,
    long_in_flight: usize,
    /// Matched octets to report to the rank.
    pub(super) pending_credit: Option<u64>,
    /// Reason why the job has failed, to report to the rank.
    pub(super) failure: Option<String>,
}

impl PeerSession {
    pub(super) fn new(rank: u32, is_foreign: bool, pair: Pair) -> PeerSession {
        let (sends, arrivals) = Default::default();
        let (is_full, granted, long_in_flight) = Default::default();
        let (pending_credit, failure) = (None, None);
        PeerSession {
            rank,
            is_foreign,
            pair,
            sends,
            arrivals,
            is_full,
            granted,
            long_in_flight,
            pending_credit,
            failure,
        }
    }

    /// Holds back ProtoAcks while memory is full. The rest of matched messages in flight must arrive,
    /// although other messages leave in turn with it. Therefore two packets are acknowledged for each packet
    /// of a rest, and at first as many as may be in flight.
    pub(super) fn set_backpressure(&mut self, is_full: bool) {
        self.is_full = is_full;
        self.granted = if self.long_in_flight > 0 { 2 * self.hiwater() } else { 0 };
        self.hold();
    }

    /// Counts a counted packet that has arrived.
    pub(super) fn note_counted(&mut self) {
        if self.is_full {
            self.granted -= 1;
            self.hold();
        }
    }

    /// Counts a long message that is matched.
    fn note_long(&mut self) {
        self.long_in_flight += 1;
        self.grant(2 * self.hiwater());
    }

    /// Whether a matched long message is incomplete. Its sender cannot have finished.
    pub(super) fn has_long_in_flight(&self) -> bool {
        self.long_in_flight > 0
    }

    /// Counts a part of a long message's rest, wanted or not.
    pub(super) fn note_rest(&mut self, last: bool, is_wanted: bool) {
        self.long_in_flight -= usize::from(last);
        self.grant(if is_wanted { 2 } else { 0 });
    }

    /// Grants acks. The cap bounds the memory of the other messages by the rests, however many are in flight.
    fn grant(&mut self, packets: i64) {
        if self.is_full {
            let most = if self.long_in_flight > 0 { 4 * self.hiwater() } else { 0 };
            self.granted = (self.granted + packets).min(most);
            self.hold();
        }
    }

    /// Whether data for the rank waits until it, or its system, has taken earlier data.
    pub(super) fn has_rest(&self) -> bool {
        !self.sends.is_empty() || self.pending_credit.is_some() || self.failure.is_some()
    }

    fn hiwater(&self) -> i64 {
        self.pair.settings().hiwater.into()
    }

    fn hold(&mut self) {
        self.pair.hold_acks(self.is_full && self.granted <= 0);
    }
}

/// Sending direction of one channel.
#[derive(Debug)]
pub(super) struct TxStream {
    /// Sessions, one for each rank behind the channel.
    pub(super) sessions: Vec<PeerSession>,
    staging: Memory,
    start: usize,
    end: usize,
    pieces: VecDeque<Piece>,
    waiting: usize,
    /// Octets that the socket has taken.
    written: u64,
    /// When writing ended: octets that waited, and written octets that the peer's system had not acked.
    dropped: u64,
    untaken: u64,
    /// The rank's write round in which packets were put last, and their number.
    burst: (u32, u32),
    /// Time since which octets were outstanding at every check.
    pub(super) outstanding_since: Option<Instant>,
    /// State of the orderly end, in both directions.
    pub(super) ending: FiniState,
    pub(super) state: TxState,
    pub(super) fault: Fault,
    /// A send found no room.
    pub(super) has_refused: bool,
}

impl TxStream {
    pub(super) fn new(sessions: Vec<PeerSession>, dialect: Dialect) -> io::Result<TxStream> {
        let staging = Memory::zeroed(STAGE_LEN).ok_or(io::ErrorKind::OutOfMemory)?;
        let pieces = VecDeque::new();
        Ok(TxStream {
            sessions,
            staging,
            start: 0,
            end: 0,
            pieces,
            waiting: 0,
            written: 0,
            dropped: 0,
            untaken: 0,
            burst: (0, 0),
            outstanding_since: None,
            ending: FiniState::new(dialect),
            state: TxState::Open,
            fault: Fault::None,
            has_refused: false,
        })
    }

    /// Whether packets are accepted and written.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.state == TxState::Open
    }

    /// Octets that wait for the socket.
    pub(super) fn waiting_len(&self) -> usize {
        self.waiting
    }

    /// Octets put into the channel, including those that wait and those that were dropped.
    pub(super) fn given(&self) -> u64 {
        self.written + self.waiting as u64 + self.dropped
    }

    /// Octets that the peer's system has acked. `untaken` counts the written octets that it has not acked.
    /// Once writing has ended, the value of that time counts instead.
    pub(super) fn acked(&self, untaken: u64) -> u64 {
        self.written.saturating_sub(if self.is_open() { untaken } else { self.untaken })
    }

    /// Whether packets wait for a peer's acknowledgement, or for room.
    pub(super) fn has_queued(&self) -> bool {
        self.sessions.iter().any(|session| session.pair.has_queued())
    }

    /// `None` when all octets have left; else the number of octets that have.
    pub(super) fn tx_pending(&self) -> Option<u64> {
        let waits = self.waiting > 0 || self.has_queued();
        (waits && self.is_open()).then_some(self.written)
    }

    /// Whether another packet may be put.
    pub(super) fn has_room(&self) -> bool {
        self.waiting < WAITING_MAX && STAGE_LEN - self.end >= HEADER_LEN + COPY_MAX
    }

    /// Whether the packet put in this write round of the rank may wait for others to leave with. A few have
    /// left one by one before.
    pub(super) fn may_wait(&mut self, round: u32) -> bool {
        let before = if self.burst.0 == round { self.burst.1 } else { 0 };
        self.burst = (round, before.saturating_add(1));
        before >= BURST && self.waiting < TOGETHER_LEN
    }

    /// Index of the session with a rank.
    pub(super) fn session_of(&self, rank: u32) -> usize {
        self.sessions.iter().position(|session| session.rank == rank).expect("each rank has its channel")
    }

    /// Puts a packet after the pending ones.
    pub(super) fn put(&mut self, at: usize, packet: &Packet, body: Option<(&Slab, usize, usize)>) {
        if !self.is_open() {
            return;
        }
        let mut header = [0; HEADER_LEN];
        packet.emit(self.sessions[at].pair.settings().dialect, &mut header);
        self.put_octets(&header);
        match body {
            Some((slab, offset, len)) if len > COPY_MAX => {
                self.pieces.push_back(Piece::Referenced { slab: slab.clone(), offset, len });
                self.waiting += len;
            }
            Some((slab, offset, len)) => self.put_words(slab, offset, len),
            None => {}
        }
    }

    /// Puts octets after the pending ones. The caller has checked that there is room.
    pub(super) fn put_octets(&mut self, octets: &[u8]) {
        if !self.is_open() {
            return;
        }
        copy_in(self.staging.words(), self.end, octets);
        self.staged(octets.len());
    }

    fn put_words(&mut self, slab: &Slab, offset: usize, len: usize) {
        if self.end.is_multiple_of(8) && offset.is_multiple_of(8) {
            copy_words(slab.words(), offset, self.staging.words(), self.end, len);
        } else {
            let mut octets = vec![0; len];
            mpjdev_buffer::octets::copy_out(slab.words(), offset, &mut octets);
            copy_in(self.staging.words(), self.end, &octets);
        }
        self.staged(len);
    }

    fn staged(&mut self, len: usize) {
        self.end += len;
        self.waiting += len;
        match self.pieces.back_mut() {
            Some(Piece::Staged(before)) => *before += len,
            _ => self.pieces.push_back(Piece::Staged(len)),
        }
    }

    /// Whether a message to send will never be packed.
    pub(super) fn has_broken_send(&self) -> bool {
        self.sessions.iter().any(|session| session.sends.values().any(is_given_up))
    }

    /// Puts the packets of the sessions, as far as there is room and their octets are packed.
    pub(super) fn fill_from_sessions(&mut self) {
        for at in 0..self.sessions.len() {
            while self.has_room() {
                let session = &mut self.sessions[at];
                if !session.pair.wants_to_send() {
                    break;
                }
                let sends = &session.sends;
                let there = |body: &Body| {
                    sends.get(&body.token).map_or(body.len, |slab| packed_of(slab, body.offset, body.len))
                };
                let Some(Transmit { packet, body }) = session.pair.poll_transmit_there(there) else { break };
                let Some(body) = body else {
                    self.put(at, &packet, None);
                    continue;
                };
                let Some(slab) = session.sends.get(&body.token).cloned() else {
                    debug_assert_eq!(body.len, 0, "octets of a message that is not there");
                    self.put(at, &packet, None);
                    continue;
                };
                if body.last {
                    session.sends.remove(&body.token);
                }
                self.put(at, &packet, Some((&slab, body.offset as usize, body.len as usize)));
            }
        }
    }

    /// Writes as many pending octets as the socket takes.
    pub(super) fn write(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        while !self.pieces.is_empty() {
            let mut staged_at = self.start;
            let mut parts = [Part::new(&[], 0, 0); PARTS_MAX];
            let mut n = 0;
            for (part, piece) in parts.iter_mut().zip(&self.pieces) {
                *part = match piece {
                    Piece::Staged(len) => {
                        let part = Part::new(self.staging.words(), staged_at, *len);
                        staged_at += len;
                        part
                    }
                    Piece::Referenced { slab, offset, len } => Part::new(slab.words(), *offset, *len),
                };
                n += 1;
            }
            match stream::send(socket, &parts[..n]) {
                Ok(written) => self.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn advance(&mut self, mut written: usize) {
        self.waiting -= written;
        self.written += written as u64;
        while written > 0 {
            let Some(piece) = self.pieces.front_mut() else { break };
            let done = match piece {
                Piece::Staged(len) => {
                    let n = written.min(*len);
                    *len -= n;
                    self.start += n;
                    written -= n;
                    *len == 0
                }
                Piece::Referenced { offset, len, .. } => {
                    let n = written.min(*len);
                    *len -= n;
                    *offset += n;
                    written -= n;
                    *len == 0
                }
            };
            if done {
                self.pieces.pop_front();
            }
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Drops pending octets. The sessions stay while octets of the other end are still to be taken.
    pub(super) fn stop_sending(&mut self, untaken: u64) {
        if self.is_open() {
            (self.dropped, self.untaken) = (self.waiting as u64, untaken);
        }
        self.state = self.state.broken();
        self.pieces.clear();
        (self.waiting, self.start, self.end) = (0, 0, 0);
    }

    /// Drops pending octets, and accepts nothing more.
    pub(super) fn close(&mut self, untaken: u64) {
        self.stop_sending(untaken);
        self.state = TxState::Closed;
        for session in &mut self.sessions {
            let _ = session.pair.abandon();
            session.sends.clear();
            session.arrivals.clear();
            session.pending_credit = None;
            session.failure = None;
        }
    }

    /// Records that a receive has matched a numbered message. `wanted` octets of a long one are wanted.
    pub(super) fn matched(&mut self, at: usize, token: u64, wanted: u64, source: &Arc<dyn SlabSource>) {
        let session = &mut self.sessions[at];
        let Some(arriving) = session.arrivals.get_mut(&token) else { return };
        let id: ArrivalId = arriving.id;
        if session.pair.matched(id).is_err() {
            return;
        }
        match arriving.is_long() {
            true => {
                arriving.make_room(wanted, &**source);
                session.note_long();
            }
            false => drop(session.arrivals.remove(&token)),
        }
    }
}
