//! Random calls: groups, roots, lengths of blocks, operations, algorithms and orders of the ranks' steps.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::Config;

use crate::model::{Call, Case, Sort};

/// Cases, five hundred times as many with MPJDEV_SOAK.
fn cases() -> u32 {
    if std::env::var_os("MPJDEV_SOAK").is_some() { 1_000_000 } else { 2_000 }
}

fn case() -> impl Strategy<Value = Case> {
    let call = select([&Call::MOVES[..], &Call::REDUCTIONS[..]].concat());
    let group = (1u32..=33).prop_flat_map(|size| (Just(size), 0..size));
    let choice = any::<prop::sample::Index>();
    let parts = (call, group, 0usize..40, select(&Sort::ALL[..]), any::<bool>(), choice, any::<u64>());
    parts.prop_map(|(call, (size, root), count, sort, is_divisible, choice, seed)| {
        let (choices, places) = *choice.get(&call.choices());
        Case { call, size, root, count, sort, is_divisible, choices, places, seed }
    })
}

proptest! {
    #![proptest_config(Config::with_cases(cases()))]

    #[test]
    fn random_calls_give_the_results_of_loops(case in case()) {
        case.check();
    }
}
