//! The process that people see: it passes signals and standard input on, and cleans up when the monitor is killed.

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

use super::ending::Ending;
use super::{signals, tree};

/// Octets of standard input that are passed on at a time.
const PIECE: usize = 64 << 10;
/// How often it looks whether a terminal has become ours, which nobody tells.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Starts the monitor with this command line, and waits for its end; gives the exit status.
///
/// # Errors
/// The monitor cannot be started.
pub fn run(args: &[OsString]) -> io::Result<u8> {
    set_child_subreaper(Some(getpid()))?;
    let mut caught = Signals::new(signals::caught().iter().chain(&[SIGCHLD]))?;
    let (mut socket, monitor, input) = start_monitor(args)?;
    let pid = Pid::from_raw(monitor.id() as i32);
    std::thread::spawn(move || feed(input));
    for signal in caught.forever() {
        if signal != SIGCHLD {
            // The monitor may be gone; then SIGCHLD says so.
            let _ = socket.write_all(&[signal as u8]);
            if signal == SIGTSTP {
                // As it would have without a handler; SIGCONT is passed on as well.
                let _ = kill_process(getpid(), Signal::STOP);
            }
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

/// Passes standard input on to rank 0; ends with it, or when nobody reads any more.
///
/// A terminal is read only while it is ours: whoever reads it from the background is stopped.
fn feed(mut input: PipeWriter) {
    let stdin = io::stdin();
    let mut octets = vec![0; PIECE];
    loop {
        // An error is a signal, or shows when reading.
        let _ = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], None);
        if tcgetpgrp(&stdin).is_ok_and(|foreground| foreground != getpgrp()) {
            std::thread::sleep(LOOK_EVERY);
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
