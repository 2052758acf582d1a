//! Pairs of processes, one at each end of an impaired path: a TCP stream, or messages over datagrams.

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};

use super::BenchError;
use super::ends::EndReport;
use super::netem::{self, ADDRESSES, ImpairedPath};
use super::stream::Goodput;

/// Time that a stream may take beyond its nominal duration.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Port of a TCP stream.
const PORT: u16 = 4000;
/// Port of mpjdev ranks.
const OUR_PORT: u16 = 4001;

/// Two processes, one at each end of a path, that exchange octets.
#[derive(Debug)]
pub struct Pair {
    name: String,
    ends: [Process; 2],
}

/// A process with its input and output. It is killed when this is dropped.
#[derive(Debug)]
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Runs this program at one end of the path, as the command `net` with these arguments.
    fn start(path: &ImpairedPath, end: usize, words: &[String]) -> Result<Process, BenchError> {
        let own: PathBuf = std::env::current_exe().map_err(BenchError::system("this command"))?;
        let mut command = path.command(end);
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

    fn write_line(&mut self, line: &str) -> Result<(), BenchError> {
        let Some(input) = &mut self.input else { return Ok(()) };
        writeln!(input, "{line}").map_err(BenchError::system("one end of a stream"))
    }

    /// Waits for the end of the process.
    fn end(&mut self, timeout: Duration) -> Result<(), BenchError> {
        let status = netem::ended(&mut self.child, timeout);
        match status.map_err(BenchError::system("one end of a stream"))? {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(wrong("one end of a stream", &status.to_string())),
            None => Err(wrong("one end of a stream", "it has not ended in time")),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail if the process has ended and been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wrong(end: &str, why: &str) -> BenchError {
    BenchError::Contestant { name: end.into(), why: why.into() }
}

/// A TCP stream whose receiver listens.
#[derive(Debug)]
pub struct Tcp<'a> {
    path: &'a ImpairedPath,
    receiver: Process,
    time: Duration,
    congestion: &'a str,
}

impl<'a> Tcp<'a> {
    /// Starts the receiver and waits until it listens.
    ///
    /// # Errors
    /// The receiver cannot be started.
    pub fn prepare(path: &'a ImpairedPath, time: Duration, congestion: &'a str) -> Result<Self, BenchError> {
        let at = SocketAddr::from((ADDRESSES[1], PORT)).to_string();
        let mut receiver = Process::start(path, 1, &["receive".into(), at.clone()])?;
        if receiver.next()? != at {
            return Err(wrong("TCP", "its receiver cannot listen"));
        }
        Ok(Tcp { path, receiver, time, congestion })
    }

    /// Starts the sender.
    ///
    /// # Errors
    /// The sender cannot be started.
    pub fn start(self) -> Result<Pair, BenchError> {
        let at = SocketAddr::from((ADDRESSES[1], PORT)).to_string();
        let seconds = self.time.as_secs_f64().to_string();
        let words = ["send".into(), at, "--seconds".into(), seconds, "--congestion".into()];
        let sender = Process::start(self.path, 0, &[&words[..], &[self.congestion.into()]].concat())?;
        Ok(Pair { name: format!("TCP by {}", self.congestion), ends: [sender, self.receiver] })
    }
}

impl Pair {
    /// Waits for the end of a TCP stream and returns its goodput.
    ///
    /// # Errors
    /// The stream has failed.
    pub fn tcp(mut self, time: Duration) -> Result<Goodput, BenchError> {
        self.end(time)?;
        let line = self.ends[1].next()?;
        let numbers = line.split_once(' ');
        let numbers = numbers.and_then(|(octets, nanos)| Some((octets.parse().ok()?, nanos.parse().ok()?)));
        let nothing = || wrong(&self.name, "its receiver reports no octets and nanoseconds");
        let (octets, nanos) = numbers.ok_or_else(nothing)?;
        Ok(Goodput { octets, nanos })
    }

    fn end(&mut self, time: Duration) -> Result<(), BenchError> {
        self.ends.iter_mut().try_for_each(|end| end.end(time + TIMEOUT))
    }

    /// Starts two ranks that know each other's address. `words` are their options: task, protocol, path.
    ///
    /// # Errors
    /// A rank cannot be started.
    pub fn of_ends(path: &ImpairedPath, words: &[String]) -> Result<Pair, BenchError> {
        let mut octets = [0; 4];
        let drawn = rustix::io::retry_on_intr(|| getrandom(&mut octets, GetRandomFlags::empty()));
        drawn.map_err(|error| BenchError::system("a random number")(error.into()))?;
        let number = u32::from_ne_bytes(octets);
        let address = |end: usize| SocketAddr::from((ADDRESSES[end], OUR_PORT)).to_string();
        let start = |rank: usize| {
            let own = ["rank".into(), rank.to_string(), address(rank), address(1 - rank), number.to_string()];
            Process::start(path, rank, &[&own[..], words].concat())
        };
        let mut ends = [start(0)?, start(1)?];
        let windows = [ends[0].next()?, ends[1].next()?];
        for (end, window) in ends.iter_mut().zip(windows.iter().rev()) {
            end.write_line(window)?;
        }
        for end in &mut ends {
            if end.next()? != "ready" {
                return Err(wrong("a rank", "it is not ready"));
            }
        }
        Ok(Pair { name: "mpjdev messages".into(), ends })
    }

    /// Begins the measurement, at the receiver first.
    ///
    /// # Errors
    /// An end has ended.
    pub fn begin(&mut self) -> Result<(), BenchError> {
        self.ends.iter_mut().rev().try_for_each(|end| end.write_line("go"))
    }

    /// Waits for both ends and returns their reports.
    ///
    /// # Errors
    /// One has failed.
    pub fn reports(mut self, time: Duration) -> Result<[EndReport; 2], BenchError> {
        self.end(time)?;
        let mut reports = [EndReport::default(); 2];
        for (report, end) in reports.iter_mut().zip(&mut self.ends) {
            let line = end.next()?;
            let error = |error| BenchError::system(line.clone())(std::io::Error::from(error));
            *report = serde_json::from_str(&line).map_err(error)?;
        }
        Ok(reports)
    }
}
