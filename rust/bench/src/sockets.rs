//! Plain TCP sockets as a contestant: two processes with one connection over the loopback interface.
//!
//! This is a lower bound for TCP on this machine, since both sides know all messages in advance. The
//! connection sends at once (TCP_NODELAY) and never sleeps to read. Each message follows the octets of an
//! IMPI header and is written by one call. The receiver knows its length.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;

use super::plain;
use super::protocol::RunCommand;
use super::rank::RankError;

/// Octets before the elements of a message: those of a packet header (IMPI 7.1).
const HEADER_LEN: usize = 128;
/// Least octets of a read, for several short messages.
const READ_LEN: usize = 64 << 10;

/// Runs rank 0 in this process and starts the other ranks as processes of this program. Ranks from 2 on are
/// idle.
///
/// # Errors
/// A system call failed, or a command cannot be executed.
pub fn serve(socket: &Path, ranks: u32) -> Result<(), RankError> {
    let (own, other) = pair()?;
    plain::serve(socket, ranks, TcpEndpoint::new(0, own)?, other.into(), None)
}

/// Runs another rank. The connection of rank 1 is its standard input.
///
/// # Errors
/// A command cannot be executed.
pub fn serve_other(socket: &Path, rank: u32) -> Result<(), RankError> {
    plain::serve_other(socket, rank, |input| Ok(TcpEndpoint::new(rank, input.into())?))
}

/// Both ends of a connection.
fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let own = TcpStream::connect(listener.local_addr()?)?;
    loop {
        let (other, from) = listener.accept()?;
        // Another program may have connected first.
        if from == own.local_addr()? {
            return Ok((own, other));
        }
    }
}

/// One of the two ranks that exchange messages.
struct TcpEndpoint {
    rank: u32,
    stream: TcpStream,
    /// A message with its header.
    out: Vec<u8>,
    /// Room for one message, or for several short ones.
    input: Vec<u8>,
}

impl TcpEndpoint {
    fn new(rank: u32, stream: TcpStream) -> io::Result<TcpEndpoint> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(TcpEndpoint { rank, stream, out: Vec::new(), input: Vec::new() })
    }

    /// Writes `len` octets, in one call if the kernel takes them all.
    fn write(&mut self, len: usize) -> io::Result<()> {
        let mut written = 0;
        while written < len {
            match self.stream.write(&self.out[written..len]) {
                Ok(count) => written += count,
                Err(error) if is_for_now(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads `len` octets.
    fn read(&mut self, len: usize) -> io::Result<()> {
        let (mut left, mut at) = (len, 0);
        while left > 0 {
            let end = self.input.len().min(at + left);
            match self.stream.read(&mut self.input[at..end]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    left -= count;
                    at = (at + count) % self.input.len();
                }
                Err(error) if is_for_now(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl plain::Endpoint for TcpEndpoint {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn prepare(&mut self, command: RunCommand) -> Result<(), RankError> {
        let len = HEADER_LEN + usize::try_from(command.octets).unwrap_or(usize::MAX - HEADER_LEN);
        if self.out.len() != len {
            self.out = vec![1; len];
            self.input = vec![1; len * (READ_LEN / len).max(1)];
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), RankError> {
        Ok(self.write(self.out.len())?)
    }

    fn receive(&mut self, count: usize) -> Result<(), RankError> {
        Ok(self.read(self.out.len() * count)?)
    }

    fn send_answer(&mut self) -> Result<(), RankError> {
        Ok(self.write(HEADER_LEN)?)
    }

    fn receive_answer(&mut self) -> Result<(), RankError> {
        Ok(self.read(HEADER_LEN)?)
    }
}

/// True if the call would block or was interrupted.
fn is_for_now(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::super::plain::Endpoint as _;
    use super::super::protocol::Case;
    use super::*;

    /// Runs a command on two ranks and returns the octets of a message with its header.
    fn exchange(case: Case, octets: u64) -> usize {
        let (one, other) = pair().expect("a connection");
        let command = RunCommand { case, octets, times: 3 };
        let run = |rank, stream| {
            let mut endpoint = TcpEndpoint::new(rank, stream).expect("an endpoint");
            endpoint.prepare(command).expect("room");
            plain::run(&mut endpoint, command, command.times).expect("it runs");
            assert!(
                matches!(endpoint.stream.read(&mut [0]), Err(e) if is_for_now(&e)),
                "nothing is left over"
            );
            endpoint
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| run(1, other));
            let (endpoint, _other) = (run(0, one), other.join().expect("no panic"));
            endpoint.out.len()
        })
    }

    #[test]
    fn socket_message_has_a_header_and_a_window_is_read_whole() {
        for case in [Case::Arrays, Case::Buffers, Case::RateArrays, Case::RateBuffers] {
            assert_eq!(exchange(case, 8), 136, "{case}");
            assert_eq!(exchange(case, 1 << 20), 128 + (1 << 20), "{case}");
        }
    }

    #[test]
    fn unknown_command_is_refused_and_ended_peer_is_noticed() {
        let (one, other) = pair().expect("a connection");
        let mut endpoint = TcpEndpoint::new(0, one).expect("an endpoint");
        let command = |case| RunCommand { case, octets: 8, times: 1 };
        endpoint.prepare(command(Case::Ring)).expect("room");
        assert!(matches!(plain::run(&mut endpoint, command(Case::Ring), 1), Err(RankError::Command(_))));
        drop(other);
        assert!(matches!(plain::run(&mut endpoint, command(Case::Arrays), 1), Err(RankError::Socket(_))));
    }
}
