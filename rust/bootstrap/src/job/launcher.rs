//! The socket to the monitor that has started this process, and the end of the process with the monitor.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};

use mpjdev_sys::sync::{LockRank, Mutex};

use super::error::{JoinError, system};

/// The pause before a call that lacked memory is repeated.
const REST: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct Line {
    socket: Arc<OwnedFd>,
    is_watched: bool,
}

/// The socket with this number that this rank's process inherited. From the first call on the process ends
/// with the monitor.
///
/// # Errors
/// There is no such socket; the system has no thread left.
pub(super) fn line(rank: u32, number: u32) -> Result<Arc<OwnedFd>, JoinError> {
    /// The socket is kept open: after a close, its number could belong to another file.
    static LINE: Mutex<Option<Line>> = Mutex::new(LockRank::Job, None);
    let mut line = LINE.lock();
    let line = match &mut *line {
        Some(line) => line,
        empty => {
            let taken = mpjdev_sys::inherited::packet_socket(number as i32);
            let taken = taken.map_err(|error| JoinError::Descriptor { rank, number, error })?;
            empty.insert(Line { socket: Arc::new(taken), is_watched: false })
        }
    };
    if !line.is_watched {
        let socket = line.socket.clone();
        let thread = std::thread::Builder::new().name("mpjdev-launcher".to_owned());
        thread.spawn(move || end_with(&socket)).map_err(system("a thread"))?;
        line.is_watched = true;
    }
    Ok(line.socket.clone())
}

/// Kills this process when the other end is closed, whatever its threads do. The system does that for a
/// monitor's own children, but not for those started by a shell.
fn end_with(socket: &OwnedFd) {
    // No event is requested, so only the hang-up is reported.
    while let Err(error) = poll(&mut [PollFd::new(socket, PollFlags::empty())], None) {
        if error != Errno::INTR {
            std::thread::sleep(REST);
        }
    }
    let _ = kill_process(getpid(), Signal::KILL);
}
