//! The packet engine: it matches the packets that a transport moves.

mod comm_interface;
mod completion;
mod credit;
pub(crate) mod engine;
pub(crate) mod fast_recv;
pub(crate) mod finish;
mod foreign_order;
pub(crate) mod freed;
mod notices;
mod outbox;
mod partial_recv;
mod peers;
mod plain_messages;
pub(crate) mod posted_recv;
pub(crate) mod probe;
mod progress;
mod progress_threads;
mod rank_end;
pub(crate) mod recv;
mod recv_queue;
mod rendezvous;
pub(crate) mod requests;
pub(crate) mod send;
mod send_net;
mod split;
mod unexpected;
mod waiters;
