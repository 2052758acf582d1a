//! The process between monitor and program: it binds its own life to the monitor, chooses its processor, and
//! becomes the program.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Exit statuses of shells for a command that is not found, and for one that cannot be started.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

/// Becomes the program. `words` are the monitor's process, the rank's index among the processors or `-`, the
/// limit on open files, the program and its arguments.
pub fn become_program(words: &[OsString]) -> ExitCode {
    let [monitor, place, limit, program, args @ ..] = words else { return ExitCode::from(NOT_STARTED) };
    // The system kills this process when the monitor dies.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let monitor = monitor.to_str().and_then(|m| m.parse().ok()).and_then(Pid::from_raw);
    if getppid() != monitor {
        return ExitCode::from(NOT_STARTED);
    }
    // The limit was as high before.
    let _ = super::limits::restore(&limit.to_string_lossy());
    if let Some(place) = place.to_str().and_then(|p| p.parse().ok()) {
        bind(place);
    }
    tracing::debug!(target: "mpjdev::job", pid = std::process::id(), ?program, "stub becomes the program");
    let error = Command::new(program).args(args).exec();
    eprintln!("mpjrun: cannot start {}: {error}", program.to_string_lossy());
    ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED })
}

/// Binds this process to one of the processors that it may use.
fn bind(place: usize) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    if processors.is_empty() {
        return;
    }
    let mut one = CpuSet::new();
    one.set(processors[place % processors.len()]);
    if let Err(error) = sched_setaffinity(None, &one) {
        eprintln!("mpjrun: cannot bind to processor {}: {error}", processors[place % processors.len()]);
    }
}
