//! Descriptor that this process was started with.

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::SocketType;
use rustix::net::sockopt::socket_type;

/// The first number after the standard streams.
const FIRST: i32 = 3;

/// Takes the packet socket that this process was given under this number, once per process.
///
/// # Errors
/// There is none, or it was taken before.
pub fn packet_socket(number: i32) -> io::Result<OwnedFd> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if number < FIRST {
        return Err(io::Error::other(format!("descriptor {number} is a standard stream")));
    }
    if TAKEN.load(Ordering::SeqCst) {
        return Err(io::Error::other("this process has been a rank of its job already"));
    }
    // SAFETY: the descriptor is only queried, and the query finds out whether it is open.
    let asked = unsafe { BorrowedFd::borrow_raw(number) };
    if socket_type(asked)? != SocketType::SEQPACKET {
        return Err(io::Error::other(format!("descriptor {number} is no packet socket")));
    }
    fcntl_setfd(asked, FdFlags::CLOEXEC)?;
    if TAKEN.swap(true, Ordering::SeqCst) {
        return Err(io::Error::other(format!("descriptor {number} was taken before")));
    }
    // SAFETY: it is open, and no other code in this process knows it: the process that started this one
    // passed it by its number alone, and it is taken once.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
