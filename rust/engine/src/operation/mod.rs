//! The arguments and results of operations on messages, the same over either engine.

mod accept;
mod fast_recv;
mod last_barrier;
mod mode;
mod probed;
mod received_message;
mod selection;
mod send_args;
mod sent_ahead;
mod started_recv;
mod undelivered;
mod unreceived;

pub use accept::Accept;
pub(crate) use fast_recv::FastRecv;
pub use last_barrier::LastBarrier;
pub use mode::Mode;
pub use probed::Probed;
pub(crate) use received_message::{damaged, lengths, payload_len, physical, received};
pub(crate) use selection::Selection;
pub(crate) use send_args::SendArgs;
pub use sent_ahead::SentAhead;
pub use started_recv::StartedRecv;
pub(crate) use undelivered::Undelivered;
pub use unreceived::Unreceived;
