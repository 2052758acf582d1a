//! The descendants of this process, as /proc lists them: killing and reaping.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait};

use super::exit_status::ExitStatus;

/// Maximum time until killed processes have ended.
const KILL_MAX: Duration = Duration::from_secs(10);
const POLL_EVERY: Duration = Duration::from_millis(2);

/// The parent of each process.
fn parents() -> HashMap<i32, i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, parent(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?)))
        .collect()
}

/// The parent in a `stat` line. The command's name before it may contain any character, also a parenthesis
/// (proc(5)).
fn parent(stat: &str) -> Option<i32> {
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

/// All descendants of `root`.
fn below(root: i32, parents: &HashMap<i32, i32>) -> HashSet<i32> {
    let mut found = HashSet::new();
    loop {
        let more: Vec<i32> = parents
            .iter()
            .filter(|(pid, parent)| !found.contains(*pid) && (**parent == root || found.contains(*parent)))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// Kills and reaps all descendants of this process, which must be a subreaper, so that none escapes. Calls
/// `reaped` for each child. Returns the number of processes that are left after some seconds.
pub fn kill_all(mut reaped: impl FnMut(Pid, ExitStatus)) -> usize {
    let me = getpid().as_raw_nonzero().get();
    let begun = Instant::now();
    loop {
        reap(&mut reaped);
        let left = below(me, &parents());
        if left.is_empty() || begun.elapsed() > KILL_MAX {
            return left.len();
        }
        for pid in left.into_iter().filter_map(Pid::from_raw) {
            // The process may have ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(POLL_EVERY);
    }
}

/// Number of descendants after reaping.
pub fn left() -> usize {
    reap(|_, _| {});
    below(getpid().as_raw_nonzero().get(), &parents()).len()
}

/// Reaps all children that have ended, also adopted ones. Never waits.
pub fn reap(mut reaped: impl FnMut(Pid, ExitStatus)) {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                if let Some(status) = exit_status(status) {
                    reaped(pid, status);
                }
            }
            Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return,
        }
    }
}

/// The end of a process; `None` while it runs.
#[must_use]
pub fn exit_status(status: WaitStatus) -> Option<ExitStatus> {
    let exited = status.exit_status().map(|s| ExitStatus::Exited(s as u8));
    exited.or_else(|| status.terminating_signal().map(|s| ExitStatus::Killed(s as u8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_is_read_behind_any_command_name() {
        assert_eq!(parent("12 (a) b) (c) S 7 12 12 0"), Some(7));
        assert_eq!(parent("12 (java) R 1 1"), Some(1));
        assert_eq!(parent("nonsense"), None);
    }

    #[test]
    fn children_of_children_are_below() {
        let parents = HashMap::from([(2, 1), (3, 2), (4, 3), (5, 1), (9, 8)]);
        assert_eq!(below(2, &parents), HashSet::from([3, 4]));
        assert_eq!(below(1, &parents), HashSet::from([2, 3, 4, 5]));
        assert_eq!(below(4, &parents), HashSet::new());
    }
}
