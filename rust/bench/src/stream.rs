//! A stream of octets over one TCP connection of the system, for some seconds.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::net::sockopt;

/// Octets of one write or read.
const PIECE_LEN: usize = 1 << 18;
/// Longest wait for the other end.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Octets received, and the time from the first read to the last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goodput {
    /// Number of octets.
    pub octets: u64,
    /// Nanoseconds between the first and the last read.
    pub nanos: u64,
}

impl Goodput {
    /// In millions of bits per second.
    pub fn mbit(self) -> f64 {
        self.octets as f64 * 8e3 / self.nanos.max(1) as f64
    }
}

/// Accepts one connection and reads it to its end. `on_listening` gets the address of the listener.
///
/// # Errors
/// A system call failed, or the connection broke.
pub fn receive(
    at: SocketAddr,
    on_listening: impl FnOnce(SocketAddr) -> io::Result<()>,
) -> io::Result<Goodput> {
    let listener = TcpListener::bind(at)?;
    on_listening(listener.local_addr()?)?;
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mut buffer = vec![0; PIECE_LEN];
    let mut octets = stream.read(&mut buffer)? as u64;
    let begin = Instant::now();
    let mut end = begin;
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            len => octets += len as u64,
        }
        end = Instant::now();
    }
    Ok(Goodput { octets, nanos: end.duration_since(begin).as_nanos() as u64 })
}

/// Connects, writes for `time` under the system's congestion control of this name, and waits until the
/// receiver has closed.
///
/// # Errors
/// A system call failed, the congestion control is unknown, or the connection broke.
pub fn send(to: SocketAddr, time: Duration, congestion: &str) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&to, TIMEOUT)?;
    sockopt::set_tcp_congestion(stream.as_fd(), congestion)?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let piece = vec![1; PIECE_LEN];
    let begin = Instant::now();
    while begin.elapsed() < time {
        stream.write_all(&piece)?;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    stream.read(&mut [0]).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn reader_counts_the_octets_written() {
        let (sender, receiver) = mpsc::channel();
        let reader = std::thread::spawn(move || {
            let on_listening = |at| sender.send(at).map_err(io::Error::other);
            receive((Ipv4Addr::LOCALHOST, 0).into(), on_listening)
        });
        let to = receiver.recv_timeout(TIMEOUT).expect("an address");
        let unknown = send(to, Duration::ZERO, "no-such-control");
        assert!(unknown.is_err(), "an unknown congestion control is refused");
        assert!(reader.join().expect("no panic").is_ok_and(|goodput| goodput.octets == 0));
        let (sender, receiver) = mpsc::channel();
        let reader = std::thread::spawn(move || {
            let on_listening = |at| sender.send(at).map_err(io::Error::other);
            receive((Ipv4Addr::LOCALHOST, 0).into(), on_listening)
        });
        let to = receiver.recv_timeout(TIMEOUT).expect("an address");
        // Every Linux has Reno.
        send(to, Duration::from_millis(1), "reno").expect("written");
        let goodput = reader.join().expect("no panic").expect("read");
        assert!(goodput.octets >= PIECE_LEN as u64 && goodput.octets % PIECE_LEN as u64 == 0, "{goodput:?}");
        assert_eq!(Goodput { octets: 1_000_000, nanos: 80_000_000 }.mbit(), 100.0);
    }
}
