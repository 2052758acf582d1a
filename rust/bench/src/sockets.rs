//! A contestant without a library: two processes with one TCP connection through the loopback interface.
//!
//! It is what TCP takes at least on this machine, as somebody writes it who knows all messages before: the
//! connection never waits to send (TCP_NODELAY) and never sleeps to read, each message has the octets of an
//! IMPI header before it and is written at once, and the receiver knows its length.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;

use super::plain;
use super::protocol::Order;
use super::rank::RankError;

/// Octets before the elements of a message, as many as a packet's header has (IMPI 7.1).
const HEADER_LEN: usize = 128;
/// Octets that are asked for at least where messages are shorter.
const READ_LEN: usize = 64 << 10;

/// Starts the other ranks, which are processes of this command, and is rank 0 of them. Only the first two are
/// connected, the others look on.
///
/// # Errors
/// The system refuses, or the orders cannot be followed.
pub fn serve(socket: &Path, ranks: u32) -> Result<(), RankError> {
    let (own, other) = pair()?;
    plain::serve(socket, ranks, Party::new(0, own)?, other.into(), None)
}

/// One of the other ranks; standard input is rank 1's connection to rank 0.
///
/// # Errors
/// The orders cannot be followed.
pub fn serve_other(socket: &Path, rank: u32) -> Result<(), RankError> {
    plain::serve_other(socket, rank, |input| Ok(Party::new(rank, input.into())?))
}

/// Both ends of a connection.
fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let own = TcpStream::connect(listener.local_addr()?)?;
    loop {
        let (other, from) = listener.accept()?;
        // Anybody on this machine may have been faster.
        if from == own.local_addr()? {
            return Ok((own, other));
        }
    }
}

/// One of the two ranks that exchange messages.
struct Party {
    rank: u32,
    stream: TcpStream,
    /// A message with its header.
    out: Vec<u8>,
    /// Room for whole messages: one, or as many short ones as are read at once.
    input: Vec<u8>,
}

impl Party {
    fn new(rank: u32, stream: TcpStream) -> io::Result<Party> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Party { rank, stream, out: Vec::new(), input: Vec::new() })
    }

    /// Writes a number of octets, in one write if the system takes them all.
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

    /// Reads until this number of octets has arrived.
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

impl plain::Party for Party {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn prepare(&mut self, order: Order) -> Result<(), RankError> {
        let len = HEADER_LEN + usize::try_from(order.octets).unwrap_or(usize::MAX - HEADER_LEN);
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

/// Nothing can be read or written at this moment, or a signal came.
fn is_for_now(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::super::plain::Party as _;
    use super::super::protocol::Case;
    use super::*;

    /// Two ranks follow an order; gives the octets of a message with its header.
    fn exchange(case: Case, octets: u64) -> usize {
        let (one, other) = pair().expect("a connection");
        let order = Order { case, octets, times: 3 };
        let run = |rank, stream| {
            let mut party = Party::new(rank, stream).expect("a party");
            party.prepare(order).expect("room");
            plain::run(&mut party, order, order.times).expect("it runs");
            assert!(matches!(party.stream.read(&mut [0]), Err(e) if is_for_now(&e)), "nothing is left over");
            party
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| run(1, other));
            let (party, _other) = (run(0, one), other.join().expect("no panic"));
            party.out.len()
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
    fn unknown_order_is_refused_and_ended_peer_is_noticed() {
        let (one, other) = pair().expect("a connection");
        let mut party = Party::new(0, one).expect("a party");
        let order = |case| Order { case, octets: 8, times: 1 };
        party.prepare(order(Case::Ring)).expect("room");
        assert!(matches!(plain::run(&mut party, order(Case::Ring), 1), Err(RankError::Order(_))));
        drop(other);
        assert!(matches!(plain::run(&mut party, order(Case::Arrays), 1), Err(RankError::Socket(_))));
    }
}
