//! The profile of a rank: number, octets and time of its calls, by call and peer.
//!
//! The native methods begin and end a [`Span`] for each call; the engine notes the messages. Each thread
//! counts for itself (`recorder`), and the end of the rank writes the sum to a file ([`rank_profile`]),
//! which the launcher reads. Nothing is counted unless [`VARIABLE`] names a folder; a call then costs one
//! load.
#![forbid(unsafe_code)]

pub mod call;
pub mod rank_profile;
#[cfg(not(loom))]
mod recorder;
#[cfg(not(loom))]
mod session;
#[cfg(not(loom))]
mod span;
#[cfg(not(loom))]
mod switch;
#[cfg(not(loom))]
mod totals;

pub use call::Call;
pub use rank_profile::{ProfileError, RankProfile};
#[cfg(not(loom))]
pub use session::{pause, start, start_in, write};
#[cfg(not(loom))]
pub use span::{Span, received, sent, take_time};

/// The variable that names the folder for the files of the ranks.
pub const VARIABLE: &str = "MPJDEV_PROFILE";
/// The variable that asks for the single calls of a timeline as well: the number of them, at most
/// [`EVENTS_MAX`].
pub const EVENTS_VARIABLE: &str = "MPJDEV_TRACE";
/// Single calls of a rank that are kept. A file has about 40 octets for each.
pub const EVENTS_MAX: usize = 1_000_000;

/// The engine under the model checker counts nothing.
#[cfg(loom)]
mod model {
    /// Notes a message that was sent.
    pub fn sent(_: u32, _: impl FnOnce() -> usize) {}

    /// Times the call of this thread.
    pub fn take_time() {}

    /// Notes a message that was received.
    pub fn received(_: u32, _: impl FnOnce() -> usize) {}
}
#[cfg(loom)]
pub use model::{received, sent, take_time};
