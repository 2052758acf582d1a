//! Network interfaces whose other end is a program: it reads the packets that the system sends, and the
//! system receives the packets that it writes.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

/// Creates an interface for IP packets, one with each read and each write, and returns its other end and its
/// name. Neither end ever blocks. The interface is down and has no address; it is deleted with the file.
/// Names with this prefix and a final number are free to take.
///
/// # Errors
/// This process may not, or the system has no such interfaces (`/dev/net/tun`).
///
/// # Panics
/// When the name has more than 12 octets or is not plain.
pub fn open(name: &str) -> io::Result<(File, String)> {
    let is_plain = name.len() <= 12 && name.bytes().all(|octet| octet.is_ascii_alphanumeric());
    assert!(is_plain, "{name:?} cannot begin an interface's name");
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    // SAFETY: a request is octets and numbers, all of which may be zero.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (place, octet) in request.ifr_name.iter_mut().zip(format!("{name}%d").bytes()) {
        *place = octet as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: this call reads and writes one request, to which the pointer leads.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let octets = request.ifr_name.iter().map(|octet| *octet as u8).take_while(|octet| *octet != 0);
    Ok((file, octets.map(char::from).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_of_one_prefix_have_different_names() {
        match (open("mpjdevtest"), open("mpjdevtest")) {
            (Ok((_one, first)), Ok((_other, second))) => {
                assert!(first.starts_with("mpjdevtest") && second.starts_with("mpjdevtest"));
                assert_ne!(first, second);
            }
            (one, other) => eprintln!("NOT TESTED: no interfaces here: {one:?}, {other:?}"),
        }
    }

    #[test]
    #[should_panic(expected = "cannot begin an interface's name")]
    fn name_with_a_slash_panics() {
        let _ = open("a/b");
    }
}
