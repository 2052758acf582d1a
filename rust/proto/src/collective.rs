//! Collective operations of a communicator as state machines over point-to-point messages.
//!
//! A machine runs on every rank of the communicator and uses small point-to-point messages on its collective
//! context ([`crate::context::collective`]). It does no I/O: the driver carries out its [`Action`]s and
//! passes in the received messages. The machines are [`Barrier`], [`Creation`] (dup, create, split) and
//! [`IntercommCreation`], whose leaders also send messages through another communicator. The C MPI engine
//! uses the collective operations of its library.
//!
//! Tags differ between machines and between the rounds of one machine. That separates consecutive operations
//! on one communicator: all ranks begin them in the same order (MPI 4.1, 6.1), and messages of one source in
//! one context do not overtake each other, so the first message with a tag belongs to the earlier operation.

mod barrier;
mod creation;
mod intercomm;
mod machine;
mod messages;
mod refusal;
mod tag;

pub use barrier::Barrier;
pub use creation::{Communicator, Creation};
pub use intercomm::{IntercommCreation, Intercommunicator, peer_tag};
pub use machine::{Action, Collective, ProtocolError};
pub use messages::payload_len_max;
pub use refusal::Refusal;
pub use tag::{ABANDONED_TAG, RETIRED_TAG, data_tag};
