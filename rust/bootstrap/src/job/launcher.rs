//! The socket to the monitor that has started this process, and the end of the process when the monitor has gone.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};

use super::processes::{JoinError, system};

/// A rest before the system is asked again for what it had no memory for.
const REST: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct Line {
    socket: Arc<OwnedFd>,
    is_watched: bool,
}

/// The socket that this rank's process was given under this number. From the first call on the process ends with the monitor.
///
/// # Errors
/// It is not there; the system has no thread left.
pub(super) fn line(rank: u32, number: u32) -> Result<Arc<OwnedFd>, JoinError> {
    /// Its number is somebody else's once it is closed, so it is kept.
    static LINE: Mutex<Option<Line>> = Mutex::new(None);
    let mut line = LINE.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Kills this process when the other end is closed, whatever its threads do: what the system does to a monitor's own children,
/// and not to those behind a shell.
fn end_with(socket: &OwnedFd) {
    // Asking for nothing, which leaves the end.
    while let Err(error) = poll(&mut [PollFd::new(socket, PollFlags::empty())], None) {
        if error != Errno::INTR {
            std::thread::sleep(REST);
        }
    }
    let _ = kill_process(getpid(), Signal::KILL);
}
