//! Tests of the suite, by subject.

mod abandonment;
mod all_pairs;
pub(crate) mod collective_data;
mod collectives;
mod failures;
mod finish;
mod floods;
mod free;
mod matching;
mod payload;
mod probe;
mod requests;
mod rooted_calls;
mod split;
mod synchronous;
mod threads;
mod traffic;
mod truncation;
mod undelivered;
mod unmatched;

use crate::transport_fixtures::TransportFixture;

/// All tests with their names, for fixtures that run them at once.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, fn(&TransportFixture))> {
    let modules = [
        abandonment::TESTS,
        all_pairs::TESTS,
        collective_data::TESTS,
        collectives::TESTS,
        failures::TESTS,
        finish::TESTS,
        floods::TESTS,
        free::TESTS,
        matching::TESTS,
        payload::TESTS,
        probe::TESTS,
        requests::TESTS,
        rooted_calls::TESTS,
        split::TESTS,
        synchronous::TESTS,
        threads::TESTS,
        traffic::TESTS,
        truncation::TESTS,
        undelivered::TESTS,
        unmatched::TESTS,
    ];
    modules.into_iter().flatten().copied()
}
