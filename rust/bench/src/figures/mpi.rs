//! The figures of ranks over an MPI, for each MPI that is there: beside C over the same one that lets threads
//! call it, with messages as long as ours.

use super::Case::{Arrays, Buffers, Direct, RateArrays, RateBuffers, Sum};
use super::Who::{Ours, Theirs};
use super::{Asked, Limit, MIB, Of, Trial, speed};

const fn beyond(title: &'static str, most: f64, ours: usize, theirs: usize) -> Asked {
    Asked { title, of: Of::Beyond(ours, theirs), limit: Limit::Most(most) }
}

const fn reported(title: &'static str, of: Of) -> Asked {
    Asked { title, of, limit: Limit::None }
}

/// KiB of private memory of a rank in Rust beyond that of one in C.
pub const BEYOND: Asked =
    Asked { title: "private memory beyond C, KiB a rank", of: Of::Extra(0), limit: Limit::Most(4096.0) };

pub(super) const MPI: &[Trial] = &[
    Trial {
        ranks: 2,
        parts: &[(Ours, Arrays, 8), (Ours, Buffers, 8), (Theirs, Arrays, 8)],
        asked: &[
            beyond("8 B, array to array, ns beyond C", 180.0, 0, 2),
            beyond("8 B, buffer to buffer, ns beyond C", 100.0, 1, 2),
        ],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Arrays, MIB), (Ours, Buffers, MIB), (Theirs, Arrays, MIB), (Ours, Direct, MIB)],
        asked: &[
            speed("1 MiB there and back, array to array", 0.5, 0, 2),
            speed("1 MiB there and back, direct", 0.6, 3, 2),
            speed("1 MiB there and back, buffer to buffer", 0.98, 1, 2),
        ],
    },
    Trial {
        ranks: 2,
        parts: &[
            (Ours, Arrays, 16 * MIB),
            (Ours, Buffers, 16 * MIB),
            (Theirs, Arrays, 16 * MIB),
            (Ours, Direct, 16 * MIB),
        ],
        asked: &[
            speed("16 MiB there and back, array to array", 0.5, 0, 2),
            speed("16 MiB there and back, direct", 0.6, 3, 2),
            speed("16 MiB there and back, buffer to buffer", 0.98, 1, 2),
        ],
    },
    // Above, C never writes to what it sends, which its peer then finds in its own cache, or in memory.
    Trial {
        ranks: 2,
        parts: &[(Ours, Sum, MIB), (Theirs, Sum, MIB)],
        asked: &[reported("1 MiB rewritten before and summed up after, arrays", Of::Speed(0, 1))],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Sum, 16 * MIB), (Theirs, Sum, 16 * MIB)],
        asked: &[reported("16 MiB rewritten before and summed up after, arrays", Of::Speed(0, 1))],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, RateBuffers, MIB), (Theirs, RateArrays, MIB), (Ours, RateArrays, MIB)],
        asked: &[
            reported("1 MiB in windows, buffer to buffer", Of::Speed(0, 1)),
            reported("1 MiB in windows, array to array", Of::Speed(2, 1)),
        ],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, RateBuffers, 8), (Ours, RateArrays, 8), (Theirs, RateBuffers, 8)],
        asked: &[
            reported("rate of 8 B, buffer to buffer, time by C's", Of::Ratio(0, 2)),
            reported("rate of 8 B, array to array, time by C's", Of::Ratio(1, 2)),
        ],
    },
];
