//! Staging buffer of a rank: datagrams that were read and not passed on, and packets kept behind a gap.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;

use mpjdev_buffer::octets::{copy_in, copy_out};
use mpjdev_proto::datagram::reliable::message_rx::{ArrivalId, Delivery};
use mpjdev_proto::datagram::reliable::time::{MICROSECOND, Nanos};
use mpjdev_sys::datagram::{Arrived, Obstacle, Part, options, receive, receive_from};
use mpjdev_sys::memory::Memory;

use super::placement::{Expected, HEAD_LEN};
use super::probe::Early;
use crate::net::copy::copy_octets;

/// Octets of a room: at most a GSO batch.
const ROOM_LEN: usize = 64 << 10;
/// Most rooms that one call fills.
const ROOMS: usize = 16;

/// Short datagrams that arrive one by one before GRO is turned off, and the longest of them. A socket without
/// GRO is polled with a faster system call.
const SINGLES: u32 = 64;
const SINGLE_MAX: usize = 2048;
/// Most octets that a wrong prediction may cost to copy before the next datagram is predicted again.
const CHEAP: usize = 1 << 10;
/// Time after a poll that emptied the socket in which the socket counts as empty: a waiting thread polls, and
/// takes a new datagram at once.
const FRESH: Nanos = MICROSECOND;

/// A datagram in the staging buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Staged {
    pub(super) from: Option<SocketAddr>,
    /// Offset of its first octet.
    pub(super) at: usize,
    pub(super) len: usize,
}

/// Counts of datagrams whose peer is not known yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// System calls that received, or were empty.
    pub(super) calls: u64,
    /// Octets of datagrams.
    pub(super) octets: u64,
    /// Datagrams that are no packets, or longer than agreed.
    pub(super) malformed: u64,
    /// Packets with a wrong checksum.
    pub(super) bad_checksums: u64,
    /// Packets of unknown peers, or from other addresses.
    pub(super) unknown: u64,
    /// Octets that were copied only because they were unaligned, or not the expected ones.
    pub(super) moved: u64,
}

/// Staging buffer of received datagrams.
#[derive(Debug)]
pub(super) struct StagingBuffer {
    memory: Memory,
    /// The predicted next datagram.
    expected: Option<Expected>,
    /// The first datagram of the first room, if its user data are at their destination.
    landed: Option<Expected>,
    /// The message of the last part, by peer and id.
    last: Option<(usize, ArrivalId)>,
    arrived: [Arrived; ROOMS],
    /// Number of filled rooms, and of those that are done.
    count: usize,
    room: usize,
    /// Octets of the next room that are done.
    done: usize,
    /// Rooms for the next poll. A poll that fills all rooms doubles them. Otherwise the next poll gets one
    /// more than was filled: an unfilled room shows that the socket is empty. After an empty poll it gets
    /// one.
    wanted: usize,
    /// Whether GRO is on: the kernel may deliver several datagrams as one batch.
    has_gro: bool,
    /// Short datagrams in sequence that have arrived one by one.
    singles: u32,
    /// Whether the last poll has emptied the socket, as far as known, and its time.
    is_drained: bool,
    filled_at: Nanos,
    /// Datagrams that arrived before the rank was ready, the first one last.
    early: Vec<Early>,
    /// Packets kept behind a gap, by peer and slot.
    kept: Vec<Vec<Option<Memory>>>,
    /// Octets that must begin at a multiple of 8.
    aligned: Memory,
    /// Counts of received and of dropped datagrams.
    pub(super) seen: Seen,
    /// Peers that datagrams have arrived from.
    pub(super) touched: Vec<usize>,
    is_touched: Vec<bool>,
}

impl StagingBuffer {
    pub(super) fn new(ranks: usize, mut early: Vec<Early>) -> io::Result<StagingBuffer> {
        early.reverse();
        let memory = |len| Memory::zeroed(len).ok_or(io::Error::from(io::ErrorKind::OutOfMemory));
        Ok(StagingBuffer {
            memory: memory(ROOMS * ROOM_LEN)?,
            expected: None,
            landed: None,
            last: None,
            arrived: [Arrived::default(); ROOMS],
            count: 0,
            room: 0,
            done: 0,
            wanted: 1,
            has_gro: true,
            singles: 0,
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

    /// Whether all datagrams were passed on.
    pub(super) fn is_empty(&self) -> bool {
        self.room == self.count
    }

    /// Whether the socket may have more than the staging buffer.
    pub(super) fn may_have_more(&self, now: Nanos) -> bool {
        !self.is_drained || now.saturating_sub(self.filled_at) > FRESH
    }

    /// Receives datagrams from the socket if the buffer is empty. Returns whether it has some.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn poll(&mut self, socket: BorrowedFd<'_>, now: impl FnOnce() -> Nanos) -> io::Result<bool> {
        if !self.is_empty() {
            return Ok(true);
        }
        if !self.early.is_empty() {
            self.fill_early();
            return Ok(true);
        }
        self.seen.calls += 1;
        let StagingBuffer { memory, arrived, expected, .. } = self;
        let words = memory.words();
        let wanted = if expected.is_some() { 1 } else { self.wanted };
        let received = match expected {
            Some(expected) => receive(socket, &[&room_around(words, expected)], arrived),
            None if wanted == 1 && !self.has_gro => receive_from(socket, room(words, 0)).map(|one| {
                arrived[0] = one;
                1
            }),
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
                // After a single unpredicted datagram the socket is most likely empty. Another poll would
                // delay the thread that waits for it.
                self.is_drained = count < wanted || (count == 1 && self.expected.is_none());
                self.filled_at = now();
                self.wanted = if count < wanted { count + 1 } else { 2 * count }.min(ROOMS);
                self.update_gro(socket);
                self.land();
                Ok(true)
            }
            // Errors of earlier datagrams that the network reports do not concern the state machines.
            Err(Obstacle::Later | Obstacle::Refused | Obstacle::Unreachable | Obstacle::TooLong) => {
                self.wanted = 1;
                Ok(false)
            }
            Err(Obstacle::System(error)) => Err(error),
            Err(obstacle) => Err(io::Error::other(obstacle)),
        }
    }

    /// Turns GRO off while short datagrams arrive one by one. A batch that is in the socket at that moment
    /// counts as malformed, and its datagrams are retransmitted.
    fn update_gro(&mut self, socket: BorrowedFd<'_>) {
        let first = &self.arrived[0];
        let is_single = self.count == 1 && first.len <= SINGLE_MAX && first.segment_len == first.sent_len;
        self.singles = if is_single { self.singles.saturating_add(1) } else { 0 };
        let wants_gro = self.singles < SINGLES;
        if wants_gro != self.has_gro {
            self.has_gro = wants_gro;
            // A kernel without GRO delivers datagrams one by one.
            let _ = options::set_gro(socket, wants_gro);
        }
    }

    /// Fills rooms with datagrams that arrived before the rank was ready.
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

    /// Checks whether the first datagram is the expected one. If not, joins its octets in the buffer.
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

    /// Sets the expected fragment.
    pub(super) fn expect(&mut self, expected: Option<Expected>) {
        self.expected = expected;
    }

    /// Records the delivery of a packet, and the prediction of the next one. There is none while the parts of
    /// several messages arrive in turns.
    pub(super) fn note_delivery(
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

    /// The datagram that begins at `at`, if its user data are at their destination.
    pub(super) fn take_landed(&mut self, at: usize) -> Option<Expected> {
        if at == 0 { self.landed.take() } else { None }
    }

    /// The next datagram that has arrived as a whole.
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

    /// Octets of the staging buffer beginning at a word, for the length of a call.
    pub(super) fn aligned(&mut self, at: usize, len: usize) -> &[AtomicU64] {
        if at.is_multiple_of(8) {
            return &self.memory.words()[at / 8..];
        }
        copy_octets(self.memory.words(), at, self.aligned.words(), 0, len);
        self.seen.moved += len as u64;
        self.aligned.words()
    }

    /// Keeps a packet behind a gap: octets of the staging buffer, or of the memory that was predicted for
    /// them. Returns false if there is no memory.
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

    /// The octets kept in a slot.
    pub(super) fn kept(&self, rank: usize, slot: u16) -> Option<&[AtomicU64]> {
        self.kept[rank].get(usize::from(slot))?.as_ref().map(Memory::words)
    }

    /// Records that a datagram has arrived from a peer.
    pub(super) fn touch(&mut self, rank: usize) {
        if !std::mem::replace(&mut self.is_touched[rank], true) {
            self.touched.push(rank);
        }
    }

    /// Takes a peer that datagrams have arrived from.
    pub(super) fn take_touched(&mut self) -> Option<usize> {
        let rank = self.touched.pop()?;
        self.is_touched[rank] = false;
        Some(rank)
    }

    pub(super) fn is_touched(&self, rank: usize) -> bool {
        self.is_touched[rank]
    }
}

/// A room of the staging buffer.
fn room(words: &[AtomicU64], at: usize) -> Part<'_> {
    Part::new(words, at * ROOM_LEN, ROOM_LEN)
}

/// The first room, with the expected user data at their destination.
fn room_around<'a>(words: &'a [AtomicU64], expected: &'a Expected) -> [Part<'a>; 3] {
    let (place, at, len) = expected.place();
    let rest = HEAD_LEN + len;
    [Part::new(words, 0, HEAD_LEN), Part::new(place, at, len), Part::new(words, rest, ROOM_LEN - rest)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(arrived: &[Arrived]) -> StagingBuffer {
        let mut stage = StagingBuffer::new(1, Vec::new()).expect("memory");
        stage.arrived[..arrived.len()].copy_from_slice(arrived);
        stage.count = arrived.len();
        stage
    }

    /// The batches include empty datagrams. Incomplete datagrams are left out.
    #[test]
    fn datagrams_of_a_gso_batch_are_taken_one_by_one() {
        let batch = Arrived { len: 250, sent_len: 250, segment_len: 100, from: None };
        let empty = Arrived::default();
        let cut = Arrived { len: 150, sent_len: 200, segment_len: 100, from: None };
        let mut stage = stage(&[batch, empty, cut, batch]);
        let taken: Vec<_> = std::iter::from_fn(|| stage.take()).map(|s| (s.at, s.len)).collect();
        let room = |n: usize| n * ROOM_LEN;
        let first = [(0, 100), (100, 100), (200, 50), (room(1), 0), (room(2), 100)];
        let last = [(room(3), 100), (room(3) + 100, 100), (room(3) + 200, 50)];
        assert_eq!(taken, [&first[..], &last].concat());
        assert!(stage.is_empty());
    }

    #[test]
    fn early_datagrams_are_taken_first_and_in_order() {
        let from = SocketAddr::from(([127, 0, 0, 1], 4711));
        let early: Vec<Early> = (0..40).map(|at| (from, vec![at; 20 + usize::from(at)])).collect();
        let mut stage = StagingBuffer::new(1, early).expect("memory");
        let (socket, mut taken) = (std::net::UdpSocket::bind("127.0.0.1:0").expect("a port"), 0);
        while stage.poll(std::os::fd::AsFd::as_fd(&socket), || 0).expect("no error") {
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
    fn gro_is_off_while_short_datagrams_arrive_one_by_one() {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        sender.connect(receiver.local_addr().expect("bound")).expect("an address");
        let from = sender.local_addr().ok();
        let mut stage = stage(&[]);
        let mut exchange = |octets: &[u8]| {
            sender.send(octets).expect("sent");
            while !stage.poll(std::os::fd::AsFd::as_fd(&receiver), || 0).expect("no error") {
                std::thread::yield_now();
            }
            let staged = stage.take().expect("one");
            assert_eq!((staged.from, staged.len), (from, octets.len()));
            stage.has_gro
        };
        let with_gro = (0..=SINGLES).filter(|_| exchange(&[7; 40])).count();
        assert_eq!(with_gro, SINGLES as usize - 1);
        assert!(!exchange(&[]) && exchange(&[7; SINGLE_MAX + 1]), "a long one ends the run");
    }

    #[test]
    fn kept_packet_stays_until_its_slot_is_reused() {
        let mut stage = stage(&[]);
        mpjdev_buffer::octets::copy_in(stage.words(), 0, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert!(stage.keep(0, 5, None, 3, 9) && stage.keep(0, 2, None, 0, 8));
        let octets = |stage: &StagingBuffer, slot, len| {
            let mut octets = vec![0; len];
            mpjdev_buffer::octets::copy_out(stage.kept(0, slot).expect("kept"), 0, &mut octets);
            octets
        };
        assert_eq!(octets(&stage, 5, 9), [4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(octets(&stage, 2, 8), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(stage.kept(0, 3).is_none() && stage.kept(0, 6).is_none());
    }
}
