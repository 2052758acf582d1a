//! Which signals the launcher passes on.

use rustix::process::Signal;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH};

/// Numbers of the signals that are passed on to the ranks.
const FORWARDED: [i32; 9] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT];

/// Those of them that are not ignored, which is for whoever has started this process to say, as nohup(1) does.
pub fn caught() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored(&status);
    FORWARDED.into_iter().filter(|signal| ignored & 1 << (signal - 1) == 0).collect()
}

/// The signals that a process ignores, a bit each, as its `status` says (proc(5)).
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// The signal of a number that is passed on.
pub fn known(number: u8) -> Option<Signal> {
    if FORWARDED.contains(&i32::from(number)) { Signal::from_named_raw(i32::from(number)) } else { None }
}

/// Whether it asks for the end of the job. (SIGQUIT makes a JVM print its threads.)
pub fn ends(signal: Signal) -> bool {
    matches!(signal, Signal::INT | Signal::TERM | Signal::HUP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_found_among_all_else() {
        let status = "Name:\tx\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert_eq!(ignored(status), 1 << 12 | 1);
        assert_eq!(ignored(""), 0);
    }
}
