//! Every tunable of a rank, with its bounds.

use std::time::Duration;

/// What can be tuned. The defaults are for real work; [`Config::tiny`] makes every limit bite, for tests.
#[derive(Clone, Debug)]
pub struct Config {
    /// Cells of a rank's incoming queue, a power of two.
    pub queue_cells: usize,
    /// Octets of a message that travels inside a queue cell; larger ones go by reference. At most [`INLINE_MAX`].
    pub inline_max: usize,
    /// Octets of memory that messages of one rank to another may hold before they are matched. Past it, a send waits to be
    /// matched; a single message may be larger.
    pub credit: u64,
    /// Octets that the envelopes of unmatched messages from one rank may occupy at another, [`ENVELOPE_LEN`] each, beside the
    /// credit. A send that would wait past it fails.
    pub envelopes: u64,
    /// Polls with a pause before a waiting thread begins to yield.
    pub spins: u32,
    /// Yields before it sleeps.
    pub yields: u32,
    /// A yield that takes longer has let another thread run for long: then it sleeps at once, since a sleeper is woken before
    /// a thread that yields has its next turn.
    pub yield_max: Duration,
    /// Longest sleep before a waiting thread looks at interrupts and deadlines again.
    pub slice: Duration,
    /// How long finishing waits for a peer that shows no life.
    pub finish_patience: Duration,
    /// How long finishing waits for a foreign rank that shows no life and has not come to the barrier that the job ends with. Such
    /// a rank may well compute, and answers no question; that its process is dead is heard of at once.
    pub foreign_patience: Duration,
    /// The local transport behaves like a message-oriented one: physical messages only, split ones paired by number.
    pub message_oriented: bool,
    /// Largest tag.
    pub tag_ub: i32,
}

/// Octets that fit a queue cell at most: a section of 1 KiB with all headers, and some more.
pub const INLINE_MAX: usize = 1088;
/// Octets that a message counts for against the credit beside its own.
pub const CREDIT_OVERHEAD: u64 = 64;
/// Packets from one rank to another that a queue in shared memory holds at most.
pub const QUEUE_PACKETS: usize = 1024;
/// Octets that an unmatched message past the credit counts for at its receiver: its entry there, and in its indexes.
pub const ENVELOPE_LEN: u64 = 512;
/// Messages of one rank to another that may wait to be matched, past the credit, whatever the configuration.
pub const UNMATCHED_MAX: u32 = 1 << 21;
/// A part of that many more is left to collective operations, which must not fail because of the program's messages.
const RESERVED_PART: u32 = 16;
/// At least so many.
const RESERVED_MIN: u32 = 64;
/// A large message counts for such a part of the credit at most, where its memory stays its sender's.
pub const LARGE_PART: u64 = 8;
/// A message whose slab is so many times as large is copied rather than kept waiting for credit.
pub const SPARSE: usize = 4;

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
            slice: Duration::from_millis(20),
            finish_patience: Duration::from_secs(5),
            foreign_patience: Duration::from_secs(600),
            message_oriented: false,
            tag_ub: i32::MAX,
        }
    }
}

impl Config {
    /// Limits so small that every queue is full, every credit used up and every tag taken twice.
    pub fn tiny() -> Self {
        Config { queue_cells: 2, inline_max: 16, credit: 1, tag_ub: 32_767, ..Config::default() }
    }

    /// For a job of this many ranks on this machine: with more ranks than processors, polling keeps the one from running that is
    /// waited for, so waits yield almost at once.
    pub fn for_ranks(self, ranks: usize) -> Self {
        self.for_ranks_on(ranks, std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// The same, on so many processors.
    pub fn for_ranks_on(mut self, ranks: usize, processors: usize) -> Self {
        if ranks > processors {
            self.spins = self.spins.min(20);
            // Here a long yield is the rule, and cheaper than a sleep.
            self.yield_max = self.yield_max.max(Duration::from_micros(200));
        }
        self
    }

    /// What a message of `len` octets that goes by reference counts for against the credit: the memory that it holds. A large
    /// one counts for a part only where messages are not copied: its octets are its sender's memory and nobody else's, and
    /// what the receiver has matched would have to be asked for each time.
    #[inline]
    pub fn counted(&self, held: usize, len: usize) -> u64 {
        let held = held as u64;
        match held / 2 <= len as u64 && !self.message_oriented {
            true => held.min(self.credit / LARGE_PART),
            false => held,
        }
    }

    /// Messages of one rank to another that may wait to be matched, past the credit: those of the program.
    pub fn unmatched_max(&self) -> u32 {
        u32::try_from(self.envelopes / ENVELOPE_LEN).map_or(UNMATCHED_MAX, |count| count.min(UNMATCHED_MAX))
    }

    /// The same, with those of collective operations. A rank that sends more breaks the rules.
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
