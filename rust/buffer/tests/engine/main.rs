//! The packing engine against a second, naive implementation of the format.

mod atomicity;
mod capacity;
mod continuation;
mod damaged;
mod ledger;
mod naive;
mod patches;
mod physical;
mod private;
mod round_trips;
mod views;

/// Configuration of a test that runs `n` random cases, or MPJDEV_SOAK times as many.
fn cases(n: u32) -> proptest::test_runner::Config {
    let factor =
        std::env::var("MPJDEV_SOAK").map_or(1, |text| text.parse().expect("MPJDEV_SOAK is a number"));
    proptest::test_runner::Config::with_cases(n * factor)
}
