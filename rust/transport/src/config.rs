//! Every tunable of a rank, with its bounds.

use std::time::Duration;

/// Tunables of a rank. The defaults are for real work; tests set smaller limits.
#[derive(Clone, Debug)]
pub struct Config {
    /// Cells of a rank's incoming queue, a power of two.
    pub queue_cells: usize,
    /// Octets of a message that travels inside a queue cell. Larger ones go by reference. At most
    /// [`INLINE_MAX`].
    pub inline_max: usize,
    /// Octets of memory that messages of one rank to another may hold before they are matched. Past it, a
    /// send waits for its match; a single message may be larger.
    pub credit: u64,
    /// Octets that the envelopes of unmatched messages from one rank may occupy at another, [`ENVELOPE_LEN`]
    /// each, beside the credit. A send that would wait past it fails.
    pub envelopes: u64,
    /// Polls with a pause before a waiting thread begins to yield.
    pub spins: u32,
    /// Yields before the thread sleeps.
    pub yields: u32,
    /// A longer yield has let another thread run for long. The thread then sleeps at once, since a sleeper is
    /// woken before a yielding thread gets its next turn.
    pub yield_max: Duration,
    /// Yields of a whole time slice, one after another, after which waits do not yield for some time.
    pub long_yields: u32,
    /// Time that a wait spins before it sleeps while waits do not yield.
    pub oversubscribed_spin: Duration,
    /// Whether a thread leaves its processor when the rank that it waits for takes turns with it there.
    pub leaves_processor: bool,
    /// Longest sleep before a waiting thread checks interrupts and deadlines again.
    pub slice: Duration,
    /// Longest wait of a finishing rank for a peer without a heartbeat.
    pub finish_timeout: Duration,
    /// Longest wait of a finishing rank for a foreign rank that has no heartbeat and has not reached the
    /// barrier at the end of the job. Such a rank may well compute, and answers no request for a heartbeat.
    /// The death of its process is noticed at once.
    pub foreign_timeout: Duration,
    /// The local transport behaves like a message-oriented one: physical messages only, split ones paired by
    /// number.
    pub message_oriented: bool,
    /// Largest tag.
    pub tag_ub: i32,
}

/// Octets that fit a queue cell at most: a section of 1 KiB with all headers, and some more.
pub const INLINE_MAX: usize = 1088;
/// Octets that a record of a queue in shared memory holds at most: a section of 2.5 KiB with all
/// headers.
pub const RECORD_MAX: usize = 2624;
/// Octets of a sender's token in a queue cell.
pub const TOKEN_LEN: usize = 8;
/// Octets charged to the credit for a message in addition to its own.
pub const CREDIT_OVERHEAD: u64 = 64;
/// Most packets from one rank to another in a queue in shared memory.
pub const QUEUE_PACKETS: usize = 1024;
/// Octets charged for an unmatched message past the credit at its receiver: its entry there, and in its
/// indexes.
pub const ENVELOPE_LEN: u64 = 512;
/// Most messages of one rank to another that may wait for a match past the credit, in any configuration.
pub const UNMATCHED_MAX: u32 = 1 << 21;
/// The fraction of that number reserved for collective operations, which must not fail because of the
/// program's messages.
const RESERVED_PART: u32 = 16;
/// Least size of the reserve.
const RESERVED_MIN: u32 = 64;
/// Largest fraction of the credit charged for a large message whose octets stay in its sender's memory.
pub const LARGE_PART: u64 = 8;
/// A message whose slab is larger by this factor is copied rather than kept waiting for credit.
pub const SPARSE_FACTOR: usize = 4;

/// [`Config::yield_max`] with more ranks than processors: shorter than a time slice.
const OVERSUBSCRIBED_YIELD_MAX: Duration = Duration::from_micros(2500);
/// [`Config::oversubscribed_spin`] where each rank can have a processor: longer than the wake of a peer.
const OVERSUBSCRIBED_SPIN: Duration = Duration::from_micros(200);

impl Default for Config {
    fn default() -> Self {
        Config {
            queue_cells: 64,
            inline_max: INLINE_MAX,
            credit: 16 << 20,
            envelopes: u64::from(UNMATCHED_MAX) * ENVELOPE_LEN,
            spins: 300,
            yields: 2000,
            yield_max: Duration::from_micros(50),
            long_yields: 1,
            oversubscribed_spin: Duration::ZERO,
            leaves_processor: false,
            slice: Duration::from_millis(20),
            finish_timeout: Duration::from_secs(5),
            foreign_timeout: Duration::from_secs(600),
            message_oriented: false,
            tag_ub: i32::MAX,
        }
    }
}

impl Config {
    /// Configuration of a job with this many ranks on this machine. With more ranks than processors, a
    /// polling thread may hold the processor of the rank that it waits for, so waits yield almost at once.
    pub fn for_ranks(self, ranks: usize) -> Self {
        self.for_ranks_on(ranks, std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// As [`for_ranks`](Self::for_ranks), on this many processors.
    pub fn for_ranks_on(mut self, ranks: usize, processors: usize) -> Self {
        if ranks > processors {
            self.spins = self.spins.min(2);
            // A rank that only sends keeps its processor until its queues are full. A parked receiver costs a
            // wake for each message. One that yields takes many at a time.
            self.yield_max = self.yield_max.max(OVERSUBSCRIBED_YIELD_MAX);
            // A thread that runs only once can cause a single long yield between those of other ranks.
            self.long_yields = self.long_yields.max(2);
        } else if ranks > 1 {
            self.oversubscribed_spin = OVERSUBSCRIBED_SPIN;
            self.leaves_processor = true;
        }
        self
    }

    /// Credit charge of a message of `len` octets that goes by reference: the memory that it holds. A large
    /// one is charged a fraction, if messages are not copied: its octets are in its sender's memory alone,
    /// and with the full charge each send would have to request the receiver's count of matched octets.
    #[inline]
    pub fn counted(&self, held: usize, len: usize) -> u64 {
        let held = held as u64;
        match held / 2 <= len as u64 && !self.message_oriented {
            true => held.min(self.credit / LARGE_PART),
            false => held,
        }
    }

    /// Most messages of the program from one rank to another that may wait for a match past the credit.
    pub fn unmatched_max(&self) -> u32 {
        u32::try_from(self.envelopes / ENVELOPE_LEN).map_or(UNMATCHED_MAX, |count| count.min(UNMATCHED_MAX))
    }

    /// The same, with those of collective operations. A rank that sends more violates the protocol.
    pub fn unmatched_limit(&self) -> u32 {
        let max = self.unmatched_max();
        max + (max / RESERVED_PART).max(RESERVED_MIN)
    }

    /// Brings every value into its bounds.
    pub fn bounded(mut self) -> Self {
        self.queue_cells = self.queue_cells.clamp(2, 1 << 16).next_power_of_two();
        self.inline_max = self.inline_max.min(INLINE_MAX);
        self.credit = self.credit.clamp(1, 1 << 40);
        self.envelopes = self.envelopes.clamp(ENVELOPE_LEN, u64::from(UNMATCHED_MAX) * ENVELOPE_LEN);
        self.slice = self.slice.clamp(Duration::from_millis(1), Duration::from_secs(3600));
        self.tag_ub = self.tag_ub.max(32_767);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ranks_with_a_processor_each_leave_one_and_spin_beside_others() {
        let rule = |ranks| {
            let config = Config::default().for_ranks_on(ranks, 2);
            (config.leaves_processor, !config.oversubscribed_spin.is_zero(), config.spins, config.long_yields)
        };
        let alone = (false, false, 300, 1);
        assert_eq!([1, 2, 3].map(rule), [alone, (true, true, 300, 1), (false, false, 2, 2)]);
    }
}
