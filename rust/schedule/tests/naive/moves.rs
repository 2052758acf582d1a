//! Calls that move elements, for every number of ranks and every root.

use crate::model::{Call, Case};

/// Runs a call for every group of up to 33 ranks, with each root and each algorithm.
pub(crate) fn check_all(call: Call, vary: impl Fn(Case) -> Vec<Case>) {
    for size in 1..=33 {
        let roots = if call.has_root() { size } else { 1 };
        let counts = [0, 1, 7, size as usize - 1, size as usize];
        for (root, count) in (0..roots).flat_map(|root| counts.map(|count| (root, count))) {
            for (choices, places) in call.choices() {
                let seed = u64::from(size) << 32 | u64::from(root) << 16 | count as u64;
                vary(Case { choices, places, seed, ..Case::new(call, size, root, count) })
                    .iter()
                    .for_each(Case::check);
            }
        }
    }
}

#[test]
fn blocks_reach_their_ranks() {
    for call in Call::MOVES {
        check_all(call, |case| vec![case]);
    }
}

/// Elements of the long blocks.
const LONG: usize = 65536;

#[test]
fn long_blocks_reach_their_ranks() {
    for call in Call::MOVES {
        // All pairs of ranks exchange blocks.
        let is_square = matches!(call, Call::Alltoall | Call::Alltoallv);
        let sizes: &[u32] = if is_square { &[2, 5, 8] } else { &[2, 7, 8, 16] };
        for &size in sizes {
            for (choices, places) in call.choices() {
                Case { choices, places, ..Case::new(call, size, size / 2, LONG) }.check();
            }
        }
    }
}
