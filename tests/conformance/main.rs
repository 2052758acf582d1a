//! One point-to-point suite that runs over every transport: see `worlds.rs`.
//!
//! The suite knows a transport only by what [`mpjdev_engine::Comm`] shows of it. `MPJDEV_SOAK=1` makes the
//! amounts larger.
#![forbid(unsafe_code)]

mod board;
mod cuts;
mod harness;
mod letter;
mod raw;
mod suite;
mod under_mpirun;
mod wake_up;
mod worlds;
