//! One point-to-point suite that runs over every transport: see `transport_fixtures.rs`.
//!
//! The suite uses only [`mpjdev_engine::Comm`]. `MPJDEV_SOAK=1` makes the amounts larger.
#![forbid(unsafe_code)]

mod cuts;
mod rank_harness;
mod raw;
mod side_channel;
mod slots;
mod suite;
mod test_message;
mod transport_fixtures;
mod under_mpirun;
mod wake_up;
