//! Schedules carried out by simulated ranks, compared with the results of loops over all ranks.

mod kernels;
mod limits;
mod model;
mod moves;
mod random;
mod reductions;
