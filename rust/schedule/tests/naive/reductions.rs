//! Calls that combine vectors, for every number of ranks and every root.

use crate::model::{Call, Case, Sort};
use crate::moves::check_all;

/// Operations with and without rank order, in pairs of elements, on parts or on whole vectors.
fn operations(case: Case) -> Vec<Case> {
    let sorts = Sort::ALL.into_iter().flat_map(|sort| [true, false].map(|is_divisible| (sort, is_divisible)));
    sorts.map(|(sort, is_divisible)| Case { sort, is_divisible, ..case }).collect()
}

#[test]
fn vectors_are_combined_in_rank_order() {
    for call in Call::REDUCTIONS {
        check_all(call, operations);
    }
}

#[test]
fn long_vectors_are_combined_in_rank_order() {
    for call in Call::REDUCTIONS {
        for (size, sort) in [(2, Sort::Sum), (6, Sort::Pairs), (7, Sort::Sum), (8, Sort::Packed)] {
            // The vector of a reduce_scatter has one block for each rank.
            let count = if call == Call::ReduceScatter { 65536 / size as usize } else { 65536 };
            for (choices, places) in call.choices() {
                Case { choices, places, sort, ..Case::new(call, size, size / 2, count) }.check();
            }
        }
    }
}
