//! Contestants without a library: two processes that exchange messages through plain sockets.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::contestant::RANK;
use super::protocol::{Answer, Case, Order, window};
use super::rank::{RankError, follow};

/// One of the two ranks that exchange messages. What fails says that the other rank is gone or does not as it
/// should.
pub(super) trait Party {
    /// Rank of this end, 0 or 1.
    fn rank(&self) -> u32;

    /// Makes ready for an order.
    fn prepare(&mut self, order: Order) -> Result<(), RankError>;

    /// Sends a message as it was prepared.
    fn send(&mut self) -> Result<(), RankError>;

    /// Receives a number of messages.
    fn receive(&mut self, count: usize) -> Result<(), RankError>;

    /// Sends a short one, which says that a window has come.
    fn send_answer(&mut self) -> Result<(), RankError>;

    /// Receives that.
    fn receive_answer(&mut self) -> Result<(), RankError>;
}

/// Does a case of an order so often.
pub(super) fn run(party: &mut impl Party, order: Order, times: u64) -> Result<(), RankError> {
    let messages = window(order.octets) as usize;
    for _ in 0..times {
        match (order.case, party.rank()) {
            (Case::Arrays | Case::Direct | Case::Buffers, 0) => {
                party.send()?;
                party.receive(1)?;
            }
            (Case::Arrays | Case::Direct | Case::Buffers, _) => {
                party.receive(1)?;
                party.send()?;
            }
            (Case::RateArrays | Case::RateDirect | Case::RateBuffers, 0) => {
                for _ in 0..messages {
                    party.send()?;
                }
                party.receive_answer()?;
            }
            (Case::RateArrays | Case::RateDirect | Case::RateBuffers, _) => {
                party.receive(messages)?;
                party.send_answer()?;
            }
            (case, _) => return Err(RankError::Order(format!("{case} is not measured with plain sockets"))),
        }
    }
    Ok(())
}

/// Starts the other ranks, which are processes of this command, and is rank 0 of them. Only the first two are
/// connected, the others look on. Rank 1 gets its end as its standard input, and this option, if any.
pub(super) fn serve(
    socket: &Path,
    ranks: u32,
    party: impl Party,
    other: OwnedFd,
    option: Option<&str>,
) -> Result<(), RankError> {
    let mut children = vec![start(socket, 1, other.into(), option)?];
    for rank in 2..ranks {
        children.push(start(socket, rank, Stdio::null(), option)?);
    }
    serve_rank(socket, 0, Some(party))?;
    for mut child in children {
        let status = child.wait()?;
        if !status.success() {
            return Err(RankError::Order(format!("a rank ended with {status}")));
        }
    }
    Ok(())
}

/// One of the other ranks; rank 1 makes a party of the socket that is its standard input.
pub(super) fn serve_other<P: Party>(
    socket: &Path,
    rank: u32,
    party: impl FnOnce(OwnedFd) -> Result<P, RankError>,
) -> Result<(), RankError> {
    let given = || Ok::<_, RankError>(io::stdin().as_fd().try_clone_to_owned()?);
    let party = (rank == 1).then(|| given().and_then(party)).transpose()?;
    serve_rank(socket, rank, party)
}

fn serve_rank(socket: &Path, rank: u32, mut party: Option<impl Party>) -> Result<(), RankError> {
    follow(socket, rank, |order| {
        let Some(party) = &mut party else { return Ok(Answer::default()) };
        party.prepare(order)?;
        run(party, order, order.times / 8 + 1)?;
        let begin = Instant::now();
        run(party, order, order.times)?;
        Ok(Answer { nanos: begin.elapsed().as_nanos() as f64, ..Answer::default() })
    })
}

fn start(socket: &Path, rank: u32, input: Stdio, option: Option<&str>) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(RANK).arg(socket).args(["--rank", &rank.to_string()]).args(option);
    command.stdin(input).spawn()
}
