//! The tests, each with what it proves.

mod abandonment;
mod all_pairs;
mod collectives;
mod failures;
mod finishing;
mod floods;
mod freeing;
mod matching;
mod payload;
mod probing;
mod requests;
mod splitting;
mod synchronous;
mod threads;
mod traffic;
mod truncation;
mod undelivered;
mod unmatched;

use crate::worlds::World;

/// All tests, for worlds that run them at once, with their names.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, fn(&World))> {
    let modules = [
        abandonment::TESTS,
        all_pairs::TESTS,
        collectives::TESTS,
        failures::TESTS,
        finishing::TESTS,
        floods::TESTS,
        freeing::TESTS,
        matching::TESTS,
        payload::TESTS,
        probing::TESTS,
        requests::TESTS,
        splitting::TESTS,
        synchronous::TESTS,
        threads::TESTS,
        traffic::TESTS,
        truncation::TESTS,
        undelivered::TESTS,
        unmatched::TESTS,
    ];
    modules.into_iter().flatten().copied()
}
