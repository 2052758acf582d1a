//! Signals that the launcher forwards.

use rustix::process::Signal;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH};

/// Numbers of the signals that are forwarded to the ranks.
const FORWARDED: [i32; 9] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT];

/// Those of them that are not ignored. A parent that ignores a signal decides that, as nohup(1) does.
pub fn caught() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored(&status);
    FORWARDED.into_iter().filter(|signal| ignored & 1 << (signal - 1) == 0).collect()
}

/// The ignored signals in a process's `status`, one bit each (proc(5)).
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// The forwarded signal of this number.
pub fn known(number: u8) -> Option<Signal> {
    if FORWARDED.contains(&i32::from(number)) { Signal::from_named_raw(i32::from(number)) } else { None }
}

/// Whether the signal ends the job. SIGQUIT does not: a JVM prints its threads.
pub fn ends(signal: Signal) -> bool {
    matches!(signal, Signal::INT | Signal::TERM | Signal::HUP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_a_status_file() {
        let status = "Name:\tx\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert_eq!(ignored(status), 1 << 12 | 1);
        assert_eq!(ignored(""), 0);
    }
}
