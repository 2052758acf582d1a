//! Targets of messages between processes, for each transport.

mod datagrams;
mod delay;
mod measured;
mod mpi;
mod mpj;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use datagrams::Count;
use delay::late;
pub use measured::{Figure, FigureStatus, medians, table};
pub use mpi::BEYOND;
pub use mpj::MPJ;

use super::contestant::Transport;
use super::protocol::Case;

/// Role of a contestant in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// mpjdev ranks in Java, as processes.
    Ours,
    /// The C program under an MPI, over the same transport.
    Theirs,
    /// Plain sockets of the same transport.
    Plain,
    /// mpjdev ranks in Java, as processes over TCP.
    OverTcp,
    /// The baseline in Java, over shared memory.
    Baseline,
    /// Aeron in Java: IPC beside shared memory, UDP beside datagrams.
    Aeron,
}

/// Contestant of a comparison with its case and the octets of a message.
pub type Part = (Role, Case, u64);

/// Contestants that take turns, and the targets of their results.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// Ranks of each contestant.
    pub ranks: u32,
    /// Contestants with their cases.
    pub parts: &'static [Part],
    /// Targets, whose quantities refer to the indexes of `parts`.
    pub targets: &'static [Target],
}

impl Comparison {
    /// Busy threads beside the ranks: one if each trip is timed.
    pub fn busy(&self) -> u32 {
        u32::from(self.parts.iter().any(|part| part.1 == Case::Timed))
    }
}

/// Target of one figure.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name in reports.
    pub title: &'static str,
    /// Measured quantity.
    pub quantity: Quantity,
    /// Limit of the figure.
    pub limit: Limit,
}

/// Limit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// Upper limit.
    Most(f64),
    /// Lower limit.
    Least(f64),
    /// No limit: the figure is only reported.
    None,
}

/// Targets for ranks over one transport.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Transport of the contestants.
    pub transport: Transport,
    /// Trials that take turns.
    pub comparisons: &'static [Comparison],
}

/// Measured value that has a target.
#[derive(Clone, Copy, Debug)]
pub enum Quantity {
    /// Time of the first part divided by that of the second.
    Ratio(usize, usize),
    /// Second result of the first part divided by that of the second.
    ExtraRatio(usize, usize),
    /// Nanoseconds of the first part less those of the second.
    Beyond(usize, usize),
    /// Time of the second part divided by that of the first: the speed of the first in units of the second.
    Speed(usize, usize),
    /// Time of the slowest part divided by that of the fastest, from the first to the second index.
    Flat(usize, usize),
    /// Time of the slowest part from the first to the second index, divided by that of the third index.
    Slowest(usize, usize, usize),
    /// Microseconds of a part in its slowest turn.
    WorstMicros(usize),
    /// Microseconds of a part.
    Micros(usize),
    /// Milliseconds of a part.
    Millis(usize),
    /// Second result of a part.
    Extra(usize),
    /// Counter of the UDP ranks of a part.
    Counted(usize, Count),
}

const fn ratio(title: &'static str, most: f64, ours: usize, theirs: usize) -> Target {
    Target { title, quantity: Quantity::Ratio(ours, theirs), limit: Limit::Most(most) }
}

const fn median(title: &'static str, most: f64, ours: usize, theirs: usize) -> Target {
    Target { title, quantity: Quantity::ExtraRatio(ours, theirs), limit: Limit::Most(most) }
}

const fn speed(title: &'static str, least: f64, ours: usize, theirs: usize) -> Target {
    Target { title, quantity: Quantity::Speed(ours, theirs), limit: Limit::Least(least) }
}

const fn reported(title: &'static str, quantity: Quantity) -> Target {
    Target { title, quantity, limit: Limit::None }
}

/// Contestants of two ranks each.
const fn of_two(parts: &'static [Part], targets: &'static [Target]) -> Comparison {
    Comparison { ranks: 2, parts, targets }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

use Case::{
    Arrays, Buffers, Busy, Direct, Garbage, GarbageDirect, Objects, Random, RandomDirect, RateArrays,
    RateBuffers, RateDirect, Ring, Serial, Strided, StridedDirect, Sum, SumDirect, Timed,
};
use Role::{Aeron, Baseline, Ours, Plain, Theirs};

/// All groups.
pub const GROUPS: [Group; 4] = [
    Group { transport: Transport::Shm, comparisons: SHM },
    Group { transport: Transport::Tcp, comparisons: TCP },
    Group { transport: Transport::Udp, comparisons: datagrams::UDP },
    Group { transport: Transport::Mpi, comparisons: mpi::MPI },
];

/// Transports of the groups.
pub const TRANSPORTS: [Transport; 4] =
    [GROUPS[0].transport, GROUPS[1].transport, GROUPS[2].transport, GROUPS[3].transport];

/// Round trips of arrays by buffers and directly, beside C.
macro_rules! trip {
    ($arrays:literal, $arrays_most:literal, $direct:literal, $direct_most:literal, $octets:expr) => {
        of_two(
            &[(Ours, Arrays, $octets), (Ours, Direct, $octets), (Theirs, Arrays, $octets)],
            &[ratio($arrays, $arrays_most, 0, 2), ratio($direct, $direct_most, 1, 2)],
        )
    };
}

/// Round trips in which the sender rewrites and the receiver reads every element, through views and directly,
/// beside C.
macro_rules! rewritten {
    ($views:literal, $direct:literal, $octets:expr) => {
        of_two(
            &[(Ours, Sum, $octets), (Ours, SumDirect, $octets), (Theirs, Sum, $octets)],
            &[ratio($views, 0.8, 0, 2), ratio($direct, 0.6, 1, 2)],
        )
    };
}

/// Round trips beside a busy thread, each timed, beside C.
macro_rules! crowded {
    ($mean:literal, $median:literal, $octets:expr) => {
        of_two(
            &[(Ours, Timed, $octets), (Theirs, Timed, $octets)],
            &[ratio($mean, 1.0, 0, 1), median($median, 1.0, 0, 1)],
        )
    };
}

const SHM: &[Comparison] = &[
    late!("shm, 1 MiB, sender computes, late, ns", SendCompute, MIB),
    late!("shm, 1 KiB, receiver computes, late, ns", RecvCompute, KIB),
    of_two(
        &[(Ours, Arrays, 8), (Ours, Buffers, 8), (Theirs, Arrays, 8), (Ours, Direct, 8)],
        &[
            ratio("8 B, array to array", 1.25, 0, 2),
            ratio("8 B, buffer to buffer", 0.8, 1, 2),
            ratio("8 B, direct", 0.95, 3, 2),
        ],
    ),
    of_two(
        &[(Ours, Buffers, 8), (Baseline, Buffers, 8), (Aeron, Buffers, 8)],
        &[
            ratio("8 B, buffer to buffer, baseline", 1.3, 0, 1),
            ratio("8 B, buffer to buffer, Aeron IPC", 1.2, 0, 2),
        ],
    ),
    of_two(
        &[(Ours, Arrays, 64 * KIB), (Baseline, Arrays, 64 * KIB), (Aeron, Arrays, 64 * KIB)],
        &[
            ratio("64 KiB, array to array, baseline", 1.4, 0, 1),
            reported("64 KiB, array to array, Aeron IPC", Quantity::Ratio(0, 2)),
        ],
    ),
    of_two(
        &[(Ours, Arrays, MIB), (Baseline, Arrays, MIB)],
        &[ratio("1 MiB, array to array, baseline", 1.4, 0, 1)],
    ),
    trip!("1 KiB, array to array", 1.3, "1 KiB, direct", 1.0, KIB),
    trip!("8 KiB, array to array", 1.0, "8 KiB, direct", 0.7, 8 * KIB),
    trip!("64 KiB, array to array", 0.8, "64 KiB, direct", 0.7, 64 * KIB),
    trip!("256 KiB, array to array", 0.95, "256 KiB, direct", 0.7, 256 * KIB),
    trip!("1 MiB, array to array", 0.95, "1 MiB, direct", 0.7, MIB),
    trip!("4 MiB, array to array", 0.95, "4 MiB, direct", 0.7, 4 * MIB),
    trip!("16 MiB, array to array", 0.9, "16 MiB, direct", 0.7, 16 * MIB),
    of_two(
        &[
            (Ours, Buffers, 8),
            (Ours, Buffers, 64 * KIB),
            (Ours, Buffers, MIB),
            (Ours, Buffers, 16 * MIB),
            (Ours, Buffers, 64 * MIB),
        ],
        &[
            Target {
                title: "hand-over 64 KiB to 64 MiB, flat",
                quantity: Quantity::Flat(1, 4),
                limit: Limit::Most(1.2),
            },
            Target {
                title: "hand-over against 8 B",
                quantity: Quantity::Slowest(1, 4, 0),
                limit: Limit::Most(1.5),
            },
        ],
    ),
    // In the rows above C never rewrites its array, so its lines stay in the receiver's cache.
    rewritten!("8 KiB rewritten and summed up", "8 KiB rewritten and summed up, direct", 8 * KIB),
    rewritten!("64 KiB rewritten and summed up", "64 KiB rewritten and summed up, direct", 64 * KIB),
    rewritten!("256 KiB rewritten and summed up", "256 KiB rewritten and summed up, direct", 256 * KIB),
    rewritten!("1 MiB rewritten and summed up", "1 MiB rewritten and summed up, direct", MIB),
    rewritten!("4 MiB rewritten and summed up", "4 MiB rewritten and summed up, direct", 4 * MIB),
    rewritten!("16 MiB rewritten and summed up", "16 MiB rewritten and summed up, direct", 16 * MIB),
    of_two(
        &[(Ours, Strided, MIB), (Theirs, Strided, MIB), (Ours, StridedDirect, MIB)],
        &[
            ratio("1 MiB, every second double", 0.5, 0, 1),
            ratio("1 MiB, every second double, direct", 0.3, 2, 1),
        ],
    ),
    of_two(
        &[(Ours, Random, MIB), (Theirs, Random, MIB), (Ours, RandomDirect, MIB)],
        &[ratio("1 MiB, random doubles", 0.7, 0, 1), ratio("1 MiB, random doubles, direct", 0.35, 2, 1)],
    ),
    of_two(
        &[(Ours, RateBuffers, 8), (Ours, RateArrays, 8), (Theirs, RateBuffers, 8), (Ours, RateDirect, 8)],
        &[
            ratio("rate of 8 B, buffer to buffer", 1.0, 0, 2),
            ratio("rate of 8 B, array to array", 2.0, 1, 2),
            ratio("rate of 8 B, direct", 1.2, 3, 2),
        ],
    ),
    of_two(
        &[(Ours, Busy, 8)],
        &[
            reported("rate to a rank that computes, us", Quantity::Micros(0)),
            // The limit allows for the JVM's own threads.
            Target {
                title: "wake-ups per message to a rank that computes",
                quantity: Quantity::Extra(0),
                limit: Limit::Most(0.01),
            },
        ],
    ),
    of_two(&[(Ours, Objects, 8), (Ours, Serial, 8)], &[ratio("1000 objects against one JVM", 1.1, 0, 1)]),
    of_two(
        &[(Ours, Garbage, 8), (Ours, GarbageDirect, 8)],
        &[
            Target {
                title: "garbage per send + receive, B",
                quantity: Quantity::Extra(0),
                limit: Limit::Most(32.0),
            },
            // One Status.
            Target {
                title: "garbage per send + receive, direct, B",
                quantity: Quantity::Extra(1),
                limit: Limit::Most(32.0),
            },
        ],
    ),
    crowded!("8 B beside a busy thread, mean", "8 B beside a busy thread, median", 8),
    crowded!("64 KiB beside a busy thread, mean", "64 KiB beside a busy thread, median", 64 * KIB),
    Comparison {
        ranks: 8,
        parts: &[(Ours, Ring, 8), (Theirs, Ring, 8)],
        targets: &[
            ratio("ring of 8, a hop", 1.4, 0, 1),
            Target {
                title: "ring of 8, worst turn, us",
                quantity: Quantity::WorstMicros(0),
                limit: Limit::Most(20.0),
            },
        ],
    },
    Comparison {
        ranks: 16,
        parts: &[(Ours, Ring, 8), (Theirs, Ring, 8)],
        targets: &[
            ratio("ring of 16, a hop", 1.4, 0, 1),
            Target {
                title: "ring of 16, worst turn, us",
                quantity: Quantity::WorstMicros(0),
                limit: Limit::Most(20.0),
            },
        ],
    },
];

/// Plain sockets and C send one message per write. Plain sockets send octets without packing, as buffers do;
/// arrays are packed and unpacked.
const TCP: &[Comparison] = &[
    late!("tcp, 1 MiB, sender computes, late, ns", SendCompute, MIB),
    late!("tcp, 1 KiB, receiver computes, late, ns", RecvCompute, KIB),
    of_two(
        &[(Ours, Arrays, 8), (Ours, Buffers, 8), (Plain, Arrays, 8), (Theirs, Arrays, 8), (Ours, Direct, 8)],
        &[
            ratio("tcp, 8 B, array to array, plain sockets", 1.15, 0, 2),
            ratio("tcp, 8 B, array to array, Open MPI", 1.0, 0, 3),
            ratio("tcp, 8 B, buffer to buffer, plain sockets", 1.15, 1, 2),
            ratio("tcp, 8 B, buffer to buffer, Open MPI", 1.0, 1, 3),
            ratio("tcp, 8 B, direct, plain sockets", 1.15, 4, 2),
            ratio("tcp, 8 B, direct, Open MPI", 1.0, 4, 3),
        ],
    ),
    of_two(
        &[(Ours, Arrays, 16 * MIB), (Ours, Direct, 16 * MIB), (Plain, Arrays, 16 * MIB)],
        &[
            ratio("tcp, 16 MiB, array to array, plain sockets", 1.6, 0, 2),
            ratio("tcp, 16 MiB, direct, plain sockets", 1.6, 1, 2),
        ],
    ),
    of_two(
        &[
            (Ours, RateBuffers, MIB),
            (Plain, RateArrays, MIB),
            (Theirs, RateArrays, MIB),
            (Ours, RateArrays, MIB),
        ],
        &[
            speed("tcp, bandwidth of 1 MiB, buffers, plain sockets", 0.9, 0, 1),
            speed("tcp, bandwidth of 1 MiB, buffers, Open MPI", 1.0, 0, 2),
            reported("tcp, bandwidth of 1 MiB, arrays, plain sockets", Quantity::Speed(3, 1)),
        ],
    ),
    of_two(
        &[
            (Ours, RateBuffers, 16 * MIB),
            (Plain, RateArrays, 16 * MIB),
            (Theirs, RateArrays, 16 * MIB),
            (Ours, RateArrays, 16 * MIB),
        ],
        &[
            speed("tcp, bandwidth of 16 MiB, buffers, plain sockets", 0.9, 0, 1),
            speed("tcp, bandwidth of 16 MiB, buffers, Open MPI", 1.0, 0, 2),
            reported("tcp, bandwidth of 16 MiB, arrays, plain sockets", Quantity::Speed(3, 1)),
        ],
    ),
    of_two(
        &[(Ours, RateArrays, 8), (Ours, RateBuffers, 8), (Plain, RateArrays, 8), (Theirs, RateArrays, 8)],
        &[
            speed("tcp, rate of 8 B, array to array, one by write", 5.0, 0, 2),
            speed("tcp, rate of 8 B, buffer to buffer, one by write", 5.0, 1, 2),
            reported("tcp, rate of 8 B, array to array, Open MPI", Quantity::Speed(0, 3)),
        ],
    ),
];

/// Least number of jobs of more than two ranks, whose medians are the figures, since the scheduler
/// distributes the ranks differently in each job.
pub const CROWDED_JOBS: usize = 9;

/// Ranks of the empty jobs, and of the jobs whose memory is measured.
pub const JOB_RANKS: u32 = 16;
/// Time of an empty job in Java divided by that of as many plain JVMs.
pub const START: Target =
    Target { title: "start and end of 16 ranks", quantity: Quantity::Ratio(0, 1), limit: Limit::Most(1.15) };
/// KiB of shared memory of an idle rank.
pub const IDLE: Target = Target {
    title: "shared memory of an idle rank, KiB",
    quantity: Quantity::Extra(0),
    limit: Limit::Most(1024.0),
};
/// KiB of shared memory of a pair that has exchanged small messages.
pub const PAIR: Target = Target {
    title: "shared memory of a used pair, KiB",
    quantity: Quantity::Extra(0),
    limit: Limit::Most(64.0),
};
/// KiB of private memory of an idle rank in Rust.
pub const PRIVATE: Target = Target {
    title: "private memory of an idle rank, KiB",
    quantity: Quantity::Extra(0),
    limit: Limit::Most(1024.0),
};

/// Time of a write and of a read of 1 MiB by one thread in Rust, divided by that of memcpy.
pub const COPIES: [Target; 2] =
    [ratio("Rust, write of 1 MiB, memcpy", 1.1, 0, 2), ratio("Rust, read of 1 MiB, memcpy", 1.1, 1, 2)];

/// Clients of a large and of a small job, whose times per client are compared.
pub const CLIENTS: [u32; 2] = [32, 8];
/// Targets of start-up: its time beyond connecting, and the time per client of the large job divided by that
/// of the small job. A quotient of up to 1.5 counts as linear growth; quadratic growth gives 4.
pub const STARTUP: [Target; 2] = [
    Target {
        title: "tcp, start-up of 32 clients beyond connecting, ms",
        quantity: Quantity::Millis(0),
        limit: Limit::Most(50.0),
    },
    Target {
        title: "tcp, start-up, share of one of 32 by one of 8",
        quantity: Quantity::Ratio(1, 2),
        limit: Limit::Most(1.5),
    },
];

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Most(most) => write!(f, "<= {}", short(*most)),
            Limit::Least(least) => write!(f, ">= {}", short(*least)),
            Limit::None => f.write_str("-"),
        }
    }
}

/// The value with three digits.
pub(crate) fn short(value: f64) -> String {
    match value {
        -10.0..10.0 => format!("{value:.2}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_names_parts_of_its_trial() {
        for comparison in GROUPS.iter().flat_map(|group| group.comparisons).chain(MPJ) {
            for target in comparison.targets {
                let last = match target.quantity {
                    Quantity::Ratio(a, b)
                    | Quantity::ExtraRatio(a, b)
                    | Quantity::Beyond(a, b)
                    | Quantity::Speed(a, b)
                    | Quantity::Flat(a, b) => a.max(b),
                    Quantity::Slowest(a, b, c) => a.max(b).max(c),
                    Quantity::WorstMicros(a) | Quantity::Micros(a) | Quantity::Millis(a) => a,
                    Quantity::Extra(a) | Quantity::Counted(a, _) => a,
                };
                assert!(last < comparison.parts.len(), "{}", target.title);
            }
        }
    }
}
