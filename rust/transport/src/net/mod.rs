//! Common parts of the transports between ranks that share no memory.

pub(super) mod arriving;
pub(super) mod copying;
pub(super) mod extras;
pub(super) mod known;
pub(super) mod own;
pub(super) mod poller;
pub mod pump;
pub(super) mod sentry;
pub(super) mod teller;
