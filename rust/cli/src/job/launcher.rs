//! The process that people see: it passes signals and standard input on, and cleans up when the monitor is killed.

use std::ffi::OsString;
use std::io::{self, IoSlice, PipeWriter, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, getpid, set_child_subreaper};
use signal_hook::consts::SIGCHLD;
use signal_hook::iterator::Signals;

use super::ending::Ending;
use super::{signals, tree};

/// Starts the monitor with this command line, and waits for its end; gives the exit status.
///
/// # Errors
/// The monitor cannot be started.
pub fn run(args: &[OsString]) -> io::Result<u8> {
    set_child_subreaper(Some(getpid()))?;
    let mut caught = Signals::new(signals::FORWARDED.iter().chain(&[SIGCHLD]))?;
    let (mut socket, monitor, mut input) = start_monitor(args)?;
    let pid = Pid::from_raw(monitor.id() as i32);
    // Ends with standard input, or when nobody reads any more.
    std::thread::spawn(move || io::copy(&mut io::stdin(), &mut input));
    for signal in caught.forever() {
        if signal != SIGCHLD {
            // The monitor may be gone; then SIGCHLD says so.
            let _ = socket.write_all(&[signal as u8]);
            continue;
        }
        let mut end = None;
        tree::reap(|child, ending| end = end.or((Some(child) == pid).then_some(ending)));
        if let Some(ending) = end {
            return Ok(conclude(ending));
        }
    }
    Err(io::Error::other("no signals any more"))
}

/// Starts the monitor: its standard input is our socket, on which the pipe to rank 0 follows.
fn start_monitor(args: &[OsString]) -> io::Result<(UnixStream, Child, PipeWriter)> {
    let (ours, theirs) = UnixStream::pair()?;
    let (input, to_input) = io::pipe()?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fds = [input.as_fd()];
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(&ours, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::empty())?;
    let monitor = Command::new("/proc/self/exe")
        .arg0("mpjdev")
        .arg(super::MONITOR)
        .args(args)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .process_group(0)
        .spawn()?;
    Ok((ours, monitor, to_input))
}

/// The monitor has ended: by itself, or killed, and then everything is left to do here.
fn conclude(ending: Ending) -> u8 {
    if let Ending::Killed(_) = ending {
        eprintln!("mpjrun: the monitor of the job {ending}; ending all ranks");
    }
    let left = tree::kill_all(|_, _| {});
    if left > 0 {
        eprintln!("mpjrun: {left} processes of the job could not be ended");
    }
    ending.status()
}
