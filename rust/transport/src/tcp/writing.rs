//! The output of one channel: headers and small bodies from a stage, large bodies from the messages themselves.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Instant;

use mpjdev_buffer::octets::{copy_in, copy_words};
use mpjdev_buffer::{Slab, SlabSource};
use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::ending::Ending;
use mpjdev_proto::impi::layout::HEADER_LEN;
use mpjdev_proto::impi::packet::Packet;
use mpjdev_proto::impi::pair::{Pair, Transmit};
use mpjdev_proto::impi::receiving::ArrivalId;
use mpjdev_sys::memory::Memory;
use mpjdev_sys::stream::{self, PARTS_MAX, Part};

use crate::net::arriving::Arriving;

/// Octets of the stage.
const STAGE_LEN: usize = 128 << 10;
/// A body up to so many octets is copied to the stage: that costs less than one more part of a call.
const COPY_MAX: usize = 4 << 10;
/// Packets that leave one by one, as long as the rank does nothing but send.
const BURST: u32 = 1;
/// Octets that leave at once, whatever may come.
const TOGETHER_LEN: usize = 4 << 10;
/// More is not taken while so many octets wait for the socket.
const WAITING_MAX: usize = 256 << 10;

/// What goes out, in order.
#[derive(Debug)]
enum Piece {
    /// So many octets of the stage.
    Staged(usize),
    /// Octets of a message.
    Lent { slab: Slab, offset: usize, len: usize },
}

/// The conversation with one rank behind a channel.
#[derive(Debug)]
pub(super) struct Talk {
    pub(super) rank: u32,
    pub(super) is_foreign: bool,
    pub(super) pair: Pair,
    /// Messages whose octets have not all been handed over, by token.
    pub(super) sends: HashMap<u64, Slab>,
    /// What arrives and is not done, by token.
    pub(super) arrivals: HashMap<u64, Arriving<ArrivalId>>,
    /// Of a foreign rank: whether what it sends fills more memory than it may, how many of its packets are acknowledged all the
    /// same, and how many long messages of its are matched and under way.
    is_full: bool,
    granted: i64,
    under_way: usize,
    /// Octets matched that the rank is to hear of.
    pub(super) owed: Option<u64>,
    /// Why the job has failed, if the rank is to hear of it.
    pub(super) failure: Option<String>,
}

impl Talk {
    pub(super) fn new(rank: u32, is_foreign: bool, pair: Pair) -> Talk {
        let (sends, arrivals) = Default::default();
        let (is_full, granted, under_way) = Default::default();
        let (owed, failure) = (None, None);
        Talk { rank, is_foreign, pair, sends, arrivals, is_full, granted, under_way, owed, failure }
    }

    /// Whether ProtoAcks are to be held back, because memory is full. As long as matched messages are under way their rest must
    /// come through, though other messages leave in turn with it: for each packet of a rest two are acknowledged, and at first
    /// as many as may be under way.
    pub(super) fn hold_back(&mut self, is_full: bool) {
        self.is_full = is_full;
        self.granted = if self.under_way > 0 { 2 * self.hiwater() } else { 0 };
        self.hold();
    }

    /// A counted packet has come.
    pub(super) fn note_counted(&mut self) {
        if self.is_full {
            self.granted -= 1;
            self.hold();
        }
    }

    /// A long message is matched.
    fn note_long(&mut self) {
        self.under_way += 1;
        self.grant(2 * self.hiwater());
    }

    /// Whether a long message that is matched has not come whole: its sender cannot have finished.
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way > 0
    }

    /// A part of a long message's rest has come, which somebody wants or nobody.
    pub(super) fn note_rest(&mut self, last: bool, is_wanted: bool) {
        self.under_way -= usize::from(last);
        self.grant(if is_wanted { 2 } else { 0 });
    }

    /// However many messages are under way, what comes behind the others' memory stays bounded by their rests.
    fn grant(&mut self, packets: i64) {
        if self.is_full {
            let most = if self.under_way > 0 { 4 * self.hiwater() } else { 0 };
            self.granted = (self.granted + packets).min(most);
            self.hold();
        }
    }

    /// Whether something is to be said to the rank once it, or its system, has taken what was said before.
    pub(super) fn has_rest(&self) -> bool {
        !self.sends.is_empty() || self.owed.is_some() || self.failure.is_some()
    }

    fn hiwater(&self) -> i64 {
        self.pair.settings().hiwater.into()
    }

    fn hold(&mut self) {
        self.pair.hold_acks(self.is_full && self.granted <= 0);
    }
}

/// The way out of one channel.
#[derive(Debug)]
pub(super) struct Writing {
    /// One for each rank behind the channel.
    pub(super) talks: Vec<Talk>,
    stage: Memory,
    start: usize,
    end: usize,
    pieces: VecDeque<Piece>,
    waiting: usize,
    /// Octets that the socket has taken.
    written: u64,
    /// When writing ended: octets that waited, and octets that the other side's system had not taken.
    dropped: u64,
    untaken: u64,
    /// The rank's turn in which packets were put last, and how many.
    burst: (u32, u32),
    /// Since when octets were outstanding at every check.
    pub(super) outstanding_since: Option<Instant>,
    /// What both ends have said of the end.
    pub(super) ending: Ending,
    /// Nothing leaves any more, whatever is put.
    pub(super) is_broken: bool,
    /// The channel takes nothing more.
    pub(super) is_closed: bool,
}

impl Writing {
    pub(super) fn new(talks: Vec<Talk>, dialect: Dialect) -> io::Result<Writing> {
        let stage = Memory::zeroed(STAGE_LEN).ok_or(io::ErrorKind::OutOfMemory)?;
        let pieces = VecDeque::new();
        Ok(Writing {
            talks,
            stage,
            start: 0,
            end: 0,
            pieces,
            waiting: 0,
            written: 0,
            dropped: 0,
            untaken: 0,
            burst: (0, 0),
            outstanding_since: None,
            ending: Ending::new(dialect),
            is_broken: false,
            is_closed: false,
        })
    }

    /// Octets that wait for the socket.
    pub(super) fn waiting_len(&self) -> usize {
        self.waiting
    }

    /// Octets that were put to leave, those that wait included, and those that will not leave any more.
    pub(super) fn given(&self) -> u64 {
        self.written + self.waiting as u64 + self.dropped
    }

    /// Octets that the other side's system has taken, where it has not taken `untaken` of those that were written; that counts no
    /// more once writing has ended.
    pub(super) fn acked(&self, untaken: u64) -> u64 {
        self.written.saturating_sub(if self.is_broken { self.untaken } else { untaken })
    }

    /// Whether packets wait until a peer acknowledges others, or until there is room.
    pub(super) fn has_queued(&self) -> bool {
        self.talks.iter().any(|talk| talk.pair.has_queued())
    }

    /// None when everything has left; else the octets that have.
    pub(super) fn leaving(&self) -> Option<u64> {
        let waits = self.waiting > 0 || self.has_queued();
        (waits && !self.is_closed && !self.is_broken).then_some(self.written)
    }

    /// Whether another packet may be put.
    pub(super) fn has_room(&self) -> bool {
        self.waiting < WAITING_MAX && STAGE_LEN - self.end >= HEADER_LEN + COPY_MAX
    }

    /// Whether the packet that was put in this turn of the rank may wait for more to leave with: a few have left one by one.
    pub(super) fn may_wait(&mut self, turn: u32) -> bool {
        let before = if self.burst.0 == turn { self.burst.1 } else { 0 };
        self.burst = (turn, before.saturating_add(1));
        before >= BURST && self.waiting < TOGETHER_LEN
    }

    /// Place of the conversation with a rank.
    pub(super) fn talk_of(&self, rank: u32) -> usize {
        self.talks.iter().position(|talk| talk.rank == rank).expect("each rank has its channel")
    }

    /// Puts a packet behind those that wait.
    pub(super) fn put(&mut self, at: usize, packet: &Packet, body: Option<(&Slab, usize, usize)>) {
        if self.is_broken {
            return;
        }
        let mut header = [0; HEADER_LEN];
        packet.emit(self.talks[at].pair.settings().dialect, &mut header);
        self.put_octets(&header);
        match body {
            Some((slab, offset, len)) if len > COPY_MAX => {
                self.pieces.push_back(Piece::Lent { slab: slab.clone(), offset, len });
                self.waiting += len;
            }
            Some((slab, offset, len)) => self.put_words(slab, offset, len),
            None => {}
        }
    }

    /// Puts octets behind those that wait; there is room for them.
    pub(super) fn put_octets(&mut self, octets: &[u8]) {
        if self.is_broken {
            return;
        }
        copy_in(self.stage.words(), self.end, octets);
        self.staged(octets.len());
    }

    fn put_words(&mut self, slab: &Slab, offset: usize, len: usize) {
        if self.end.is_multiple_of(8) && offset.is_multiple_of(8) {
            copy_words(slab.words(), offset, self.stage.words(), self.end, len);
        } else {
            let mut octets = vec![0; len];
            mpjdev_buffer::octets::copy_out(slab.words(), offset, &mut octets);
            copy_in(self.stage.words(), self.end, &octets);
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

    /// Puts what the conversations have to say, as far as there is room.
    pub(super) fn pump(&mut self) {
        for at in 0..self.talks.len() {
            while self.has_room() {
                let talk = &mut self.talks[at];
                if !talk.pair.wants_to_send() {
                    break;
                }
                let Some(Transmit { packet, body }) = talk.pair.poll_transmit() else { break };
                let Some(body) = body else {
                    self.put(at, &packet, None);
                    continue;
                };
                let Some(slab) = talk.sends.get(&body.token).cloned() else {
                    debug_assert_eq!(body.len, 0, "octets of a message that is not there");
                    self.put(at, &packet, None);
                    continue;
                };
                if body.last {
                    talk.sends.remove(&body.token);
                }
                self.put(at, &packet, Some((&slab, body.offset as usize, body.len as usize)));
            }
        }
    }

    /// Writes what waits, as far as the socket takes it.
    pub(super) fn write(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        while !self.pieces.is_empty() {
            let mut staged_at = self.start;
            let mut parts = [Part::new(&[], 0, 0); PARTS_MAX];
            let mut n = 0;
            for (part, piece) in parts.iter_mut().zip(&self.pieces) {
                *part = match piece {
                    Piece::Staged(len) => {
                        let part = Part::new(self.stage.words(), staged_at, *len);
                        staged_at += len;
                        part
                    }
                    Piece::Lent { slab, offset, len } => Part::new(slab.words(), *offset, *len),
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
                Piece::Lent { offset, len, .. } => {
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

    /// Nothing that waits will leave. The conversations go on, as far as something of the other end is still to be taken.
    pub(super) fn break_off(&mut self, untaken: u64) {
        if !self.is_broken {
            (self.dropped, self.untaken) = (self.waiting as u64, untaken);
        }
        self.is_broken = true;
        self.pieces.clear();
        (self.waiting, self.start, self.end) = (0, 0, 0);
    }

    /// Nothing that waits will leave, and nothing more is taken.
    pub(super) fn close(&mut self, untaken: u64) {
        self.is_closed = true;
        self.break_off(untaken);
        for talk in &mut self.talks {
            let _ = talk.pair.abandon();
            talk.sends.clear();
            talk.arrivals.clear();
            talk.owed = None;
            talk.failure = None;
        }
    }

    /// A receive has matched a message that was numbered; of a long one so many octets are wanted.
    pub(super) fn matched(&mut self, at: usize, token: u64, wanted: u64, source: &Arc<dyn SlabSource>) {
        let talk = &mut self.talks[at];
        let Some(arriving) = talk.arrivals.get_mut(&token) else { return };
        let id: ArrivalId = arriving.id;
        if talk.pair.matched(id).is_err() {
            return;
        }
        match arriving.is_long() {
            true => {
                arriving.make_room(wanted, &**source);
                talk.note_long();
            }
            false => drop(talk.arrivals.remove(&token)),
        }
    }
}
