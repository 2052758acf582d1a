//! Targets of ranks over a C MPI, for each installed MPI: beside C with MPI_THREAD_MULTIPLE and messages of
//! the same length.

use super::Case::{Arrays, Buffers, Direct, RateArrays, RateBuffers, RateDirect, RateRequests, Sum};
use super::Role::{Ours, Theirs};
use super::{Comparison, Limit, MIB, Quantity, Target, of_two, ratio, reported, speed};

const fn beyond(title: &'static str, most: f64, ours: usize, theirs: usize) -> Target {
    Target { title, quantity: Quantity::Beyond(ours, theirs), limit: Limit::Most(most) }
}

/// Private KiB of a rank in Rust beyond those of a rank in C.
pub const BEYOND: Target = Target {
    title: "private memory beyond C, KiB a rank",
    quantity: Quantity::Extra(0),
    limit: Limit::Most(4096.0),
};

pub(super) const MPI: &[Comparison] = &[
    of_two(
        &[(Ours, Arrays, 8), (Ours, Buffers, 8), (Theirs, Arrays, 8)],
        &[
            beyond("8 B, array to array, ns beyond C", 180.0, 0, 2),
            beyond("8 B, buffer to buffer, ns beyond C", 100.0, 1, 2),
        ],
    ),
    of_two(
        &[(Ours, Arrays, MIB), (Ours, Buffers, MIB), (Theirs, Arrays, MIB), (Ours, Direct, MIB)],
        &[
            speed("1 MiB there and back, array to array", 0.5, 0, 2),
            speed("1 MiB there and back, direct", 0.6, 3, 2),
            speed("1 MiB there and back, buffer to buffer", 0.98, 1, 2),
        ],
    ),
    of_two(
        &[
            (Ours, Arrays, 16 * MIB),
            (Ours, Buffers, 16 * MIB),
            (Theirs, Arrays, 16 * MIB),
            (Ours, Direct, 16 * MIB),
        ],
        &[
            speed("16 MiB there and back, array to array", 0.5, 0, 2),
            speed("16 MiB there and back, direct", 0.6, 3, 2),
            speed("16 MiB there and back, buffer to buffer", 0.98, 1, 2),
        ],
    ),
    // In the rows above C never rewrites its array, so its lines stay in the receiver's cache.
    of_two(
        &[(Ours, Sum, MIB), (Theirs, Sum, MIB)],
        &[reported("1 MiB rewritten before and summed up after, arrays", Quantity::Speed(0, 1))],
    ),
    of_two(
        &[(Ours, Sum, 16 * MIB), (Theirs, Sum, 16 * MIB)],
        &[reported("16 MiB rewritten before and summed up after, arrays", Quantity::Speed(0, 1))],
    ),
    of_two(
        &[(Ours, RateBuffers, MIB), (Theirs, RateArrays, MIB), (Ours, RateArrays, MIB)],
        &[
            reported("1 MiB in windows, buffer to buffer", Quantity::Speed(0, 1)),
            reported("1 MiB in windows, array to array", Quantity::Speed(2, 1)),
        ],
    ),
    of_two(
        &[
            (Ours, RateBuffers, 8),
            (Ours, RateArrays, 8),
            (Theirs, RateBuffers, 8),
            (Ours, RateDirect, 8),
            (Ours, RateRequests, 8),
        ],
        &[
            ratio("rate of 8 B, direct, time by C's", 1.5, 3, 2),
            ratio("rate of 8 B, isend, irecv and iwaitall, time by C's", 1.5, 4, 2),
            reported("rate of 8 B, buffer to buffer, time by C's", Quantity::Ratio(0, 2)),
            reported("rate of 8 B, array to array, time by C's", Quantity::Ratio(1, 2)),
        ],
    ),
];
