//! A stream of octets through one TCP connection for some seconds: what the system's own TCP makes of a
//! network.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::net::sockopt;

/// Octets of one write or read.
const PIECE_LEN: usize = 1 << 18;
/// Longest wait of a side for the other one.
const PATIENCE: Duration = Duration::from_secs(60);

/// Octets that have come, from the first one to the end of the stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goodput {
    /// Number of octets.
    pub octets: u64,
    /// In how many nanoseconds.
    pub nanos: u64,
}

impl Goodput {
    /// In millions of bits per second.
    pub fn mbit(self) -> f64 {
        self.octets as f64 * 8e3 / self.nanos.max(1) as f64
    }
}

/// Takes one connection and reads it to its end; `tell` gets the address that it may connect to.
///
/// # Errors
/// The system refuses, or the stream breaks.
pub fn take(at: SocketAddr, tell: impl FnOnce(SocketAddr) -> io::Result<()>) -> io::Result<Goodput> {
    let listener = TcpListener::bind(at)?;
    tell(listener.local_addr()?)?;
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(PATIENCE))?;
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

/// Connects, writes for so long with this congestion control, as the system names it, and waits until the
/// other side has closed.
///
/// # Errors
/// The system refuses or has no such congestion control, or the stream breaks.
pub fn give(to: SocketAddr, time: Duration, congestion: &str) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    sockopt::set_tcp_congestion(stream.as_fd(), congestion)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
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
        let taker = std::thread::spawn(move || {
            let told = |at| sender.send(at).map_err(io::Error::other);
            take((Ipv4Addr::LOCALHOST, 0).into(), told)
        });
        let to = receiver.recv_timeout(PATIENCE).expect("an address");
        let unknown = give(to, Duration::ZERO, "no-such-control");
        assert!(unknown.is_err(), "that is no congestion control");
        assert!(taker.join().expect("no panic").is_ok_and(|goodput| goodput.octets == 0));
        let (sender, receiver) = mpsc::channel();
        let taker = std::thread::spawn(move || {
            let told = |at| sender.send(at).map_err(io::Error::other);
            take((Ipv4Addr::LOCALHOST, 0).into(), told)
        });
        let to = receiver.recv_timeout(PATIENCE).expect("an address");
        // Linux always has it.
        give(to, Duration::from_millis(1), "reno").expect("written");
        let goodput = taker.join().expect("no panic").expect("read");
        assert!(goodput.octets >= PIECE_LEN as u64 && goodput.octets % PIECE_LEN as u64 == 0, "{goodput:?}");
        assert_eq!(Goodput { octets: 1_000_000, nanos: 80_000_000 }.mbit(), 100.0);
    }
}
