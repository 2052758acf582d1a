//! The machines of the startup protocol: against captured octets, against each other, against damage.

mod authentication;
mod cuts;
mod deadlines;
mod golden;
mod job;
mod refusals;
mod replies;
mod simulation;
mod vectors;
