//! The tests, each with what it proves.

mod all_pairs;
mod collectives;
mod failures;
mod finishing;
mod floods;
mod matching;
mod payload;
mod probing;
mod requests;
mod splitting;
mod synchronous;
mod threads;
mod traffic;
mod truncation;

use crate::worlds::World;

/// All tests, for worlds that run them at once, with their names.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, fn(&World))> {
    let modules = [
        all_pairs::TESTS,
        collectives::TESTS,
        failures::TESTS,
        finishing::TESTS,
        floods::TESTS,
        matching::TESTS,
        payload::TESTS,
        probing::TESTS,
        requests::TESTS,
        splitting::TESTS,
        synchronous::TESTS,
        threads::TESTS,
        traffic::TESTS,
        truncation::TESTS,
    ];
    modules.into_iter().flatten().copied()
}
