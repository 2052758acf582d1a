//! Which signals the launcher passes on.

use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};

/// Numbers of the signals that are passed on to the ranks.
pub const FORWARDED: [i32; 7] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH];

/// The signal of a number that is passed on.
pub fn known(number: u8) -> Option<Signal> {
    if FORWARDED.contains(&i32::from(number)) { Signal::from_named_raw(i32::from(number)) } else { None }
}

/// Whether it asks for the end of the job. (SIGQUIT makes a JVM print its threads.)
pub fn ends(signal: Signal) -> bool {
    matches!(signal, Signal::INT | Signal::TERM | Signal::HUP)
}
