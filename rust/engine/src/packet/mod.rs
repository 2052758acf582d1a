//! The packet engine: it matches the packets that a transport moves.

mod accounts;
mod begun;
mod beside;
pub(crate) mod direct;
pub(crate) mod ending;
pub(crate) mod endpoint;
pub(crate) mod freed;
mod outbox;
mod pairing;
pub(crate) mod probing;
mod progress;
mod remote;
pub(crate) mod requests;
pub(crate) mod sending;
mod undecided;
pub(crate) mod unexpected;
pub(crate) mod unreceived;
