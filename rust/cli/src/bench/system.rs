//! What the system knows of this process: its sleeps and its shared memory.

use std::fs;
use std::io;

/// How often all threads but the calling one have gone to sleep so far.
///
/// # Errors
/// The system does not tell.
pub fn sleeps_of_others() -> io::Result<u64> {
    let own = fs::read_link("/proc/thread-self")?;
    let mut sleeps = 0;
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?;
        if Some(task.file_name().as_os_str()) == own.file_name() {
            continue;
        }
        // A thread that has ended meanwhile has no more to say.
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        sleeps += number_after(&status, "voluntary_ctxt_switches:").unwrap_or(0);
    }
    Ok(sleeps)
}

/// The number in the line that begins so.
fn number_after(status: &str, name: &str) -> Option<u64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

/// Octets of the shared memory that this process has put something into: its part of what several have.
///
/// # Errors
/// The system does not tell.
pub fn shared_memory() -> io::Result<f64> {
    let maps = fs::read_to_string("/proc/self/smaps")?;
    Ok(share_of_memfds(&maps) as f64 * 1024.0)
}

/// KiB of the mappings of files without a name, each divided by how many have it (proc(5): Pss).
fn share_of_memfds(maps: &str) -> u64 {
    let mut sum = 0;
    let mut counts = false;
    for line in maps.lines() {
        // A mapping begins with its addresses, its properties with a name and a colon.
        if line.split_ascii_whitespace().next().is_some_and(|word| word.contains('-') && !word.ends_with(':'))
        {
            counts = line.contains("/memfd:mpjdev");
        } else if counts {
            sum += number_after(line, "Pss:").unwrap_or(0);
        }
    }
    sum
}
