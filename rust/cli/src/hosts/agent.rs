//! The agent: the process on a host that a remote shell starts. It checks the host, starts the monitor of the
//! host's ranks, and connects both with the launcher.
//!
//! ```text
//!   launcher <--- remote shell ---> agent <--- sockets and pipes ---> monitor ---> ranks
//! ```
//!
//! When the connection ends or falls silent, the agent ends the ranks. When the agent is killed, its monitor
//! does (see [`launcher_link`]).

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, getpid, set_child_subreaper};
use thiserror::Error;
use tracing::{debug, info, warn};

use super::addresses;
use super::channel::{Channel, ChannelError};
use super::frame::{Frame, ShellLine, Stream};
use super::hello::{Hello, Setup, StagedFile, Start};
use super::java;
use super::remote_command::STAGED;
use crate::job::exit_status::ExitStatus;
use crate::job::launcher::{StartedMonitor, handle_monitor_end, start_monitor};
use crate::job::{descendants, launcher_link};

/// Maximum octets of an incomplete line of a monitor.
const LINE_MAX: usize = 8 << 20;
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

/// The monitor of the host's ranks, with the descriptors to it.
#[derive(Debug)]
struct Ranks {
    pid: Option<Pid>,
    /// `None` once the ranks are to end.
    signals: Option<UnixStream>,
    /// The pipe to rank 0, and octets for it.
    input: Option<PipeWriter>,
    pending: BytesMut,
    is_input_closing: bool,
    output: Option<OwnedFd>,
    error: Option<OwnedFd>,
    exchange: Option<UnixStream>,
    exchange_octets: BytesMut,
    reports: PipeReader,
    /// Keeps the pipe open: the monitor opens it by its path.
    _reports: PipeWriter,
    report_octets: BytesMut,
    status: Option<ExitStatus>,
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
            // Frames that came before the end of the connection are handled first.
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
            let streams = [(Stream::Output, &ranks.output), (Stream::Error, &ranks.error)];
            let open = streams.iter().filter(|(stream, _)| self.channel.room(*stream) > 0);
            fds.extend(open.filter_map(|(_, fd)| Some(PollFd::new(fd.as_ref()?, PollFlags::IN))));
            fds.extend(ranks.exchange.iter().map(|socket| PollFd::new(socket, PollFlags::IN)));
            fds.push(PollFd::new(&ranks.reports, PollFlags::IN));
            if !ranks.pending.is_empty() {
                fds.extend(ranks.input.iter().map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
            }
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
            Frame::Exchange(line) => {
                let socket = self.ranks.as_mut().and_then(|ranks| ranks.exchange.as_mut());
                // A monitor that has ended needs no line.
                let _ = socket.map(|socket| socket.write_all(&[&line[..], b"\n"].concat()));
            }
            Frame::Signal(number) => self.signal(&[number]),
            // A monitor kills its ranks at the second signal that ends them.
            Frame::Kill => self.signal(&[signal_hook::consts::SIGTERM as u8; 2]),
            Frame::Data(Stream::Input, octets) => match &mut self.ranks {
                Some(ranks) if ranks.input.is_some() => ranks.pending.extend_from_slice(&octets),
                _ => self.channel.consume(Stream::Input, octets.len()),
            },
            Frame::Closed(Stream::Output) => self.ranks.iter_mut().for_each(|ranks| ranks.output = None),
            Frame::Closed(Stream::Error) => self.ranks.iter_mut().for_each(|ranks| ranks.error = None),
            Frame::Closed(Stream::Input) => {
                self.ranks.iter_mut().for_each(|ranks| ranks.is_input_closing = true)
            }
            _ => return Err(AgentError::Order("an unexpected frame")),
        }
        Ok(())
    }

    fn signal(&mut self, numbers: &[u8]) {
        let socket = self.ranks.as_mut().and_then(|ranks| ranks.signals.as_mut());
        // A monitor that has ended needs no signal.
        let _ = socket.map(|socket| socket.write_all(numbers));
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
            let hello = check(setup, self.staged.as_deref());
            debug!(target: "mpjdev::job", faults = hello.faults.len(), "host is checked");
            self.channel.send(&Frame::Hello(hello));
        }
    }

    /// Starts the monitor.
    fn start(&mut self, start: &Start) -> Result<(), AgentError> {
        let Some(setup) = self.setup.as_ref().filter(|_| self.ranks.is_none()) else {
            return Err(AgentError::Order("no setup before the start"));
        };
        let (reports, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&reports, true).map_err(io::Error::from)?;
        let path = format!("/proc/{}/fd/{}", getpid().as_raw_nonzero(), writer.as_raw_fd());
        let (exchange, theirs) = UnixStream::pair()?;
        let mut words = ["run", "--report-pipe", &path].map(OsString::from).to_vec();
        words.extend(["--address".into(), announced(setup, start)?.to_string().into()]);
        words.extend(setup.words.iter().map(|word| word.replace(super::stage::HERE, &self.here()).into()));
        let mut command = Command::new("/proc/self/exe");
        command.envs(
            setup
                .variables
                .iter()
                .map(|(name, value)| (name, value.replace(super::stage::HERE, &self.here()))),
        );
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let StartedMonitor { signals, mut child, input } =
            start_monitor(command, &words, Some(theirs.into()))?;
        let output = child.stdout.take().map(OwnedFd::from);
        let error = child.stderr.take().map(OwnedFd::from);
        for fd in [&output, &error].into_iter().flatten() {
            rustix::io::ioctl_fionbio(fd, true).map_err(io::Error::from)?;
        }
        rustix::io::ioctl_fionbio(&input, true).map_err(io::Error::from)?;
        info!(target: "mpjdev::job", pid = child.id(), "monitor of the host is started");
        self.ranks = Some(Ranks {
            pid: Pid::from_raw(child.id() as i32),
            signals: Some(signals),
            input: Some(input),
            pending: BytesMut::new(),
            is_input_closing: false,
            output,
            error,
            exchange: Some(exchange),
            exchange_octets: BytesMut::new(),
            reports,
            _reports: writer,
            report_octets: BytesMut::new(),
            status: None,
        });
        Ok(())
    }

    /// The staged folder, in the words of the setup.
    fn here(&self) -> String {
        self.staged.as_ref().map(|folder| folder.display().to_string()).unwrap_or_default()
    }

    /// Moves octets between the monitor and the launcher, and reports the end of the monitor.
    fn serve_ranks(&mut self) {
        let Some(ranks) = &mut self.ranks else { return };
        descendants::reap(|pid, status| {
            if ranks.pid == Some(pid) {
                ranks.status = Some(status);
            }
        });
        ranks.write_input(&mut self.channel);
        if let Some(status) = ranks.status.filter(|_| ranks.signals.is_some()) {
            // Processes that outlive the monitor would keep its pipes open.
            ranks.signals = None;
            let host = self.setup.as_ref().map(|setup| setup.host.as_str());
            ranks.status = Some(ExitStatus::Exited(handle_monitor_end(status, host)));
        }
        forward(&mut ranks.output, Stream::Output, &mut self.channel);
        forward(&mut ranks.error, Stream::Error, &mut self.channel);
        ranks.read_lines(&mut self.channel);
        let is_read = ranks.output.is_none() && ranks.error.is_none();
        if let Some(status) = ranks.status.filter(|_| is_read && !self.has_ended) {
            self.channel.send(&Frame::End(status.status()));
            self.has_ended = true;
        }
    }

    /// Ends the ranks if they still run, and writes the last frames.
    fn finish(&mut self, output: &OwnedFd, children: &UnixStream) {
        if let Some(ranks) = &mut self.ranks {
            ranks.signals = None;
            let deadline = Instant::now() + END_MAX;
            while ranks.status.is_none() && Instant::now() < deadline {
                descendants::reap(|pid, status| {
                    if ranks.pid == Some(pid) {
                        ranks.status = Some(status);
                    }
                });
                let wait = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
                let _ = poll(&mut [PollFd::new(children, PollFlags::IN)], Some(&wait));
                launcher_link::drain(children);
                // The monitor must not wait for a reader.
                for stream in [&mut ranks.output, &mut ranks.error] {
                    discard(stream);
                }
            }
            descendants::kill_all(|_, _| {});
        }
        let deadline = Instant::now() + LAST_MAX;
        while self.channel.is_waiting() && Instant::now() < deadline {
            self.channel.write(output);
            let wait = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            let _ = poll(&mut [PollFd::new(output, PollFlags::OUT)], Some(&wait));
        }
    }
}

impl Ranks {
    /// Writes what rank 0 takes.
    fn write_input(&mut self, channel: &mut Channel) {
        while let Some(pipe) = self.input.as_ref().filter(|_| !self.pending.is_empty()) {
            match rustix::io::write(pipe, &self.pending) {
                Ok(n) => {
                    self.pending.advance(n);
                    channel.consume(Stream::Input, n);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    // Rank 0 reads no more.
                    channel.send(&Frame::Closed(Stream::Input));
                    (self.input, self.pending) = (None, BytesMut::new());
                }
            }
        }
        if self.is_input_closing {
            self.input = None;
        }
    }

    /// Forwards the lines of the exchange and of the reports.
    fn read_lines(&mut self, channel: &mut Channel) {
        let mut is_open = true;
        if let Some(socket) = &self.exchange {
            is_open = read_available(socket, &mut self.exchange_octets);
        }
        while let Some(line) = take_line(&mut self.exchange_octets) {
            channel.send(&Frame::Exchange(line));
        }
        if !is_open {
            self.exchange = None;
        }
        read_available(&self.reports, &mut self.report_octets);
        while let Some(line) = take_line(&mut self.report_octets) {
            channel.send(&Frame::Failure(line));
        }
    }
}

/// Reads what is there without waiting, up to a limit; false at the end of the stream.
fn read_available(fd: impl AsFd, octets: &mut BytesMut) -> bool {
    let mut piece = [0; 16 << 10];
    while octets.len() < LINE_MAX {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let is_ready = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&now)).is_ok_and(|count| count > 0);
        if !is_ready {
            return true;
        }
        match rustix::io::read(&fd, &mut piece[..]) {
            Ok(0) => return false,
            Ok(n) => octets.extend_from_slice(&piece[..n]),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return true,
            Err(_) => return false,
        }
    }
    true
}

/// The first line, without its line feed.
fn take_line(octets: &mut BytesMut) -> Option<Bytes> {
    let end = octets.iter().position(|octet| *octet == b'\n')?;
    let mut line = octets.split_to(end + 1);
    line.truncate(end);
    Some(line.freeze())
}

/// Forwards a stream of the ranks, as far as its credit allows.
fn forward(fd: &mut Option<OwnedFd>, stream: Stream, channel: &mut Channel) {
    while let Some(open) = fd {
        let room = channel.room(stream);
        if room == 0 {
            return;
        }
        let mut octets = vec![0; room];
        match rustix::io::read(&*open, &mut octets[..]) {
            Ok(0) => *fd = None,
            Ok(n) => {
                octets.truncate(n);
                channel.send_data(stream, octets.into());
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return,
            Err(_) => *fd = None,
        }
    }
}

fn discard(fd: &mut Option<OwnedFd>) {
    let mut octets = [0; 16 << 10];
    while let Some(open) = fd {
        match rustix::io::read(&*open, &mut octets[..]) {
            Ok(n) if n > 0 => {}
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return,
            _ => *fd = None,
        }
    }
}

/// The address that the ranks announce.
fn announced(setup: &Setup, start: &Start) -> io::Result<IpAddr> {
    let (interface, addresses) = (setup.interface.as_deref(), &setup.addresses);
    if start.is_one_machine && interface.is_none() && addresses.is_empty() {
        return Ok(std::net::Ipv4Addr::LOCALHOST.into());
    }
    addresses::announced(
        &addresses::interfaces(),
        interface,
        addresses,
        reached_at(),
        &start.peers,
        addresses::source,
    )
    .map_err(io::Error::other)
}

/// The address at which sshd has been reached: the third word of SSH_CONNECTION (ssh(1)).
fn reached_at() -> Option<IpAddr> {
    std::env::var("SSH_CONNECTION").ok()?.split(' ').nth(2)?.parse().ok()
}

/// Checks whether this host can take part. Changes to the working directory.
fn check(setup: &Setup, staged: Option<&Path>) -> Hello {
    let mut faults = Vec::new();
    let folder = Path::new(&setup.folder);
    let entered = std::env::set_current_dir(folder).or_else(|error| match staged {
        Some(staged) => std::env::set_current_dir(staged),
        None => Err(error),
    });
    if let Err(error) = entered {
        faults.push(format!(
            "the working directory {}: {error}; create it there, or use --stage",
            setup.folder
        ));
    }
    let missing: Vec<&str> = setup
        .class_path
        .iter()
        .map(String::as_str)
        .filter(|path| staged.is_none() && !Path::new(path).exists())
        .collect();
    if !missing.is_empty() {
        faults
            .push(format!("{} is not there; copy it to the same place, or use --stage", missing.join(", ")));
    }
    let variable = |name: &str| {
        let set = setup.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.into());
        set.or_else(|| std::env::var_os(name))
    };
    let java = setup.needs_java.then(|| java::find(variable("JAVA_HOME"), variable("PATH")));
    let java = java.and_then(|found| found.map_err(|why| faults.push(why)).ok());
    let interfaces = addresses::interfaces();
    if let Err(error) = addresses::chosen(&interfaces, setup.interface.as_deref(), &setup.addresses) {
        faults.push(error.to_string());
    }
    Hello {
        machine: machine(),
        architecture: std::env::consts::ARCH.to_owned(),
        java,
        interfaces,
        reached_at: reached_at(),
        faults,
    }
}

/// The identity of this machine's kernel and of this process's network.
fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let network = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
    format!("{} {}", boot.trim(), network.display())
}
