//! Sleeps of this process's threads: voluntary context switches of proc(5).

use std::fs;
use std::io;

/// Sleeps of all threads but the calling one.
///
/// # Errors
/// /proc cannot be read.
pub fn of_others() -> io::Result<u64> {
    let own = fs::read_link("/proc/thread-self")?;
    let mut sleeps = 0;
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?;
        if Some(task.file_name().as_os_str()) == own.file_name() {
            continue;
        }
        // A thread that has ended meanwhile is not counted.
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        sleeps += number_after(&status, "voluntary_ctxt_switches:").unwrap_or(0);
    }
    Ok(sleeps)
}

/// The number in the line with this prefix.
fn number_after(status: &str, name: &str) -> Option<u64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}
