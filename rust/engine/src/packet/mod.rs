//! The packet engine: it matches the packets that a transport moves.

mod comm_interface;
mod completion;
mod credit;
mod engine;
mod fast_recv;
mod finish;
mod foreign_order;
mod freed;
mod kept_slabs;
mod membership;
mod notices;
mod outbox;
mod partial_recv;
mod peers;
mod pipeline;
mod plain_messages;
mod posted_recv;
mod probe;
mod progress;
mod progress_thread_interface;
mod progress_threads;
mod rank_end;
mod recv;
mod recv_queue;
#[cfg(not(loom))]
mod remains;
mod rendezvous;
mod requests;
mod send;
mod send_net;
mod slot_wait;
mod split;
mod unexpected;
mod waiters;

pub use engine::PacketEngine;
pub(crate) use membership::Membership;
pub use posted_recv::ReceiveArgs;
