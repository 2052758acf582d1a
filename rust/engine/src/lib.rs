//! The engines of a rank: requests, matching, communicators, collective operations.
//!
//! The packet engine matches the packets of a transport. The C MPI engine hands messages to the machine's C
//! MPI. The transports are in `mpjdev-transport`, the pure state machines in `mpjdev-proto`.
#![forbid(unsafe_code)]

mod abandonment;
mod any_engine;
mod clients;
pub mod collective;
mod collective_state;
pub mod comm;
mod engine;
pub mod error;
mod exchanges;
#[cfg(not(loom))]
pub mod mpi;
mod operation;
mod packet;
mod rank;
mod request;
mod request_table;
mod wait;

pub use any_engine::FastRecv;
pub use clients::Clients;
pub use comm::{Comm, Done, RecvFrom, Status};
pub use error::DeviceError;
/// Why a communicator cannot be made.
pub use mpjdev_proto::collective::Refusal;
/// Handles for values that Java refers to by number.
pub use mpjdev_sys::handle_table;
/// Mutexes that are taken in one order.
pub use mpjdev_sys::lock_order;
/// Memory for the elements of a collective operation.
pub use mpjdev_sys::scratch;
/// Values that threads keep for themselves.
pub use mpjdev_sys::thread_cache;
pub use mpjdev_transport::config::Config;
pub use mpjdev_transport::wait::{Uninterruptible, WaitControl, deadline_after};
pub use mpjdev_transport::{config, pool, stats};
pub use operation::{Accept, LastBarrier, Mode, Probed, SentAhead, StartedRecv, Unreceived};
pub use packet::{PacketEngine, ReceiveArgs};
pub use request::{Completed, RequestId};
