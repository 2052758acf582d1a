//! The control socket to the monitor that has started this process. The process ends with the monitor.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};

use mpjdev_sys::sync::{LockRank, Mutex};

use super::error::{JoinError, system};

/// The pause before a poll that failed for lack of memory is repeated.
const REST: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct ControlSocket {
    socket: Arc<OwnedFd>,
    is_watched: bool,
}

/// The control socket, which this rank's process has inherited under this number. From the first call on, the
/// process ends with the monitor.
///
/// # Errors
/// There is no such socket; the system has no thread left.
pub(super) fn control_socket(rank: u32, number: u32) -> Result<Arc<OwnedFd>, JoinError> {
    /// The socket is kept open: after a close, its number could belong to another file.
    static CONTROL_SOCKET: Mutex<Option<ControlSocket>> = Mutex::new(LockRank::Job, None);
    let mut socket = CONTROL_SOCKET.lock();
    let control = match &mut *socket {
        Some(control) => control,
        empty => {
            let taken = mpjdev_sys::inherited::packet_socket(number as i32);
            let taken = taken.map_err(|error| JoinError::Descriptor { rank, number, error })?;
            empty.insert(ControlSocket { socket: Arc::new(taken), is_watched: false })
        }
    };
    if !control.is_watched {
        let socket = control.socket.clone();
        let thread = std::thread::Builder::new().name("mpjdev-launcher".to_owned());
        thread.spawn(move || end_with_monitor(&socket)).map_err(system("a thread"))?;
        control.is_watched = true;
    }
    Ok(control.socket.clone())
}

/// Kills this process when the other end is closed. The system does that for the children of a monitor, but
/// not for a process that a shell has started.
fn end_with_monitor(socket: &OwnedFd) {
    // No event is requested, so only the hang-up is reported.
    while let Err(error) = poll(&mut [PollFd::new(socket, PollFlags::empty())], None) {
        if error != Errno::INTR {
            std::thread::sleep(REST);
        }
    }
    let _ = kill_process(getpid(), Signal::KILL);
}
