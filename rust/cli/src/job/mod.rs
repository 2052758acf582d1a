//! Running a job: `mpjrun`.
//!
//! Three kinds of processes. The [`launcher`] is what people start; it starts the [`monitor`], which starts for each rank a
//! [`stub`] that becomes the rank's program. What they decide by is apart and pure: [`target`], [`lines`], [`ending`],
//! [`origin`].

pub mod ending;
pub mod launcher;
pub mod led;
pub mod library;
pub mod limits;
pub mod lines;
pub mod monitor;
pub mod names;
pub mod network;
pub mod origin;
pub mod output;
pub mod plan;
pub mod roster;
pub mod signals;
pub mod site;
pub mod stub;
pub mod target;
pub mod tree;

/// First argument of a monitor process; the second is its end of the launcher's socket.
pub const MONITOR: &str = "__monitor";
/// First argument of a process that becomes a rank.
pub const STUB: &str = "__rank";
