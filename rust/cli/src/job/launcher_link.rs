//! The monitor's side of the socket to its launcher.

use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// The descriptors that a launcher sends at first.
#[derive(Debug)]
pub struct Grants {
    /// The pipe that rank 0 reads.
    pub input: OwnedFd,
    /// The socket to the launcher of all hosts, if an agent starts this monitor.
    pub exchange: Option<OwnedFd>,
}

/// Receives the first descriptors.
///
/// # Errors
/// No pipe has been sent.
pub fn receive_grants(launcher: &UnixStream) -> io::Result<Grants> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut octet = [0];
    recvmsg(launcher, &mut [IoSliceMut::new(&mut octet)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let fds = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => Some(Grants { input: fds.next()?, exchange: fds.next() }),
        _ => None,
    });
    fds.ok_or_else(|| io::Error::other("only mpjrun starts a monitor"))
}

/// The signals that the launcher forwards; `None` if the launcher has died.
pub fn signals(mut launcher: &UnixStream) -> Option<Vec<u8>> {
    let mut octets = [0; 64];
    match launcher.read(&mut octets) {
        Ok(0) => None,
        Ok(n) => Some(octets[..n].to_vec()),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Some(Vec::new())
        }
        Err(_) => None,
    }
}

/// Empties a stream whose octets only wake this process.
pub fn drain(mut stream: &UnixStream) {
    let mut octets = [0; 256];
    while matches!(stream.read(&mut octets), Ok(n) if n > 0) {}
}
