//! A simulated network with impairments: for tests of the machines, of the UDP transport, and for a relay
//! between sockets. Beside it [`run_schedules`] runs collective operations over queues. No product code uses
//! either.
//!
//! A network is one direction of one path. It depends only on its seed, packets and times. Times are
//! nanoseconds of any monotonic clock.
//!
//! ```text
//! send --> partition, filter --> queue --> rate --> burst, loss --> duplication --> delay, jitter --> poll
//!                |                 |                    |                             |
//!                x                 x full               x               reorder: waits for later packets
//! ```
#![forbid(unsafe_code)]

mod group_run;
mod impairment;
mod random;
#[cfg(test)]
mod tests;

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

pub use group_run::{Combine, RankBlocks, UNSET, run_schedules};
pub use impairment::{Burst, Chance, Impairment, ImpairmentError, Partition, Reorder};
pub use random::Random;

/// Most packets in flight; one more is lost. This bounds the memory of a network at any delay.
pub const IN_FLIGHT_MAX: usize = 1 << 16;
/// The longest wait of a packet for later ones to overtake it.
pub const HOLD_MAX_NS: u64 = 10_000_000;

/// Decides whether a packet is dropped, by its number from 0 and its contents.
pub type Filter<P> = Box<dyn FnMut(u64, &P) -> bool + Send>;

/// One direction of a path.
///
/// Inputs: [`send`](Self::send), [`partition`](Self::partition). Outputs:
/// [`poll_deliver`](Self::poll_deliver) until it returns `None`, then [`next_time_ns`](Self::next_time_ns).
pub struct Network<P> {
    impairment: Impairment,
    random: Random,
    filter: Option<Filter<P>>,
    /// Packets in flight, by their time of arrival.
    in_flight: BinaryHeap<Reverse<Arrival<P>>>,
    /// Packets that wait to be overtaken.
    held: Vec<Held<P>>,
    /// When the packets that wait for the rate will have been sent.
    queue: VecDeque<u64>,
    /// When the path is free for the next packet.
    free_ns: u64,
    /// Whether a burst drops all packets.
    in_burst: bool,
    partitioned: bool,
    arrivals: u64,
    counts: Counts,
}

/// Counts of the packets by their fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets sent.
    pub sent: u64,
    /// Packets delivered, copies included.
    pub delivered: u64,
    /// Packets dropped by chance, in a burst, in a partition, or by the filter.
    pub lost: u64,
    /// Packets dropped at a full queue, or at [`IN_FLIGHT_MAX`] packets in flight.
    pub dropped: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets held for later ones.
    pub reordered: u64,
}

/// A packet and its time of arrival; of two with the same time the one sent earlier arrives first.
struct Arrival<P> {
    time_ns: u64,
    number: u64,
    packet: P,
}

/// A packet that waits to be overtaken.
struct Held<P> {
    /// When it would have arrived.
    time_ns: u64,
    /// The number of packets that must still overtake it.
    missing: u16,
    packet: P,
}

impl<P: Clone> Network<P> {
    /// A network with no packet in flight.
    #[must_use]
    pub fn new(impairment: Impairment, seed: u64) -> Self {
        Self {
            impairment,
            random: Random::new(seed),
            filter: None,
            in_flight: BinaryHeap::new(),
            held: Vec::new(),
            queue: VecDeque::new(),
            free_ns: 0,
            in_burst: false,
            partitioned: false,
            arrivals: 0,
            counts: Counts::default(),
        }
    }

    /// Sets the filter, which decides first which packets are dropped.
    pub fn set_filter(&mut self, filter: impl FnMut(u64, &P) -> bool + Send + 'static) {
        self.filter = Some(Box::new(filter));
    }

    /// Sets another impairment for later packets; those in flight are not affected.
    pub fn set_impairment(&mut self, impairment: Impairment) {
        self.impairment = impairment;
    }

    /// Cuts or restores the path; packets in flight arrive.
    pub const fn partition(&mut self, cut: bool) {
        self.partitioned = cut;
    }

    /// The counts so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Packets in flight, with those that wait to be overtaken.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len() + self.held.len()
    }

    /// Sends a packet of `len` octets.
    pub fn send(&mut self, now_ns: u64, len: usize, packet: P) {
        let number = self.counts.sent;
        self.counts.sent += 1;
        let is_killed = self.filter.as_mut().is_some_and(|filter| filter(number, &packet));
        if is_killed || self.is_cut(now_ns) {
            self.counts.lost += 1;
            return;
        }
        let Some(leaves_ns) = self.leaves_ns(now_ns, len) else {
            self.counts.dropped += 1;
            return;
        };
        if self.dies() {
            self.counts.lost += 1;
            return;
        }
        if self.random.happens(self.impairment.duplication) {
            self.counts.duplicated += 1;
            self.travel(leaves_ns, packet.clone());
        }
        self.travel(leaves_ns, packet);
    }

    /// The next packet that has arrived by now.
    pub fn poll_deliver(&mut self, now_ns: u64) -> Option<P> {
        self.release(now_ns);
        if self.in_flight.peek()?.0.time_ns > now_ns {
            return None;
        }
        self.counts.delivered += 1;
        self.in_flight.pop().map(|Reverse(arrival)| arrival.packet)
    }

    /// When the next packet arrives, unless more packets are sent before.
    #[must_use]
    pub fn next_time_ns(&self) -> Option<u64> {
        let arrival = self.in_flight.peek().map(|Reverse(arrival)| arrival.time_ns);
        let held = self.held.iter().map(Held::limit_ns).min();
        arrival.into_iter().chain(held).min()
    }

    fn is_cut(&self, now_ns: u64) -> bool {
        self.partitioned || self.impairment.partition.is_some_and(|partition| partition.holds(now_ns))
    }

    /// When the last bit of the packet is sent; `None` if the queue is full.
    fn leaves_ns(&mut self, now_ns: u64, len: usize) -> Option<u64> {
        let Some(rate) = self.impairment.rate else { return Some(now_ns) };
        while self.queue.front().is_some_and(|leaves_ns| *leaves_ns <= now_ns) {
            self.queue.pop_front();
        }
        if self.queue.len() >= self.impairment.queue {
            return None;
        }
        let bits_ns = len as u128 * 8 * 1_000_000_000;
        let time_ns = bits_ns.div_ceil(u128::from(rate.get())).min(u128::from(u64::MAX)) as u64;
        self.free_ns = self.free_ns.max(now_ns).saturating_add(time_ns);
        self.queue.push_back(self.free_ns);
        Some(self.free_ns)
    }

    /// Whether the packet is lost by chance or in a burst (Gilbert and Elliott: two states, and the bad one
    /// loses all packets).
    fn dies(&mut self) -> bool {
        if let Some(Burst { enter, leave }) = self.impairment.burst {
            let changes = self.random.happens(if self.in_burst { leave } else { enter });
            self.in_burst ^= changes;
        }
        self.in_burst || self.random.happens(self.impairment.loss)
    }

    fn travel(&mut self, leaves_ns: u64, packet: P) {
        if self.in_flight() >= IN_FLIGHT_MAX {
            self.counts.dropped += 1;
            return;
        }
        let jitter_ns = self.random.up_to(self.impairment.jitter_ns);
        let time_ns = leaves_ns.saturating_add(self.impairment.delay_ns).saturating_add(jitter_ns);
        if let Some(Reorder { distance, chance }) = self.impairment.reorder
            && distance > 0
            && self.random.happens(chance)
        {
            self.counts.reordered += 1;
            let missing = 1 + self.random.up_to(u64::from(distance) - 1) as u16;
            self.held.push(Held { time_ns, missing, packet });
            return;
        }
        self.arrive(time_ns, packet);
        self.overtake(time_ns);
    }

    /// Counts a packet that arrives at this time as one that overtakes all held packets. Each packet that is
    /// released overtakes those that were held before it.
    fn overtake(&mut self, time_ns: u64) {
        let mut earlier = self.held.len();
        loop {
            for held in &mut self.held[..earlier] {
                held.missing = held.missing.saturating_sub(1);
            }
            let Some(place) = self.held.iter().position(|held| held.missing == 0) else { return };
            let held = self.held.remove(place);
            self.arrive(held.time_ns.max(time_ns), held.packet);
            earlier = place;
        }
    }

    /// Releases the held packets that have waited for the longest time.
    fn release(&mut self, now_ns: u64) {
        while let Some(place) = self.held.iter().position(|held| held.limit_ns() <= now_ns) {
            let held = self.held.remove(place);
            self.arrive(held.limit_ns(), held.packet);
        }
    }

    fn arrive(&mut self, time_ns: u64, packet: P) {
        let number = self.arrivals;
        self.arrivals += 1;
        self.in_flight.push(Reverse(Arrival { time_ns, number, packet }));
    }
}

impl<P> Held<P> {
    const fn limit_ns(&self) -> u64 {
        self.time_ns.saturating_add(HOLD_MAX_NS)
    }
}

impl<P> std::fmt::Debug for Network<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = f.debug_struct("Network");
        fields.field("impairment", &self.impairment).field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl<P> PartialEq for Arrival<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P> Eq for Arrival<P> {}

impl<P> PartialOrd for Arrival<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Arrival<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.time_ns, self.number).cmp(&(other.time_ns, other.number))
    }
}
