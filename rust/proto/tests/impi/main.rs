//! The packets of IMPI, and the machines that exchange them.

mod barrier;
mod cancel;
mod captures;
mod fini;
mod flow;
mod golden;
mod long;
#[path = "../random/mod.rs"]
mod random;
mod script;
mod short;
mod simulation;
mod vectors;
mod violations;
mod world;
