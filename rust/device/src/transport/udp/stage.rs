//! What has come through the socket and is not handed over, and what waits until it is its turn.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;

use mpjdev_proto::datagram::modern::time::{MICROSECOND, Nanos};
use mpjdev_sys::datagram::{Arrived, Obstacle, Part, receive};
use mpjdev_sys::memory::Memory;

use crate::transport::remote::copying::copy_octets;

/// Octets of a room: a train at most.
const ROOM_LEN: usize = 64 << 10;
/// Rooms that are filled with one call at most.
const ROOMS: usize = 16;

/// The fewest.
const ROOMS_MIN: usize = 2;
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
    /// Octets that were copied only because they did not begin at a word.
    pub(super) moved: u64,
}

/// What has come.
#[derive(Debug)]
pub(super) struct Stage {
    memory: Memory,
    arrived: [Arrived; ROOMS],
    /// Rooms that are filled, and how many of them are done.
    count: usize,
    room: usize,
    /// Octets of the next room that are done.
    done: usize,
    /// Rooms for the next look: the more, the longer each look has filled all. With one more than is filled it is known that there
    /// was no more.
    wanted: usize,
    /// Whether the last look has found all that there was, and when.
    is_drained: bool,
    filled_at: Nanos,
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
    pub(super) fn new(ranks: usize) -> io::Result<Stage> {
        let memory = |len| Memory::zeroed(len).ok_or(io::Error::from(io::ErrorKind::OutOfMemory));
        Ok(Stage {
            memory: memory(ROOMS * ROOM_LEN)?,
            arrived: [Arrived::default(); ROOMS],
            count: 0,
            room: 0,
            done: 0,
            wanted: ROOMS_MIN,
            is_drained: true,
            filled_at: 0,
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
        let words = self.memory.words();
        let parts: [[Part<'_>; 1]; ROOMS] =
            std::array::from_fn(|room| [Part::new(words, room * ROOM_LEN, ROOM_LEN)]);
        let rooms: [&[Part<'_>]; ROOMS] = std::array::from_fn(|room| &parts[room][..]);
        self.seen.calls += 1;
        match receive(socket, &rooms[..self.wanted], &mut self.arrived) {
            Ok(count) => {
                (self.count, self.room, self.done) = (count, 0, 0);
                (self.is_drained, self.filled_at) = (count < self.wanted, now);
                self.wanted = if self.is_drained { count + 1 } else { 2 * count }.clamp(ROOMS_MIN, ROOMS);
                Ok(true)
            }
            // What the network says of earlier datagrams is no news to the machines.
            Err(Obstacle::Later | Obstacle::Refused | Obstacle::Unreachable | Obstacle::TooLong) => {
                self.wanted = ROOMS_MIN;
                Ok(false)
            }
            Err(Obstacle::System(error)) => Err(error),
            Err(obstacle) => Err(io::Error::other(obstacle)),
        }
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

    /// Keeps octets of the stage until it is their turn; false without memory.
    pub(super) fn keep(&mut self, rank: usize, slot: u16, at: usize, len: usize) -> bool {
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
        copy_octets(self.memory.words(), at, memory.words(), 0, len);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(arrived: &[Arrived]) -> Stage {
        let mut stage = Stage::new(1).expect("memory");
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
    fn what_is_kept_stays_until_its_slot_is_used_again() {
        let mut stage = stage(&[]);
        mpjdev_buffer::octets::copy_in(stage.words(), 0, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert!(stage.keep(0, 5, 3, 9) && stage.keep(0, 2, 0, 8));
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
