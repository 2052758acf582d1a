//! The agent: the process on a host that a remote shell starts. It checks the host, starts the monitor of the
//! host's ranks, and connects both with the launcher.
//!
//! ```text
//!   launcher <--- remote shell ---> agent <--- sockets and pipes ---> monitor ---> ranks
//! ```
//!
//! When the connection ends or falls silent, the agent ends the ranks. When the agent is killed, its monitor
//! does (see [`launcher_link`]).

mod host_check;
mod profiles;
mod ranks;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{getpid, set_child_subreaper};
use thiserror::Error;
use tracing::{debug, warn};

use super::channel::{Channel, ChannelError};
use super::frame::{Frame, ShellLine, Stream};
use super::hello::{Setup, StagedFile, Start};
use super::remote_command::STAGED;
use crate::job::{descendants, launcher_link};
use profiles::Profiles;
use ranks::Ranks;

/// Time for the monitor to end when the launcher is lost. Then it is killed.
const END_MAX: Duration = Duration::from_secs(15);
/// Time to write the last frames when the launcher does not read.
const LAST_MAX: Duration = Duration::from_secs(5);
/// Time within which the launcher sends the setup.
const SETUP_MAX: Duration = Duration::from_secs(300);

/// The reason why an agent ends early.
#[derive(Debug, Error)]
enum AgentError {
    /// The connection has ended.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// A frame was received at the wrong time.
    #[error("the launcher breaks the protocol: {0}")]
    Order(&'static str),
    /// A staged file cannot be written.
    #[error("cannot write {path}: {source}")]
    Stage {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The system refuses.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A staged file that arrives.
#[derive(Debug)]
struct Arriving {
    path: PathBuf,
    file: File,
    left: u64,
}

/// The state of an agent.
#[derive(Debug)]
struct Agent {
    channel: Channel,
    begun: Instant,
    /// The folder that this program was copied to, if it was.
    staged: Option<PathBuf>,
    setup: Option<Setup>,
    files_left: u32,
    arriving: Option<Arriving>,
    ranks: Option<Ranks>,
    /// The profiles of the ranks, if they write any.
    profiles: Option<Profiles>,
    has_ended: bool,
}

/// Serves one job and returns the exit status. `args` are the words behind the name of the command.
#[must_use]
pub fn run(args: &[OsString]) -> ExitCode {
    let staged = args.iter().position(|word| *word == *STAGED).and_then(|at| args.get(at + 1));
    match serve(staged.map(PathBuf::from)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            warn!(target: "mpjdev::job", %error, "agent ends early");
            eprintln!("mpjdev agent: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(staged: Option<PathBuf>) -> Result<(), AgentError> {
    set_child_subreaper(Some(getpid())).map_err(io::Error::from)?;
    let (children, notify) = UnixStream::pair()?;
    children.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, notify)?;
    // The launcher decides when the job ends. These come from a terminal, or from a session that ends.
    for signal in [signal_hook::consts::SIGHUP, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, std::sync::Arc::default())?;
    }
    let (input, output) =
        (io::stdin().as_fd().try_clone_to_owned()?, io::stdout().as_fd().try_clone_to_owned()?);
    for fd in [&input, &output] {
        rustix::io::ioctl_fionbio(fd, true).map_err(io::Error::from)?;
    }
    let mut agent = Agent {
        channel: Channel::new(),
        begun: Instant::now(),
        staged,
        setup: None,
        files_left: 0,
        arriving: None,
        ranks: None,
        profiles: None,
        has_ended: false,
    };
    let version = env!("CARGO_PKG_VERSION").to_owned();
    agent.channel.send_raw(ShellLine::Agent { version }.emit().as_bytes());
    let result = agent.watch(&input, &output, &children);
    agent.finish(&output, &children);
    result
}

impl Agent {
    /// Runs until the ranks have ended and the launcher has been sent everything.
    fn watch(&mut self, input: &OwnedFd, output: &OwnedFd, children: &UnixStream) -> Result<(), AgentError> {
        loop {
            self.channel.write(output);
            if self.has_ended && !self.channel.is_waiting() {
                return Ok(());
            }
            self.wait(input, output, children);
            launcher_link::drain(children);
            // Frames that arrived before the end of the connection are handled first.
            let is_open = self.channel.read(input);
            while let Some(frame) = self.channel.next_frame()? {
                self.handle(frame)?;
            }
            is_open?;
            self.channel.keep_time()?;
            if self.setup.is_none() && self.begun.elapsed() > SETUP_MAX {
                return Err(AgentError::Order("no setup has arrived"));
            }
            self.serve_ranks();
        }
    }

    /// Sleeps until an event.
    fn wait(&self, input: &OwnedFd, output: &OwnedFd, children: &UnixStream) {
        let mut fds = vec![PollFd::new(input, PollFlags::IN), PollFd::new(children, PollFlags::IN)];
        if self.channel.is_waiting() {
            fds.push(PollFd::new(output, PollFlags::OUT));
        }
        if let Some(ranks) = &self.ranks {
            fds.extend(ranks.readable(&self.channel).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
            fds.extend(ranks.writable().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)));
        }
        let left = self
            .channel
            .next_deadline()
            .map_or(Duration::from_secs(60), |at| at.saturating_duration_since(Instant::now()));
        // After an error, such as an interrupting signal, the caller polls every source as well.
        let _ = poll(&mut fds, Timespec::try_from(left).ok().as_ref());
    }

    fn handle(&mut self, frame: Frame) -> Result<(), AgentError> {
        match frame {
            Frame::Setup(setup) if self.setup.is_none() => {
                self.files_left = setup.files;
                self.channel.begin_heartbeats(Duration::from_millis(setup.silence_ms.max(1)));
                self.setup = Some(setup);
                self.greet_if_complete();
            }
            Frame::File(file) if self.files_left > 0 && self.arriving.is_none() => {
                self.files_left -= 1;
                self.arriving = self.create(&file)?;
                self.greet_if_complete();
            }
            Frame::Data(Stream::File, octets) => self.store(&octets)?,
            Frame::Start(start) => self.start(&start)?,
            frame @ (Frame::Exchange(_)
            | Frame::Signal(_)
            | Frame::Kill
            | Frame::Data(Stream::Input, _)
            | Frame::Closed(Stream::Input | Stream::Output | Stream::Error)) => {
                if let Some(ranks) = &mut self.ranks {
                    ranks.handle(frame, &mut self.channel);
                }
            }
            _ => return Err(AgentError::Order("an unexpected frame")),
        }
        Ok(())
    }

    /// Creates a staged file, with its folders. An empty file is complete at once.
    fn create(&self, file: &StagedFile) -> Result<Option<Arriving>, AgentError> {
        let staged = self.staged.as_ref().ok_or(AgentError::Order("a file for an installed agent"))?;
        let is_inside = Path::new(&file.path).components().all(|part| matches!(part, Component::Normal(_)));
        if !is_inside {
            return Err(AgentError::Order("a file outside of the staged folder"));
        }
        let path = staged.join(&file.path);
        let failed = |source| AgentError::Stage { path: path.clone(), source };
        std::fs::create_dir_all(path.parent().unwrap_or(staged)).map_err(failed)?;
        let options = File::options().write(true).create_new(true).mode(file.mode & 0o700).open(&path);
        let arriving = Arriving { file: options.map_err(failed)?, left: file.len, path };
        Ok((arriving.left > 0).then_some(arriving))
    }

    fn store(&mut self, octets: &[u8]) -> Result<(), AgentError> {
        let arriving = self.arriving.as_mut().ok_or(AgentError::Order("octets of no file"))?;
        arriving.left =
            arriving.left.checked_sub(octets.len() as u64).ok_or(AgentError::Order("a longer file"))?;
        let written = arriving.file.write_all(octets);
        written.map_err(|source| AgentError::Stage { path: arriving.path.clone(), source })?;
        self.channel.consume(Stream::File, octets.len());
        if arriving.left == 0 {
            self.arriving = None;
            self.greet_if_complete();
        }
        Ok(())
    }

    /// Checks the host when all files have arrived, and reports what it has found.
    fn greet_if_complete(&mut self) {
        if let Some(setup) = self.setup.as_ref().filter(|_| self.files_left == 0 && self.arriving.is_none()) {
            let hello = host_check::check(setup, self.staged.as_deref());
            debug!(target: "mpjdev::job", faults = hello.faults.len(), "host is checked");
            self.channel.send(&Frame::Hello(hello));
        }
    }

    /// Starts the monitor.
    fn start(&mut self, start: &Start) -> Result<(), AgentError> {
        let Some(setup) = self.setup.as_ref().filter(|_| self.ranks.is_none()) else {
            return Err(AgentError::Order("no setup before the start"));
        };
        let address = host_check::announced(setup, start)?;
        let staged = self.staged.as_deref();
        self.profiles = setup.profiles.then(|| Profiles::create(staged)).transpose()?;
        let profiles = self.profiles.as_ref().map(Profiles::folder);
        self.ranks = Some(Ranks::start(setup, address, staged, profiles)?);
        Ok(())
    }

    /// Moves octets between the monitor and the launcher, and reports the end of the monitor.
    fn serve_ranks(&mut self) {
        let Some(ranks) = self.ranks.as_mut().filter(|_| !self.has_ended) else { return };
        if let Some(status) = ranks.advance(&mut self.channel)
            && self.profiles.as_mut().is_none_or(|profiles| profiles.send(&mut self.channel))
        {
            self.channel.send(&Frame::End(status));
            self.has_ended = true;
        }
    }

    /// Ends the ranks if they still run, and writes the last frames.
    fn finish(&mut self, output: &OwnedFd, children: &UnixStream) {
        let pause = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        if let Some(ranks) = &mut self.ranks {
            ranks.end();
            let deadline = Instant::now() + END_MAX;
            while ranks.is_running() && Instant::now() < deadline {
                let _ = poll(&mut [PollFd::new(children, PollFlags::IN)], Some(&pause));
                launcher_link::drain(children);
            }
            descendants::kill_all(|_, _| {});
        }
        let deadline = Instant::now() + LAST_MAX;
        while self.channel.is_waiting() && Instant::now() < deadline {
            self.channel.write(output);
            let _ = poll(&mut [PollFd::new(output, PollFlags::OUT)], Some(&pause));
        }
    }
}
