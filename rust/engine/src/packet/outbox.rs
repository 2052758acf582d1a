//! Outbox: packets without room at their destination, and the packets queued behind them.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use mpjdev_sys::sync::AtomicUsize;
use mpjdev_transport::{Header, Kind, Payload};

use crate::request::RequestId;

/// Length up to which a check visits a queue.
const CHECKED_MAX: usize = 64;

/// A queued packet.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) dest: u32,
    pub(crate) header: Header,
    pub(crate) payload: Option<Payload>,
    /// The request that is complete when the packet is sent; synchronous sends complete later.
    pub(crate) request: Option<RequestId>,
}

/// The number of queued packets, which threads read without the rank's lock. The outbox alone changes it.
#[derive(Debug, Default)]
pub(crate) struct QueuedCount(AtomicUsize);

impl QueuedCount {
    /// The count. A thread that reads 0 sees what was done before the last packet left the outbox.
    #[inline]
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

/// The queued packets: messages in order per destination, match acks before them. A destination without room
/// costs one attempt, however many packets are queued for it.
///
/// Invariants: a destination is busy exactly while packets are queued for it; `answered` counts those that
/// ask for a match ack; the [`QueuedCount`] is the number of all. Each method that changes the number gets
/// the count of this outbox.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Queued packets by destination.
    queues: Vec<VecDeque<Queued>>,
    /// The number of packets among them that ask for a match ack, by destination.
    answered: Vec<u32>,
    /// Destinations with queued packets.
    busy: Vec<u32>,
}

impl Outbox {
    /// An outbox for a world of `ranks` ranks.
    pub(crate) fn new(ranks: u32) -> Self {
        let queues = (0..ranks).map(|_| VecDeque::new()).collect();
        Outbox { queues, answered: vec![0; ranks as usize], busy: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.busy.is_empty()
    }

    /// Whether no packet is queued for this destination.
    pub(crate) fn is_empty_to(&self, dest: u32) -> bool {
        self.queues[dest as usize].is_empty()
    }

    /// The number of queued packets to this destination that ask for a match ack.
    pub(crate) fn answered_to(&self, dest: u32) -> u32 {
        self.answered[dest as usize]
    }

    /// Destinations with queued packets.
    pub(crate) fn dests(&self) -> impl Iterator<Item = u32> {
        self.busy.iter().copied()
    }

    /// Queues a packet: a match ack before the messages, a message behind them.
    pub(crate) fn push(&mut self, packet: Queued, count: &QueuedCount) {
        let queue = &mut self.queues[packet.dest as usize];
        if queue.is_empty() {
            self.busy.push(packet.dest);
        }
        self.answered[packet.dest as usize] += u32::from(packet.header.kind.is_answered());
        match packet.header.kind {
            // A match ack does not wait behind messages that wait for match acks themselves.
            Kind::MatchAck => queue.push_front(packet),
            _ => queue.push_back(packet),
        }
        count.0.fetch_add(1, Ordering::Release);
    }

    /// Sends as far as `try_send` finds room, and hands the sent packets to `sent`.
    pub(crate) fn send(
        &mut self,
        count: &QueuedCount,
        mut try_send: impl FnMut(&Queued) -> bool,
        mut sent: impl FnMut(Queued),
    ) {
        let Outbox { queues, answered, busy } = self;
        busy.retain(|dest| {
            let queue = &mut queues[*dest as usize];
            while queue.front().is_some_and(&mut try_send) {
                let Some(packet) = queue.pop_front() else { break };
                answered[*dest as usize] -= u32::from(packet.header.kind.is_answered());
                count.0.fetch_sub(1, Ordering::Release);
                sent(packet);
            }
            !queue.is_empty()
        });
    }

    /// Removes the earliest packet to `dest` that `picks` selects.
    pub(crate) fn remove(
        &mut self,
        dest: u32,
        count: &QueuedCount,
        picks: impl Fn(&Queued) -> bool,
    ) -> Option<Queued> {
        let queue = &mut self.queues[dest as usize];
        let packet = queue.remove(queue.iter().position(picks)?)?;
        self.answered[dest as usize] -= u32::from(packet.header.kind.is_answered());
        if queue.is_empty() {
            self.busy.retain(|busy| *busy != dest);
        }
        count.0.fetch_sub(1, Ordering::Release);
        Some(packet)
    }

    /// Drops all packets to the destinations that have ended.
    pub(crate) fn drop_to(&mut self, count: &QueuedCount, has_ended: impl Fn(u32) -> bool) {
        let Outbox { queues, answered, busy } = self;
        let mut dropped = 0;
        busy.retain(|dest| {
            let drops = has_ended(*dest);
            if drops {
                answered[*dest as usize] = 0;
                dropped += std::mem::take(&mut queues[*dest as usize]).len();
            }
            !drops
        });
        count.0.fetch_sub(dropped, Ordering::Release);
    }

    /// Panics when an invariant does not hold. Visits the packets of short queues.
    pub(crate) fn check(&self, count: &QueuedCount) {
        let queued = |dest: &u32| self.queues[*dest as usize].len();
        assert!(self.busy.iter().all(|dest| queued(dest) > 0), "a destination without packets is busy");
        let all: usize = self.busy.iter().map(queued).sum();
        assert_eq!(all, count.get(), "the count of queued packets is wrong");
        for dest in self.busy.iter().filter(|dest| queued(dest) <= CHECKED_MAX) {
            let queue = self.queues[*dest as usize].iter();
            let answered = queue.filter(|packet| packet.header.kind.is_answered()).count();
            assert_eq!(
                answered,
                self.answered_to(*dest) as usize,
                "packets to {dest} that ask for a match ack"
            );
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    struct Boxed {
        outbox: Outbox,
        count: QueuedCount,
    }

    impl Boxed {
        fn new() -> Boxed {
            Boxed { outbox: Outbox::new(3), count: QueuedCount::default() }
        }

        fn push(&mut self, dest: u32, kind: Kind, tag: i32) {
            let header = Header { kind, tag, ..Header::default() };
            self.outbox.push(Queued { dest, header, payload: None, request: None }, &self.count);
            self.check();
        }

        /// Sends while `room` has packets left by destination; returns the sent ones by destination and tag.
        fn send(&mut self, mut room: [usize; 3]) -> Vec<(u32, i32)> {
            let mut sent = Vec::new();
            let mut attempts = [0; 3];
            let try_send = |packet: &Queued| {
                let dest = packet.dest as usize;
                attempts[dest] += 1;
                let has_room = room[dest] > 0;
                room[dest] = room[dest].saturating_sub(1);
                has_room
            };
            self.outbox.send(&self.count, try_send, |packet| sent.push((packet.dest, packet.header.tag)));
            self.check();
            for dest in 0..3 {
                let taken = sent.iter().filter(|(to, _)| *to == dest).count();
                assert!(attempts[dest as usize] <= taken + 1, "one attempt without room");
            }
            sent
        }

        fn check(&self) {
            self.outbox.check(&self.count);
            let busy: Vec<u32> = (0..3).filter(|dest| !self.outbox.is_empty_to(*dest)).collect();
            let mut dests: Vec<u32> = self.outbox.dests().collect();
            dests.sort_unstable();
            assert_eq!(dests, busy);
            assert_eq!(self.outbox.is_empty(), busy.is_empty());
        }
    }

    #[test]
    fn packets_are_sent_in_order_per_destination_as_far_as_there_is_room() {
        let mut boxed = Boxed::new();
        for tag in 0..3 {
            boxed.push(1, Kind::Eager, tag);
            boxed.push(2, Kind::Eager, tag);
        }
        assert_eq!(boxed.send([9, 2, 0]), [(1, 0), (1, 1)]);
        assert_eq!(boxed.count.get(), 4);
        assert_eq!(boxed.send([9, 9, 1]), [(1, 2), (2, 0)]);
        assert_eq!(boxed.send([9, 9, 9]), [(2, 1), (2, 2)]);
        assert!(boxed.outbox.is_empty());
    }

    #[test]
    fn match_ack_overtakes_messages() {
        let mut boxed = Boxed::new();
        boxed.push(0, Kind::Synchronous, 1);
        boxed.push(0, Kind::MatchAck, 2);
        assert_eq!(boxed.send([9; 3]), [(0, 2), (0, 1)]);
    }

    #[test]
    fn packets_that_ask_for_match_acks_are_counted_until_they_leave() {
        let mut boxed = Boxed::new();
        for kind in [Kind::Synchronous, Kind::Rts, Kind::Eager, Kind::Rts, Kind::MatchAck] {
            boxed.push(1, kind, 0);
        }
        assert_eq!((boxed.outbox.answered_to(1), boxed.outbox.answered_to(0)), (3, 0));
        // The match ack and the first message.
        boxed.send([0, 2, 0]);
        assert_eq!(boxed.outbox.answered_to(1), 2);
        let removed = boxed.outbox.remove(1, &boxed.count, |packet| packet.header.kind == Kind::Rts);
        assert!(removed.is_some());
        assert_eq!(boxed.outbox.answered_to(1), 1);
        boxed.outbox.drop_to(&boxed.count, |dest| dest == 1);
        assert_eq!(boxed.outbox.answered_to(1), 0);
        boxed.check();
    }

    #[test]
    fn removed_and_dropped_packets_are_not_sent() {
        let mut boxed = Boxed::new();
        for tag in 0..3 {
            boxed.push(0, Kind::Eager, tag);
            boxed.push(1, Kind::Eager, tag);
        }
        let removed = boxed.outbox.remove(0, &boxed.count, |packet| packet.header.tag == 1);
        assert_eq!(removed.map(|packet| packet.header.tag), Some(1));
        assert!(boxed.outbox.remove(2, &boxed.count, |_| true).is_none());
        boxed.check();
        boxed.outbox.drop_to(&boxed.count, |dest| dest == 1);
        boxed.check();
        assert_eq!(boxed.send([9; 3]), [(0, 0), (0, 2)]);
        boxed.push(0, Kind::Eager, 7);
        assert!(boxed.outbox.remove(0, &boxed.count, |_| true).is_some());
        boxed.check();
        assert!(boxed.outbox.is_empty());
    }
}
