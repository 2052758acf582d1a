//! The process that a user starts. It forwards signals and standard input, and cleans up when the monitor is
//! killed.

use std::ffi::OsString;
use std::io::{self, IoSlice, PipeWriter, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process, set_child_subreaper};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::{SIGCHLD, SIGTSTP};
use signal_hook::iterator::Signals;
use tracing::debug;

use super::descendants;
use super::exit_status::ExitStatus;
use crate::signals;

/// Octets of standard input that are forwarded at a time.
const PIECE: usize = 64 << 10;
/// Time between two checks whether the terminal belongs to this process group. The system reports no change.
const TERMINAL_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Starts the monitor with this command line and waits for its end. Returns the exit status.
///
/// # Errors
/// The monitor cannot be started.
pub fn run(args: &[OsString]) -> io::Result<u8> {
    set_child_subreaper(Some(getpid()))?;
    let mut caught = Signals::new(signals::caught().iter().chain(&[SIGCHLD]))?;
    let StartedMonitor { signals: mut socket, child, input } =
        start_monitor(Command::new("/proc/self/exe"), args, None)?;
    let pid = Pid::from_raw(child.id() as i32);
    std::thread::spawn(move || forward_input(input));
    for signal in caught.forever() {
        if signal != SIGCHLD {
            // An error means that the monitor has ended, which SIGCHLD reports.
            let _ = socket.write_all(&[signal as u8]);
            if signal == SIGTSTP {
                // The default action of SIGTSTP. SIGCONT is forwarded as well.
                let _ = kill_process(getpid(), Signal::STOP);
            }
            continue;
        }
        let mut end = None;
        descendants::reap(|child, status| end = end.or((Some(child) == pid).then_some(status)));
        if let Some(status) = end {
            return Ok(handle_monitor_end(status, None));
        }
    }
    Err(io::Error::other("no signals any more"))
}

/// Forwards standard input to rank 0, until it ends or rank 0 has closed the pipe.
///
/// A terminal is read in the foreground only: the system stops a process that reads it in the background.
fn forward_input(mut input: PipeWriter) {
    let stdin = io::stdin();
    let mut octets = vec![0; PIECE];
    loop {
        // An error is a signal, or appears again in the read.
        let _ = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], None);
        if tcgetpgrp(&stdin).is_ok_and(|foreground| foreground != getpgrp()) {
            std::thread::sleep(TERMINAL_CHECK_INTERVAL);
            continue;
        }
        match rustix::io::read(&stdin, &mut octets[..]) {
            Err(Errno::INTR) => {}
            Ok(0) | Err(_) => return,
            Ok(n) if input.write_all(&octets[..n]).is_err() => return,
            Ok(_) => {}
        }
    }
}

/// A new monitor.
#[derive(Debug)]
pub struct StartedMonitor {
    /// Each octet sent is a signal. The monitor ends when the socket does.
    pub signals: UnixStream,
    /// The process.
    pub child: Child,
    /// The pipe to rank 0.
    pub input: PipeWriter,
}

/// Starts the monitor by `command`, whose words follow. Its standard input is a socket to the launcher, which
/// carries the pipe to rank 0, and the socket to the launcher of all hosts if there is one.
///
/// # Errors
/// The monitor cannot be started.
pub fn start_monitor(
    mut command: Command,
    args: &[OsString],
    exchange: Option<OwnedFd>,
) -> io::Result<StartedMonitor> {
    let (signals, theirs) = UnixStream::pair()?;
    let (input, to_input) = io::pipe()?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<_> =
        [Some(input.as_fd()), exchange.as_ref().map(AsFd::as_fd)].into_iter().flatten().collect();
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(&signals, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::empty())?;
    if !mpjdev_logging::is_on() {
        // The launcher has reported an invalid value. The other processes of the job need not repeat that.
        command.env_remove(mpjdev_logging::VARIABLE);
    }
    command.arg0("mpjdev").arg(super::MONITOR).args(args).stdin(Stdio::from(OwnedFd::from(theirs)));
    let child = command.spawn()?;
    debug!(target: "mpjdev::job", pid = child.id(), "monitor is started");
    Ok(StartedMonitor { signals, child, input: to_input })
}

/// Ends the ranks if the monitor was killed, and all orphaned processes. Returns the exit status. `host` is
/// named in messages, in a job of several hosts.
pub fn handle_monitor_end(status: ExitStatus, host: Option<&str>) -> u8 {
    let host = host.map(|host| format!("host {host}: ")).unwrap_or_default();
    debug!(target: "mpjdev::job", %status, "monitor has ended");
    if let ExitStatus::Killed(_) = status {
        eprintln!("mpjrun: {host}the monitor of the job {status}; ending all ranks");
    }
    let left = descendants::kill_all(|_, _| {});
    if left > 0 {
        eprintln!("mpjrun: {host}{left} processes of the job could not be killed");
    }
    status.status()
}
