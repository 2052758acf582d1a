//! Logging of this project: `tracing` events as lines on standard error, with levels from `MPJDEV_LOG`.
//!
//! The other crates emit events with the targets of [`TARGETS`]. The two programs, which are the library in a
//! JVM and the command, call [`start`] once. Without the variable there is no subscriber, and an event costs
//! one load.
#![forbid(unsafe_code)]

mod filter;
mod line;

use std::env::{self, VarError};
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

pub use filter::{FilterError, TARGETS};
use line::Lines;

/// The variable with the levels.
pub const VARIABLE: &str = "MPJDEV_LOG";

/// Whether this process writes events.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Whether this process writes events: the variable is set to a valid value.
pub fn is_on() -> bool {
    IS_ON.load(Relaxed)
}

/// Writes the events of this process from now on, if the variable asks for it. `process` names the process in
/// lines of events without a rank. An invalid value is reported in one line on standard error, and no events
/// are written. Only the first call of a process has an effect on its events.
pub fn start(process: &'static str) {
    let value = match env::var(VARIABLE) {
        Ok(value) if value.is_empty() => return,
        Err(VarError::NotPresent) => return,
        Ok(value) => value,
        Err(VarError::NotUnicode(value)) => value.to_string_lossy().into_owned(),
    };
    match filter::parse(&value) {
        Ok(targets) => {
            // An error means that an earlier call has set the subscriber.
            let _ = tracing::subscriber::set_global_default(Lines::new(targets, process));
            IS_ON.store(true, Relaxed);
        }
        Err(error) => {
            // Nothing can be done if standard error is closed.
            let _ = writeln!(std::io::stderr(), "mpjdev: {VARIABLE}: {error}; nothing is logged");
        }
    }
}
