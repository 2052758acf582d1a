//! Processes in pairs, one on each side of a way: the system's TCP, and messages over datagrams.

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};

use super::BenchError;
use super::ends::Told;
use super::netem::{self, ADDRESSES, Way};
use super::stream::Goodput;

/// Time that a stream may take beyond its duration.
const PATIENCE: Duration = Duration::from_secs(60);
/// Port of a TCP stream.
const PORT: u16 = 4000;
/// Port of our ranks.
const OUR_PORT: u16 = 4001;

/// Two processes, one on each side of a way, that exchange octets.
#[derive(Debug)]
pub struct Pair {
    name: String,
    sides: [Process; 2],
}

/// A process that does not outlive this, and its input and output.
#[derive(Debug)]
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Runs this program on one side of the way as `net` with these words.
    fn start(way: &Way, side: usize, words: &[String]) -> Result<Process, BenchError> {
        let own: PathBuf = std::env::current_exe().map_err(BenchError::system("this command"))?;
        let mut command = way.command(side);
        command.arg(own).arg("net").args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(BenchError::system("one end of a stream"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or_else(|| wrong("one end of a stream", "it has no output"))?;
        Ok(Process { child, input, output: BufReader::new(output).lines() })
    }

    fn next(&mut self) -> Result<String, BenchError> {
        let ended = || wrong("one end of a stream", "it has ended");
        self.output.next().ok_or_else(ended)?.map_err(BenchError::system("one end of a stream"))
    }

    fn tell(&mut self, line: &str) -> Result<(), BenchError> {
        let Some(input) = &mut self.input else { return Ok(()) };
        writeln!(input, "{line}").map_err(BenchError::system("one end of a stream"))
    }

    /// Waits for its end.
    fn end(&mut self, patience: Duration) -> Result<(), BenchError> {
        let status = netem::ended(&mut self.child, patience);
        match status.map_err(BenchError::system("one end of a stream"))? {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(wrong("one end of a stream", &status.to_string())),
            None => Err(wrong("one end of a stream", "it has not ended in time")),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended already needs neither.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wrong(side: &str, why: &str) -> BenchError {
    BenchError::Contestant { name: side.into(), why: why.into() }
}

/// A stream of TCP that is about to begin.
#[derive(Debug)]
pub struct Tcp<'a> {
    way: &'a Way,
    taker: Process,
    time: Duration,
    congestion: &'a str,
}

impl<'a> Tcp<'a> {
    /// Receives the report that an end is ready.
    ///
    /// # Errors
    /// A side cannot be started.
    pub fn prepare(way: &'a Way, time: Duration, congestion: &'a str) -> Result<Self, BenchError> {
        let at = SocketAddr::from((ADDRESSES[1], PORT)).to_string();
        let mut taker = Process::start(way, 1, &["take".into(), at.clone()])?;
        if taker.next()? != at {
            return Err(wrong("TCP", "who takes the stream cannot"));
        }
        Ok(Tcp { way, taker, time, congestion })
    }

    /// Lets it begin.
    ///
    /// # Errors
    /// A side cannot be started.
    pub fn start(self) -> Result<Pair, BenchError> {
        let at = SocketAddr::from((ADDRESSES[1], PORT)).to_string();
        let seconds = self.time.as_secs_f64().to_string();
        let words = ["give".into(), at, "--seconds".into(), seconds, "--congestion".into()];
        let giver = Process::start(self.way, 0, &[&words[..], &[self.congestion.into()]].concat())?;
        Ok(Pair { name: format!("TCP by {}", self.congestion), sides: [giver, self.taker] })
    }
}

impl Pair {
    /// Waits for the end of a TCP stream and returns its goodput.
    ///
    /// # Errors
    /// It has failed.
    pub fn tcp(mut self, time: Duration) -> Result<Goodput, BenchError> {
        self.end(time)?;
        let line = self.sides[1].next()?;
        let numbers = line.split_once(' ');
        let numbers = numbers.and_then(|(octets, nanos)| Some((octets.parse().ok()?, nanos.parse().ok()?)));
        let nothing = || wrong(&self.name, "it says nothing of what has come");
        let (octets, nanos) = numbers.ok_or_else(nothing)?;
        Ok(Goodput { octets, nanos })
    }

    fn end(&mut self, time: Duration) -> Result<(), BenchError> {
        self.sides.iter_mut().try_for_each(|side| side.end(time + PATIENCE))
    }

    /// Two ends of messages that know each other; `words` say what they do, by which machine, and what they
    /// know of the way.
    ///
    /// # Errors
    /// A side cannot be started.
    pub fn of_ends(way: &Way, words: &[String]) -> Result<Pair, BenchError> {
        let mut octets = [0; 4];
        let drawn = rustix::io::retry_on_intr(|| getrandom(&mut octets, GetRandomFlags::empty()));
        drawn.map_err(|error| BenchError::system("a random number")(error.into()))?;
        let number = u32::from_ne_bytes(octets);
        let address = |side: usize| SocketAddr::from((ADDRESSES[side], OUR_PORT)).to_string();
        let start = |rank: usize| {
            let own = ["rank".into(), rank.to_string(), address(rank), address(1 - rank), number.to_string()];
            Process::start(way, rank, &[&own[..], words].concat())
        };
        let mut sides = [start(0)?, start(1)?];
        let windows = [sides[0].next()?, sides[1].next()?];
        for (side, window) in sides.iter_mut().zip(windows.iter().rev()) {
            side.tell(window)?;
        }
        for side in &mut sides {
            if side.next()? != "ready" {
                return Err(wrong("a rank", "it is not ready"));
            }
        }
        Ok(Pair { name: "messages of ours".into(), sides })
    }

    /// Lets both begin; the one that receives first.
    ///
    /// # Errors
    /// One has ended.
    pub fn begin(&mut self) -> Result<(), BenchError> {
        self.sides.iter_mut().rev().try_for_each(|side| side.tell("go"))
    }

    /// Waits for both ends and returns their reports.
    ///
    /// # Errors
    /// One has failed.
    pub fn told(mut self, time: Duration) -> Result<[Told; 2], BenchError> {
        self.end(time)?;
        let mut told = [Told::default(); 2];
        for (told, side) in told.iter_mut().zip(&mut self.sides) {
            let line = side.next()?;
            let error = |error| BenchError::system(line.clone())(std::io::Error::from(error));
            *told = serde_json::from_str(&line).map_err(error)?;
        }
        Ok(told)
    }
}
