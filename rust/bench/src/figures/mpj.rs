//! Targets of package `mpi`, for ranks over any transport of ours: beside direct calls of mpjdev, and C.

use super::Case::{Column, Direct, GarbageMpi, Indexed, Mpi, ObjectsMpi, RateMpi, Serial};
use super::Role::{Ours, Theirs};
use super::{Comparison, KIB, Limit, MIB, Quantity, Target, of_two, ratio};

const fn beside_direct(title: &'static str) -> [Target; 1] {
    [ratio(title, 1.05, 0, 1)]
}

/// Comparisons of package `mpi`.
pub const MPJ: &[Comparison] = &[
    of_two(
        &[(Ours, Mpi, 8), (Ours, Direct, 8), (Theirs, Mpi, 8)],
        &[
            ratio("mpi, 8 B", 1.1, 0, 2),
            Target {
                title: "mpi, 8 B, ns beyond direct calls",
                quantity: Quantity::Beyond(0, 1),
                limit: Limit::Most(20.0),
            },
        ],
    ),
    of_two(&[(Ours, Mpi, 64 * KIB), (Ours, Direct, 64 * KIB)], &beside_direct("mpi, 64 KiB, direct calls")),
    of_two(&[(Ours, Mpi, MIB), (Ours, Direct, MIB)], &beside_direct("mpi, 1 MiB, direct calls")),
    of_two(&[(Ours, Mpi, 16 * MIB), (Ours, Direct, 16 * MIB)], &beside_direct("mpi, 16 MiB, direct calls")),
    of_two(&[(Ours, Column, MIB), (Theirs, Column, MIB)], &[ratio("mpi, 1 MiB, column", 0.45, 0, 1)]),
    of_two(
        &[(Ours, Indexed, MIB), (Theirs, Indexed, MIB)],
        &[ratio("mpi, 1 MiB, random doubles", 0.55, 0, 1)],
    ),
    of_two(
        &[(Ours, ObjectsMpi, 8), (Ours, Serial, 8)],
        &[ratio("mpi, 1000 objects against one JVM", 1.1, 0, 1)],
    ),
    of_two(
        &[(Ours, RateMpi, 8), (Theirs, RateMpi, 8)],
        &[ratio("mpi, window of 64 requests, 8 B", 1.3, 0, 1)],
    ),
    of_two(
        &[(Ours, GarbageMpi, 8)],
        // One Status.
        &[Target {
            title: "mpi, garbage per send + receive, B",
            quantity: Quantity::Extra(0),
            limit: Limit::Most(64.0),
        }],
    ),
];
