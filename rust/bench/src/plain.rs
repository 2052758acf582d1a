//! Plain sockets as contestants: the loops and processes that TCP and UDP share.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::contestant::RANK;
use super::protocol::{Answer, Case, RunCommand, window};
use super::rank::{RankError, serve_commands};

/// One of the two ranks that exchange messages. A method fails if the other rank has ended or violates the
/// protocol.
pub(super) trait Endpoint {
    /// Rank of this end, 0 or 1.
    fn rank(&self) -> u32;

    /// Prepares the messages of a command.
    fn prepare(&mut self, command: RunCommand) -> Result<(), RankError>;

    /// Sends the prepared message.
    fn send(&mut self) -> Result<(), RankError>;

    /// Receives a number of messages.
    fn receive(&mut self, count: usize) -> Result<(), RankError>;

    /// Sends the short answer to a window.
    fn send_answer(&mut self) -> Result<(), RankError>;

    /// Receives the answer to a window.
    fn receive_answer(&mut self) -> Result<(), RankError>;
}

/// Runs the case of a command `times` times.
pub(super) fn run(endpoint: &mut impl Endpoint, command: RunCommand, times: u64) -> Result<(), RankError> {
    let messages = window(command.octets) as usize;
    for _ in 0..times {
        match (command.case, endpoint.rank()) {
            (Case::Arrays | Case::Direct | Case::Mpi | Case::Buffers, 0) => {
                endpoint.send()?;
                endpoint.receive(1)?;
            }
            (Case::Arrays | Case::Direct | Case::Mpi | Case::Buffers, _) => {
                endpoint.receive(1)?;
                endpoint.send()?;
            }
            (
                Case::RateArrays | Case::RateDirect | Case::RateBuffers | Case::RateRequests | Case::RateMpi,
                0,
            ) => {
                for _ in 0..messages {
                    endpoint.send()?;
                }
                endpoint.receive_answer()?;
            }
            (
                Case::RateArrays | Case::RateDirect | Case::RateBuffers | Case::RateRequests | Case::RateMpi,
                _,
            ) => {
                endpoint.receive(messages)?;
                endpoint.send_answer()?;
            }
            (case, _) => {
                return Err(RankError::Command(format!("{case} is not measured with plain sockets")));
            }
        }
    }
    Ok(())
}

/// Runs rank 0 in this process and starts the other ranks as processes of this program. Rank 1 gets `other`
/// as its standard input, and `option`. Ranks from 2 on are idle.
pub(super) fn serve(
    socket: &Path,
    ranks: u32,
    endpoint: impl Endpoint,
    other: OwnedFd,
    option: Option<&str>,
) -> Result<(), RankError> {
    let mut children = vec![start(socket, 1, other.into(), option)?];
    for rank in 2..ranks {
        children.push(start(socket, rank, Stdio::null(), option)?);
    }
    serve_rank(socket, 0, Some(endpoint))?;
    for mut child in children {
        let status = child.wait()?;
        if !status.success() {
            return Err(RankError::Command(format!("a rank ended with {status}")));
        }
    }
    Ok(())
}

/// Runs another rank. Rank 1 makes its endpoint from its standard input.
pub(super) fn serve_other<P: Endpoint>(
    socket: &Path,
    rank: u32,
    endpoint: impl FnOnce(OwnedFd) -> Result<P, RankError>,
) -> Result<(), RankError> {
    let given = || Ok::<_, RankError>(io::stdin().as_fd().try_clone_to_owned()?);
    let endpoint = (rank == 1).then(|| given().and_then(endpoint)).transpose()?;
    serve_rank(socket, rank, endpoint)
}

fn serve_rank(socket: &Path, rank: u32, mut endpoint: Option<impl Endpoint>) -> Result<(), RankError> {
    serve_commands(socket, rank, |command| {
        let Some(endpoint) = &mut endpoint else { return Ok(Answer::default()) };
        endpoint.prepare(command)?;
        run(endpoint, command, command.times / 8 + 1)?;
        let begin = Instant::now();
        run(endpoint, command, command.times)?;
        Ok(Answer { nanos: begin.elapsed().as_nanos() as f64, ..Answer::default() })
    })
}

fn start(socket: &Path, rank: u32, input: Stdio, option: Option<&str>) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(RANK).arg(socket).args(["--rank", &rank.to_string()]).args(option);
    command.stdin(input).spawn()
}
