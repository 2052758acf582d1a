//! Outbox: packets without room at their destination, and the packets queued behind them.

use std::collections::VecDeque;

use mpjdev_transport::{Header, Kind, Payload};

use crate::request::RequestId;

/// A queued packet.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) dest: u32,
    pub(crate) header: Header,
    pub(crate) payload: Option<Payload>,
    /// The request that is complete when the packet is sent; synchronous sends complete later.
    pub(crate) request: Option<RequestId>,
}

/// The queued packets: messages in order per destination, match acks before them. A destination without room
/// costs one attempt, however many packets are queued for it.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// By destination.
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

    pub(crate) fn push(&mut self, packet: Queued) {
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
    }

    /// Sends as far as `try_send` finds room, and hands the sent packets to `sent`.
    pub(crate) fn send(&mut self, mut try_send: impl FnMut(&Queued) -> bool, mut sent: impl FnMut(Queued)) {
        let Outbox { queues, answered, busy } = self;
        busy.retain(|dest| {
            let queue = &mut queues[*dest as usize];
            while queue.front().is_some_and(&mut try_send) {
                let Some(packet) = queue.pop_front() else { break };
                answered[*dest as usize] -= u32::from(packet.header.kind.is_answered());
                sent(packet);
            }
            !queue.is_empty()
        });
    }

    /// Removes the earliest packet to `dest` that `picks` selects.
    pub(crate) fn remove(&mut self, dest: u32, picks: impl Fn(&Queued) -> bool) -> Option<Queued> {
        let queue = &mut self.queues[dest as usize];
        let packet = queue.remove(queue.iter().position(picks)?);
        let is_answered = packet.as_ref().is_some_and(|packet| packet.header.kind.is_answered());
        self.answered[dest as usize] -= u32::from(is_answered);
        if queue.is_empty() {
            self.busy.retain(|busy| *busy != dest);
        }
        packet
    }

    /// Drops all packets to the destinations that `gone` selects; returns their number.
    pub(crate) fn drop_to(&mut self, gone: impl Fn(u32) -> bool) -> usize {
        let Outbox { queues, answered, busy } = self;
        let mut dropped = 0;
        busy.retain(|dest| {
            let is_gone = gone(*dest);
            if is_gone {
                answered[*dest as usize] = 0;
                dropped += std::mem::take(&mut queues[*dest as usize]).len();
            }
            !is_gone
        });
        dropped
    }
}
