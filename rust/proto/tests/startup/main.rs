//! The machines of the startup protocol: against captured octets, against each other, against damage.

mod authentication;
mod cuts;
mod deadlines;
mod golden;
mod job;
#[path = "../random/mod.rs"]
mod random;
mod refusals;
mod replies;
mod simulation;
mod vectors;
