//! The figures that messages between processes have to reach, for each transport: all of them, and only here.

mod datagrams;
mod delay;
mod measured;
mod mpi;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use datagrams::Count;
use delay::late;
pub use measured::{Held, Verdict, medians, table};
pub use mpi::BEYOND;

use super::contestant::Transport;
use super::protocol::Case;

/// Contestants of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Our ranks in Java, as processes.
    Ours,
    /// The C program under an MPI, over the same transport.
    Theirs,
    /// Plain sockets, of the same transport.
    Plain,
    /// Our ranks in Java, as processes over TCP.
    OverTcp,
    /// The baseline in Java, over shared memory.
    Baseline,
    /// Aeron in Java: IPC beside shared memory, UDP beside datagrams.
    Aeron,
}

/// One that takes turns with the others of its trial.
pub type Part = (Who, Case, u64);

/// Some that take turns, and what is asked of them.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// Ranks of each.
    pub ranks: u32,
    /// Parts of the contestants.
    pub parts: &'static [Part],
    /// Targets; numbers of parts are indexes of that list.
    pub asked: &'static [Asked],
}

impl Trial {
    /// Busy threads beside the ranks: one where each trip is timed.
    pub fn busy(&self) -> u32 {
        u32::from(self.parts.iter().any(|part| part.1 == Case::Timed))
    }
}

/// One figure.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Name in reports.
    pub title: &'static str,
    /// Of what.
    pub of: Of,
    /// Limit of the figure.
    pub limit: Limit,
}

/// Limit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// So far at most.
    Most(f64),
    /// So far at least.
    Least(f64),
    /// Wherever it likes: it is only reported.
    None,
}

/// Targets for ranks over one transport.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Transport of our ranks, and of the others.
    pub transport: Transport,
    /// Trials that take turns.
    pub trials: &'static [Trial],
}

/// Measured value that has a target.
#[derive(Clone, Copy, Debug)]
pub enum Of {
    /// Time of the first by time of the second.
    Ratio(usize, usize),
    /// Second result of the first by that of the second.
    ExtraRatio(usize, usize),
    /// Nanoseconds of the first beyond those of the second.
    Beyond(usize, usize),
    /// Time of the second by time of the first: how many times as fast that is.
    Speed(usize, usize),
    /// Time of the slowest by that of the fastest, from the first of them to the last.
    Flat(usize, usize),
    /// Time of the slowest, from the first of them to the second, by time of the third.
    Slowest(usize, usize, usize),
    /// Microseconds of one in its worst turn.
    WorstMicros(usize),
    /// Microseconds of one.
    Micros(usize),
    /// Milliseconds of one.
    Millis(usize),
    /// Second result of the case.
    Extra(usize),
    /// Counters of ranks over datagrams.
    Counted(usize, Count),
}

const fn ratio(title: &'static str, most: f64, ours: usize, theirs: usize) -> Asked {
    Asked { title, of: Of::Ratio(ours, theirs), limit: Limit::Most(most) }
}

const fn median(title: &'static str, most: f64, ours: usize, theirs: usize) -> Asked {
    Asked { title, of: Of::ExtraRatio(ours, theirs), limit: Limit::Most(most) }
}

const fn speed(title: &'static str, least: f64, ours: usize, theirs: usize) -> Asked {
    Asked { title, of: Of::Speed(ours, theirs), limit: Limit::Least(least) }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

use Case::{
    Arrays, Buffers, Busy, Direct, Garbage, GarbageDirect, Objects, Random, RandomDirect, RateArrays,
    RateBuffers, RateDirect, Ring, Serial, Strided, StridedDirect, Sum, SumDirect, Timed,
};
use Who::{Aeron, Baseline, Ours, Plain, Theirs};

/// All groups.
pub const GROUPS: [Group; 4] = [
    Group { transport: Transport::Shm, trials: SHM },
    Group { transport: Transport::Tcp, trials: TCP },
    Group { transport: Transport::Udp, trials: datagrams::UDP },
    Group { transport: Transport::Mpi, trials: mpi::MPI },
];

/// The transports of these groups.
pub const TRANSPORTS: [Transport; 4] =
    [GROUPS[0].transport, GROUPS[1].transport, GROUPS[2].transport, GROUPS[3].transport];

/// Arrays there and back, by buffers and directly, beside C.
macro_rules! trip {
    ($arrays:literal, $arrays_most:literal, $direct:literal, $direct_most:literal, $octets:expr) => {
        Trial {
            ranks: 2,
            parts: &[(Ours, Arrays, $octets), (Ours, Direct, $octets), (Theirs, Arrays, $octets)],
            asked: &[ratio($arrays, $arrays_most, 0, 2), ratio($direct, $direct_most, 1, 2)],
        }
    };
}

/// Elements that the sender has just written and the receiver reads, in place and directly, beside C.
macro_rules! rewritten {
    ($views:literal, $direct:literal, $octets:expr) => {
        Trial {
            ranks: 2,
            parts: &[(Ours, Sum, $octets), (Ours, SumDirect, $octets), (Theirs, Sum, $octets)],
            asked: &[ratio($views, 0.8, 0, 2), ratio($direct, 0.6, 1, 2)],
        }
    };
}

/// Trips beside busy threads, each timed, beside C.
macro_rules! crowded {
    ($mean:literal, $median:literal, $octets:expr) => {
        Trial {
            ranks: 2,
            parts: &[(Ours, Timed, $octets), (Theirs, Timed, $octets)],
            asked: &[ratio($mean, 1.0, 0, 1), median($median, 1.0, 0, 1)],
        }
    };
}

const SHM: &[Trial] = &[
    late!("shm, 1 MiB, sender computes, late, ns", SendCompute, MIB),
    late!("shm, 1 KiB, receiver computes, late, ns", RecvCompute, KIB),
    Trial {
        ranks: 2,
        parts: &[(Ours, Arrays, 8), (Ours, Buffers, 8), (Theirs, Arrays, 8), (Ours, Direct, 8)],
        asked: &[
            ratio("8 B, array to array", 1.25, 0, 2),
            ratio("8 B, buffer to buffer", 0.8, 1, 2),
            ratio("8 B, direct", 0.95, 3, 2),
        ],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Buffers, 8), (Baseline, Buffers, 8), (Aeron, Buffers, 8)],
        asked: &[
            ratio("8 B, buffer to buffer, baseline", 1.3, 0, 1),
            ratio("8 B, buffer to buffer, Aeron IPC", 1.2, 0, 2),
        ],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Arrays, 64 * KIB), (Baseline, Arrays, 64 * KIB), (Aeron, Arrays, 64 * KIB)],
        asked: &[
            ratio("64 KiB, array to array, baseline", 1.4, 0, 1),
            Asked { title: "64 KiB, array to array, Aeron IPC", of: Of::Ratio(0, 2), limit: Limit::None },
        ],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Arrays, MIB), (Baseline, Arrays, MIB)],
        asked: &[ratio("1 MiB, array to array, baseline", 1.4, 0, 1)],
    },
    trip!("1 KiB, array to array", 1.3, "1 KiB, direct", 1.0, KIB),
    trip!("8 KiB, array to array", 1.0, "8 KiB, direct", 0.7, 8 * KIB),
    trip!("64 KiB, array to array", 0.8, "64 KiB, direct", 0.7, 64 * KIB),
    trip!("256 KiB, array to array", 0.95, "256 KiB, direct", 0.7, 256 * KIB),
    trip!("1 MiB, array to array", 0.95, "1 MiB, direct", 0.7, MIB),
    trip!("4 MiB, array to array", 0.95, "4 MiB, direct", 0.7, 4 * MIB),
    trip!("16 MiB, array to array", 0.9, "16 MiB, direct", 0.7, 16 * MIB),
    Trial {
        ranks: 2,
        parts: &[
            (Ours, Buffers, 8),
            (Ours, Buffers, 64 * KIB),
            (Ours, Buffers, MIB),
            (Ours, Buffers, 16 * MIB),
            (Ours, Buffers, 64 * MIB),
        ],
        asked: &[
            Asked { title: "hand-over 64 KiB to 64 MiB, flat", of: Of::Flat(1, 4), limit: Limit::Most(1.2) },
            Asked { title: "hand-over against 8 B", of: Of::Slowest(1, 4, 0), limit: Limit::Most(1.5) },
        ],
    },
    // Beside the rows above, in which C need not fetch what has not changed.
    rewritten!("64 KiB rewritten and summed up", "64 KiB rewritten and summed up, direct", 64 * KIB),
    rewritten!("1 MiB rewritten and summed up", "1 MiB rewritten and summed up, direct", MIB),
    rewritten!("16 MiB rewritten and summed up", "16 MiB rewritten and summed up, direct", 16 * MIB),
    Trial {
        ranks: 2,
        parts: &[(Ours, Strided, MIB), (Theirs, Strided, MIB), (Ours, StridedDirect, MIB)],
        asked: &[
            ratio("1 MiB, every second double", 0.5, 0, 1),
            ratio("1 MiB, every second double, direct", 0.3, 2, 1),
        ],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Random, MIB), (Theirs, Random, MIB), (Ours, RandomDirect, MIB)],
        asked: &[
            ratio("1 MiB, random doubles", 0.7, 0, 1),
            ratio("1 MiB, random doubles, direct", 0.35, 2, 1),
        ],
    },
    Trial {
        ranks: 2,
        parts: &[
            (Ours, RateBuffers, 8),
            (Ours, RateArrays, 8),
            (Theirs, RateBuffers, 8),
            (Ours, RateDirect, 8),
        ],
        asked: &[
            ratio("rate of 8 B, buffer to buffer", 1.0, 0, 2),
            ratio("rate of 8 B, array to array", 2.0, 1, 2),
            ratio("rate of 8 B, direct", 1.2, 3, 2),
        ],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Busy, 8)],
        asked: &[
            Asked { title: "rate to a rank that computes, us", of: Of::Micros(0), limit: Limit::None },
            // What the JVM's own threads do in that time is far less.
            Asked { title: "its wake-ups per message", of: Of::Extra(0), limit: Limit::Most(0.01) },
        ],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Objects, 8), (Ours, Serial, 8)],
        asked: &[ratio("1000 objects against one JVM", 1.1, 0, 1)],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Garbage, 8), (Ours, GarbageDirect, 8)],
        asked: &[
            Asked { title: "garbage per send + receive, B", of: Of::Extra(0), limit: Limit::Most(32.0) },
            // A status.
            Asked {
                title: "garbage per send + receive, direct, B",
                of: Of::Extra(1),
                limit: Limit::Most(32.0),
            },
        ],
    },
    crowded!("8 B beside a busy thread, mean", "8 B beside a busy thread, median", 8),
    crowded!("64 KiB beside a busy thread, mean", "64 KiB beside a busy thread, median", 64 * KIB),
    Trial {
        ranks: 8,
        parts: &[(Ours, Ring, 8), (Theirs, Ring, 8)],
        asked: &[
            ratio("ring of 8, a hop", 1.4, 0, 1),
            Asked { title: "ring of 8, worst turn, us", of: Of::WorstMicros(0), limit: Limit::Most(20.0) },
        ],
    },
    Trial {
        ranks: 16,
        parts: &[(Ours, Ring, 8), (Theirs, Ring, 8)],
        asked: &[
            ratio("ring of 16, a hop", 1.4, 0, 1),
            Asked { title: "ring of 16, worst turn, us", of: Of::WorstMicros(0), limit: Limit::Most(20.0) },
        ],
    },
];

/// Contestants that send one message with each write stand beside those that may send more. Plain sockets
/// send octets as they are, as our buffers do; arrays are packed and unpacked besides.
const TCP: &[Trial] = &[
    late!("tcp, 1 MiB, sender computes, late, ns", SendCompute, MIB),
    late!("tcp, 1 KiB, receiver computes, late, ns", RecvCompute, KIB),
    Trial {
        ranks: 2,
        parts: &[(Ours, Arrays, 8), (Ours, Buffers, 8), (Plain, Arrays, 8), (Theirs, Arrays, 8)],
        asked: &[
            ratio("tcp, 8 B, array to array, plain sockets", 1.25, 0, 2),
            ratio("tcp, 8 B, array to array, Open MPI", 1.0, 0, 3),
            ratio("tcp, 8 B, buffer to buffer, plain sockets", 1.25, 1, 2),
            ratio("tcp, 8 B, buffer to buffer, Open MPI", 1.0, 1, 3),
        ],
    },
    Trial {
        ranks: 2,
        parts: &[
            (Ours, RateBuffers, MIB),
            (Plain, RateArrays, MIB),
            (Theirs, RateArrays, MIB),
            (Ours, RateArrays, MIB),
        ],
        asked: &[
            speed("tcp, bandwidth of 1 MiB, buffers, plain sockets", 0.9, 0, 1),
            speed("tcp, bandwidth of 1 MiB, buffers, Open MPI", 1.0, 0, 2),
            Asked {
                title: "tcp, bandwidth of 1 MiB, arrays, plain sockets",
                of: Of::Speed(3, 1),
                limit: Limit::None,
            },
        ],
    },
    Trial {
        ranks: 2,
        parts: &[
            (Ours, RateBuffers, 16 * MIB),
            (Plain, RateArrays, 16 * MIB),
            (Theirs, RateArrays, 16 * MIB),
            (Ours, RateArrays, 16 * MIB),
        ],
        asked: &[
            speed("tcp, bandwidth of 16 MiB, buffers, plain sockets", 0.9, 0, 1),
            speed("tcp, bandwidth of 16 MiB, buffers, Open MPI", 1.0, 0, 2),
            Asked {
                title: "tcp, bandwidth of 16 MiB, arrays, plain sockets",
                of: Of::Speed(3, 1),
                limit: Limit::None,
            },
        ],
    },
    Trial {
        ranks: 2,
        parts: &[
            (Ours, RateArrays, 8),
            (Ours, RateBuffers, 8),
            (Plain, RateArrays, 8),
            (Theirs, RateArrays, 8),
        ],
        asked: &[
            speed("tcp, rate of 8 B, array to array, one by write", 5.0, 0, 2),
            speed("tcp, rate of 8 B, buffer to buffer, one by write", 5.0, 1, 2),
            Asked {
                title: "tcp, rate of 8 B, array to array, Open MPI",
                of: Of::Speed(0, 3),
                limit: Limit::None,
            },
        ],
    },
];

/// Jobs of more than two ranks, whose medians are the figures: processes share processors in another way in
/// each job.
pub const CROWDED_JOBS: usize = 9;

/// Ranks of the jobs that are empty, and of those whose memory is looked at.
pub const JOB_RANKS: u32 = 16;
/// Time of an empty job in Java by that of as many plain JVMs.
pub const START: Asked =
    Asked { title: "start and end of 16 ranks", of: Of::Ratio(0, 1), limit: Limit::Most(1.3) };
/// KiB of shared memory of a rank that has done nothing.
pub const IDLE: Asked =
    Asked { title: "shared memory of an idle rank, KiB", of: Of::Extra(0), limit: Limit::Most(1024.0) };
/// KiB of shared memory that a pair takes which has exchanged something small.
pub const PAIR: Asked =
    Asked { title: "shared memory of a used pair, KiB", of: Of::Extra(0), limit: Limit::Most(64.0) };
/// KiB of private memory of a rank in Rust, which has no JVM.
pub const PRIVATE: Asked =
    Asked { title: "private memory of an idle rank, KiB", of: Of::Extra(0), limit: Limit::Most(1024.0) };

/// Time of a write and of a read of 1 MiB by one thread in Rust, by that of a memcpy.
pub const COPIES: [Asked; 2] =
    [ratio("Rust, write of 1 MiB, memcpy", 1.1, 0, 2), ratio("Rust, read of 1 MiB, memcpy", 1.1, 1, 2)];

/// Clients of a job that starts up, and of one that a client's share is held against.
pub const CLIENTS: [u32; 2] = [32, 8];
/// Targets of start-up: its time beyond connecting, and a client's share among many, divided by that among
/// few. A quotient of 1.5 still counts as linear, a choice of ours; quadratic growth gives 4.
pub const STARTUP: [Asked; 2] = [
    Asked {
        title: "tcp, start-up of 32 clients beyond connecting, ms",
        of: Of::Millis(0),
        limit: Limit::Most(50.0),
    },
    Asked {
        title: "tcp, start-up, share of one of 32 by one of 8",
        of: Of::Ratio(1, 2),
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

/// Three digits.
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
        for trial in GROUPS.iter().flat_map(|group| group.trials) {
            for asked in trial.asked {
                let last = match asked.of {
                    Of::Ratio(a, b)
                    | Of::ExtraRatio(a, b)
                    | Of::Beyond(a, b)
                    | Of::Speed(a, b)
                    | Of::Flat(a, b) => a.max(b),
                    Of::Slowest(a, b, c) => a.max(b).max(c),
                    Of::WorstMicros(a) | Of::Micros(a) | Of::Millis(a) => a,
                    Of::Extra(a) | Of::Counted(a, _) => a,
                };
                assert!(last < trial.parts.len(), "{}", asked.title);
            }
        }
    }
}
