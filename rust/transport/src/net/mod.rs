//! Common parts of the transports between ranks that share no memory.

pub(super) mod atomic_state;
pub(super) mod control;
pub(super) mod copy;
pub(super) mod epoll_waiter;
pub(super) mod incoming_message;
pub(super) mod net_rank;
pub(super) mod packed_octets;
pub(super) mod peer_fault;
pub(super) mod peer_table;
pub(super) mod poller;
pub mod progress_thread;
pub(super) mod transport;
