//! Stages: datagrams that were read and not handed over, and packets that wait for their turn.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;

use mpjdev_buffer::octets::{copy_in, copy_out};
use mpjdev_proto::datagram::modern::receiving::{ArrivalId, Delivery};
use mpjdev_proto::datagram::modern::time::{MICROSECOND, Nanos};
use mpjdev_sys::datagram::{Arrived, Obstacle, Part, receive};
use mpjdev_sys::memory::Memory;

use super::expected::{Expected, HEAD_LEN};
use super::probe::Early;
use crate::net::copying::copy_octets;

/// Octets of a room: a train at most.
const ROOM_LEN: usize = 64 << 10;
/// Rooms that are filled with one call at most.
const ROOMS: usize = 16;

/// Octets that a wrong guess may cost a copy of, and be made again.
const CHEAP: usize = 1 << 10;
/// How long nothing new is expected behind a look that has found all that there was: who waits looks, and takes it at once.
const FRESH: Nanos = MICROSECOND;

/// Octets of a datagram in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Staged {
    pub(super) from: Option<SocketAddr>,
    /// Where it begins.
    pub(super) at: usize,
    pub(super) len: usize,
}

/// What is counted of datagrams before it is known whose they are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// System calls that received, or found nothing.
    pub(super) calls: u64,
    /// Octets of datagrams.
    pub(super) octets: u64,
    /// Datagrams that are no packets, or longer than was agreed.
    pub(super) malformed: u64,
    /// Packets whose checksum is wrong.
    pub(super) bad_checksums: u64,
    /// Packets of nobody that is known here, or that come from elsewhere.
    pub(super) unknown: u64,
    /// Octets that were copied only because they did not begin at a word, or were not what was expected.
    pub(super) moved: u64,
}

/// What has come.
#[derive(Debug)]
pub(super) struct Stage {
    memory: Memory,
    /// What the next datagram is believed to be.
    expected: Option<Expected>,
    /// What the first datagram of the first room is, whose user data are elsewhere.
    landed: Option<Expected>,
    /// Which message the last part was of, by peer and id.
    last: Option<(usize, ArrivalId)>,
    arrived: [Arrived; ROOMS],
    /// Rooms that are filled, and how many of them are done.
    count: usize,
    room: usize,
    /// Octets of the next room that are done.
    done: usize,
    /// Rooms for the next look: the more, the longer each look has filled all. With one more than is filled it is known that there
    /// was no more; after a look in vain one is most likely enough.
    wanted: usize,
    /// Whether the last look has found all that there was, as far as is known, and when.
    is_drained: bool,
    filled_at: Nanos,
    /// Datagrams that came before the rank was ready, the first one last.
    early: Vec<Early>,
    /// What waits until it is its turn, by peer and slot.
    kept: Vec<Vec<Option<Memory>>>,
    /// Octets that have to begin at a multiple of 8.
    aligned: Memory,
    /// What has come so far, and what of it was no use.
    pub(super) seen: Seen,
    /// Peers that something has come from.
    pub(super) touched: Vec<usize>,
    is_touched: Vec<bool>,
}

impl Stage {
    pub(super) fn new(ranks: usize, mut early: Vec<Early>) -> io::Result<Stage> {
        early.reverse();
        let memory = |len| Memory::zeroed(len).ok_or(io::Error::from(io::ErrorKind::OutOfMemory));
        Ok(Stage {
            memory: memory(ROOMS * ROOM_LEN)?,
            expected: None,
            landed: None,
            last: None,
            arrived: [Arrived::default(); ROOMS],
            count: 0,
            room: 0,
            done: 0,
            wanted: 1,
            is_drained: true,
            filled_at: 0,
            early,
            kept: (0..ranks).map(|_| Vec::new()).collect(),
            aligned: memory(ROOM_LEN)?,
            seen: Seen::default(),
            touched: Vec::with_capacity(ranks),
            is_touched: vec![false; ranks],
        })
    }

    /// Whether everything was handed over.
    pub(super) fn is_empty(&self) -> bool {
        self.room == self.count
    }

    /// Whether the socket may have more than what is here.
    pub(super) fn may_have_more(&self, now: Nanos) -> bool {
        !self.is_drained || now.saturating_sub(self.filled_at) > FRESH
    }

    /// Receives what the socket has, unless there is something already; whether there is something.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn look(&mut self, socket: BorrowedFd<'_>, now: Nanos) -> io::Result<bool> {
        if !self.is_empty() {
            return Ok(true);
        }
        if !self.early.is_empty() {
            self.fill_early();
            return Ok(true);
        }
        self.seen.calls += 1;
        let Stage { memory, arrived, expected, .. } = self;
        let words = memory.words();
        let wanted = if expected.is_some() { 1 } else { self.wanted };
        let received = match expected {
            Some(expected) => receive(socket, &[&room_around(words, expected)], arrived),
            None if wanted == 1 => receive(socket, &[&[room(words, 0)]], arrived),
            None => {
                let parts: [[Part<'_>; 1]; ROOMS] = std::array::from_fn(|at| [room(words, at)]);
                let rooms: [&[Part<'_>]; ROOMS] = std::array::from_fn(|at| &parts[at][..]);
                receive(socket, &rooms[..wanted], arrived)
            }
        };
        match received {
            Ok(count) => {
                (self.count, self.room, self.done) = (count, 0, 0);
                // Behind a single one that nobody expects there is most likely nothing, and whoever waits for it is not kept waiting.
                self.is_drained = count < wanted || (count == 1 && self.expected.is_none());
                self.filled_at = now;
                self.wanted = if count < wanted { count + 1 } else { 2 * count }.min(ROOMS);
                self.land();
                Ok(true)
            }
            // What the network says of earlier datagrams is no news to the machines.
            Err(Obstacle::Later | Obstacle::Refused | Obstacle::Unreachable | Obstacle::TooLong) => {
                self.wanted = 1;
                Ok(false)
            }
            Err(Obstacle::System(error)) => Err(error),
            Err(obstacle) => Err(io::Error::other(obstacle)),
        }
    }

    /// Fills rooms with what came before the rank was ready.
    #[cold]
    fn fill_early(&mut self) {
        (self.count, self.room, self.done) = (0, 0, 0);
        (self.expected, self.landed, self.is_drained) = (None, None, false);
        while self.count < ROOMS
            && let Some((from, octets)) = self.early.pop()
        {
            let len = octets.len();
            copy_in(self.memory.words(), self.count * ROOM_LEN, &octets);
            self.arrived[self.count] = Arrived { len, sent_len: len, segment_len: len, from: Some(from) };
            self.count += 1;
        }
    }

    /// Finds out whether the first datagram is the one that was expected; if not, brings all of it together.
    fn land(&mut self) {
        self.landed = None;
        let Some(expected) = self.expected.take() else { return };
        let arrived = &self.arrived[0];
        let mut head = [0; HEAD_LEN];
        copy_out(self.memory.words(), 0, &mut head);
        let len = arrived.segment_len.min(arrived.sent_len);
        if len <= arrived.len && expected.is(&head, len) {
            self.landed = Some(expected);
            return;
        }
        let (words, at, len) = expected.place();
        let elsewhere = arrived.len.saturating_sub(HEAD_LEN).min(len);
        copy_octets(words, at, self.memory.words(), HEAD_LEN, elsewhere);
        self.seen.moved += elsewhere as u64;
        if elsewhere <= CHEAP {
            self.expected = Some(expected);
        }
    }

    /// What is expected next.
    pub(super) fn expect(&mut self, expected: Option<Expected>) {
        self.expected = expected;
    }

    /// Octets of a peer have come, as expected or not, and what is expected to follow them: where parts of several messages come in
    /// turns, nothing.
    pub(super) fn go_on(
        &mut self,
        rank: usize,
        delivery: &Delivery,
        was_expected: bool,
        expected: Option<Expected>,
    ) {
        let Delivery::Continued { arrival, .. } = *delivery else { return };
        let is_run = was_expected || self.last == Some((rank, arrival));
        self.last = Some((rank, arrival));
        self.expected = expected.filter(|_| is_run);
    }

    /// What the datagram that begins there is, if its user data are where they belong.
    pub(super) fn take_landed(&mut self, at: usize) -> Option<Expected> {
        if at == 0 { self.landed.take() } else { None }
    }
    /// The next datagram that is here as a whole.
    pub(super) fn take(&mut self) -> Option<Staged> {
        while self.room < self.count {
            let arrived = &self.arrived[self.room];
            let end = (self.done + arrived.segment_len.max(1)).min(arrived.sent_len);
            let staged =
                Staged { from: arrived.from, at: self.room * ROOM_LEN + self.done, len: end - self.done };
            self.seen.octets += staged.len as u64;
            let is_whole = end <= arrived.len;
            self.done = end;
            if end == arrived.sent_len || !is_whole {
                (self.room, self.done) = (self.room + 1, 0);
            }
            if is_whole {
                return Some(staged);
            }
        }
        None
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        self.memory.words()
    }

    /// Octets of the stage with their beginning at a word, for the length of a call.
    pub(super) fn aligned(&mut self, at: usize, len: usize) -> &[AtomicU64] {
        if at.is_multiple_of(8) {
            return &self.memory.words()[at / 8..];
        }
        copy_octets(self.memory.words(), at, self.aligned.words(), 0, len);
        self.seen.moved += len as u64;
        self.aligned.words()
    }

    /// Keeps octets of the stage, or from elsewhere, until it is their turn; false without memory.
    pub(super) fn keep(
        &mut self,
        rank: usize,
        slot: u16,
        landed: Option<&Expected>,
        at: usize,
        len: usize,
    ) -> bool {
        let kept = &mut self.kept[rank];
        let slot = usize::from(slot);
        if kept.len() <= slot {
            kept.resize_with(slot + 1, || None);
        }
        let place = &mut kept[slot];
        if place.as_ref().is_none_or(|memory| memory.len() < len) {
            *place = Memory::zeroed(len);
        }
        let Some(memory) = place else { return false };
        let (words, at) =
            landed.map_or((self.memory.words(), at), |landed| (landed.place().0, landed.place().1));
        copy_octets(words, at, memory.words(), 0, len);
        true
    }

    /// What was kept.
    pub(super) fn kept(&self, rank: usize, slot: u16) -> Option<&[AtomicU64]> {
        self.kept[rank].get(usize::from(slot))?.as_ref().map(Memory::words)
    }

    /// Something has come from a peer.
    pub(super) fn touch(&mut self, rank: usize) {
        if !std::mem::replace(&mut self.is_touched[rank], true) {
            self.touched.push(rank);
        }
    }

    /// A peer that something has come from.
    pub(super) fn take_touched(&mut self) -> Option<usize> {
        let rank = self.touched.pop()?;
        self.is_touched[rank] = false;
        Some(rank)
    }

    pub(super) fn is_touched(&self, rank: usize) -> bool {
        self.is_touched[rank]
    }
}

/// A room of the stage.
fn room(words: &[AtomicU64], at: usize) -> Part<'_> {
    Part::new(words, at * ROOM_LEN, ROOM_LEN)
}

/// The first room, with the user data of what is expected where they belong.
fn room_around<'a>(words: &'a [AtomicU64], expected: &'a Expected) -> [Part<'a>; 3] {
    let (place, at, len) = expected.place();
    let rest = HEAD_LEN + len;
    [Part::new(words, 0, HEAD_LEN), Part::new(place, at, len), Part::new(words, rest, ROOM_LEN - rest)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(arrived: &[Arrived]) -> Stage {
        let mut stage = Stage::new(1, Vec::new()).expect("memory");
        stage.arrived[..arrived.len()].copy_from_slice(arrived);
        stage.count = arrived.len();
        stage
    }

    /// Also those without octets, and without those that are not here as a whole.
    #[test]
    fn the_datagrams_of_trains_are_taken_one_by_one() {
        let train = Arrived { len: 250, sent_len: 250, segment_len: 100, from: None };
        let empty = Arrived::default();
        let cut = Arrived { len: 150, sent_len: 200, segment_len: 100, from: None };
        let mut stage = stage(&[train, empty, cut, train]);
        let taken: Vec<_> = std::iter::from_fn(|| stage.take()).map(|s| (s.at, s.len)).collect();
        let room = |n: usize| n * ROOM_LEN;
        let first = [(0, 100), (100, 100), (200, 50), (room(1), 0), (room(2), 100)];
        let last = [(room(3), 100), (room(3) + 100, 100), (room(3) + 200, 50)];
        assert_eq!(taken, [&first[..], &last].concat());
        assert!(stage.is_empty());
    }

    #[test]
    fn datagrams_that_came_early_are_taken_first_and_in_order() {
        let from = SocketAddr::from(([127, 0, 0, 1], 4711));
        let early: Vec<Early> = (0..40).map(|at| (from, vec![at; 20 + usize::from(at)])).collect();
        let mut stage = Stage::new(1, early).expect("memory");
        let (socket, mut taken) = (std::net::UdpSocket::bind("127.0.0.1:0").expect("a port"), 0);
        while stage.look(std::os::fd::AsFd::as_fd(&socket), 0).expect("no error") {
            while let Some(staged) = stage.take() {
                let mut octets = vec![0; staged.len];
                copy_out(stage.words(), staged.at, &mut octets);
                assert_eq!((staged.from, octets), (Some(from), vec![taken; 20 + usize::from(taken)]));
                taken += 1;
            }
        }
        assert_eq!(taken, 40);
    }

    #[test]
    fn what_is_kept_stays_until_its_slot_is_used_again() {
        let mut stage = stage(&[]);
        mpjdev_buffer::octets::copy_in(stage.words(), 0, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert!(stage.keep(0, 5, None, 3, 9) && stage.keep(0, 2, None, 0, 8));
        let octets = |stage: &Stage, slot, len| {
            let mut octets = vec![0; len];
            mpjdev_buffer::octets::copy_out(stage.kept(0, slot).expect("kept"), 0, &mut octets);
            octets
        };
        assert_eq!(octets(&stage, 5, 9), [4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(octets(&stage, 2, 8), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(stage.kept(0, 3).is_none() && stage.kept(0, 6).is_none());
    }
}
