//! The launcher's connection to the agent of one host, from its remote shell to the end.
//!
//! ```text
//!   Queued --> Greeting --> Checking --> Ready --> Running --> Ended
//!              remote       files, then            frames
//!              shell        a Hello
//!        at any time before Running: Faulty          Running: Ended, or Lost
//! ```

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpid};

use super::channel::{Channel, ChannelError};
use super::frame::{DATA_MAX, Frame, ShellLine, Stream};
use super::hello::Hello;
use super::plan::HostsPlan;
use super::remote_command::advice;
use crate::job::descendants;
use crate::job::exit_status::ExitStatus;
use crate::job::lines::Lines;

/// Maximum octets of a remote shell's words that are kept.
const SHELL_TEXT_MAX: usize = 16 << 10;
/// Time for a remote shell to end when its output has ended.
const SHELL_END_MAX: Duration = Duration::from_millis(500);
/// Lines of these that a message quotes.
const QUOTED_MAX: usize = 3;

/// The state of a host.
#[derive(Debug)]
pub enum HostState {
    /// Its remote shell has not been started.
    Queued,
    /// Its remote shell runs.
    Greeting,
    /// Its agent runs.
    Checking,
    /// It can take part.
    Ready(Hello),
    /// It cannot take part, for these reasons.
    Faulty(Vec<String>),
    /// Its ranks run.
    Running,
    /// Its ranks have ended with this status.
    Ended(u8),
    /// The connection ended while its ranks ran.
    Lost,
}

/// Something that a running host reports.
#[derive(Debug)]
pub enum HostEvent {
    /// A line of the exchange.
    Exchange(Bytes),
    /// A rank has failed.
    Failure(String),
    /// Whole lines of output.
    Output(Bytes),
    /// Whole lines of error output.
    Error(Bytes),
    /// Octets of the profiles of the host's ranks.
    Profiles(Bytes),
    /// Rank 0 reads no more input.
    InputClosed,
    /// All ranks have ended.
    Ended(u8),
    /// The host is lost, for this reason.
    Lost(String),
}

/// A host, and the connection to its agent.
#[derive(Debug)]
pub struct HostLink {
    /// The name of the host.
    pub name: String,
    /// Its state.
    pub state: HostState,
    pid: Option<Pid>,
    to: Option<OwnedFd>,
    from: Option<OwnedFd>,
    /// Standard error of the remote shell.
    shell_error: Option<OwnedFd>,
    /// Octets of the shell from before the agent ran, and of its standard error.
    shell_text: String,
    /// The end of the remote shell.
    status: Option<ExitStatus>,
    channel: Channel,
    /// The program that the shell waits for.
    program: Option<File>,
    /// Staged files that are not sent yet, and the one that is being sent.
    files_sent: usize,
    sending: Option<io::Take<File>>,
    /// The time at which the host counts as unreachable.
    ready_by: Option<Instant>,
    /// Incomplete lines of output and error output of the ranks, and of the shell.
    lines: [Lines; 3],
    /// Octets of output that were forwarded and not acknowledged.
    unacknowledged: [usize; 2],
}

impl HostLink {
    /// A host whose agent is not started.
    #[must_use]
    pub fn new(name: &str) -> HostLink {
        HostLink {
            name: name.to_owned(),
            state: HostState::Queued,
            pid: None,
            to: None,
            from: None,
            shell_error: None,
            shell_text: String::new(),
            status: None,
            channel: Channel::new(),
            program: None,
            files_sent: 0,
            sending: None,
            ready_by: None,
            lines: [Lines::new(""), Lines::new(""), Lines::new("")],
            unacknowledged: [0; 2],
        }
    }

    /// Starts the remote shell.
    pub fn start(&mut self, plan: &HostsPlan, host: usize, mut command: Command) {
        // Signals of the terminal go to the launcher, which forwards them.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        self.ready_by = Some(Instant::now() + plan.connect_time);
        self.state = HostState::Greeting;
        let begun = command.spawn().and_then(|mut child| {
            self.pid = Some(Pid::from_child(&child));
            self.to = child.stdin.take().map(OwnedFd::from);
            self.from = child.stdout.take().map(OwnedFd::from);
            self.shell_error = child.stderr.take().map(OwnedFd::from);
            for fd in [&self.to, &self.from, &self.shell_error].into_iter().flatten() {
                rustix::io::ioctl_fionbio(fd, true)?;
            }
            Ok(())
        });
        let begun = begun.and_then(|()| {
            let is_copied = plan.stage_of(host).is_some();
            self.program = is_copied.then(|| File::open(&plan.program)).transpose()?;
            Ok(())
        });
        if let Err(error) = begun {
            let name = plan.shell.name();
            let advice = match error.kind() {
                io::ErrorKind::NotFound => " (install it, or name another program with --launcher)",
                _ => "",
            };
            self.fail(format!("cannot start {name}: {error}{advice}"));
        }
    }

    /// The process of the remote shell, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<Pid> {
        self.pid.filter(|_| self.status.is_none())
    }

    /// Whether the host is on its way to be ready.
    #[must_use]
    pub fn is_starting(&self) -> bool {
        matches!(self.state, HostState::Greeting | HostState::Checking)
    }

    /// Whether its ranks run.
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(self.state, HostState::Running)
    }

    /// Whether its ranks have been started.
    #[must_use]
    pub fn has_started(&self) -> bool {
        matches!(self.state, HostState::Running | HostState::Ended(_) | HostState::Lost)
    }

    /// Descriptors to poll for reading.
    pub fn readable(&self) -> impl Iterator<Item = &OwnedFd> {
        [&self.from, &self.shell_error].into_iter().flatten()
    }

    /// The descriptor to poll for writing, if octets wait.
    #[must_use]
    pub fn writable(&self) -> Option<&OwnedFd> {
        let has_more = self.channel.is_waiting() || self.sending.is_some();
        self.to.as_ref().filter(|_| has_more)
    }

    /// The time at which [`advance`](Self::advance) has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.ready_by.filter(|_| self.is_starting()).into_iter().chain(self.channel.next_deadline()).min()
    }

    /// Sends a frame.
    pub fn send(&mut self, frame: &Frame) {
        self.channel.send(frame);
        self.write();
    }

    /// Octets of input that the host takes now.
    #[must_use]
    pub fn input_room(&self) -> usize {
        if self.is_running() { self.channel.room(Stream::Input) } else { 0 }
    }

    /// Sends input to rank 0, at most [`input_room`](Self::input_room) octets.
    pub fn send_input(&mut self, octets: Bytes) {
        self.channel.send_data(Stream::Input, octets);
        self.write();
    }

    /// The output that was forwarded has left this process.
    pub fn acknowledge_output(&mut self, stream: Stream) {
        let octets = &mut self.unacknowledged[usize::from(stream == Stream::Error)];
        if *octets > 0 {
            self.channel.consume(stream, std::mem::take(octets));
            self.write();
        }
    }

    /// The remote shell has ended.
    pub fn handle_exit(&mut self, status: ExitStatus) {
        self.status = Some(status);
    }

    /// Kills the remote shell. Its agent sees the end of the connection, and ends the ranks.
    pub fn kill(&mut self) {
        if self.is_running() {
            self.state = HostState::Lost;
        }
        (self.to, self.from) = (None, None);
        if let Some(pid) = self.pid() {
            // A shell that has ended meanwhile needs no signal.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    /// Closes the connection, which ends the agent.
    pub fn close(&mut self) {
        self.to = None;
    }

    fn write(&mut self) {
        if let Some(to) = &self.to {
            self.channel.write(to);
        }
    }

    /// Reads, writes and keeps time. Returns what a running host reports.
    pub fn advance(&mut self, plan: &HostsPlan, host: usize) -> Vec<HostEvent> {
        let mut events = Vec::new();
        self.read_shell_error(&mut events);
        let is_open = match &self.from {
            Some(from) => self.channel.read(from),
            None => return events,
        };
        let handled = self.handle_octets(plan, host, &mut events);
        let ended = handled.and(is_open).and_then(|()| self.channel.keep_time());
        if let Err(error) = ended {
            self.handle_end(plan, &error, &mut events);
        } else if self.is_starting() && self.ready_by.is_some_and(|at| at <= Instant::now()) {
            let waited = plan.connect_time.as_secs_f64();
            self.fail(format!("not ready within {waited} s (--connect-timeout){}", self.quoted()));
        }
        self.send_files(plan, host);
        self.write();
        events
    }

    fn handle_octets(
        &mut self,
        plan: &HostsPlan,
        host: usize,
        events: &mut Vec<HostEvent>,
    ) -> Result<(), ChannelError> {
        while matches!(self.state, HostState::Greeting) {
            let Some(line) = self.channel.next_line()? else { return Ok(()) };
            match ShellLine::parse(&line) {
                Some(line) => self.handle_shell_line(plan, host, &line),
                None => self.note(line.as_bytes()),
            }
        }
        while self.from.is_some()
            && let Some(frame) = self.channel.next_frame()?
        {
            self.handle(frame, events);
        }
        Ok(())
    }

    fn handle_shell_line(&mut self, plan: &HostsPlan, host: usize, line: &ShellLine) {
        match line {
            ShellLine::Agent { version } if version == env!("CARGO_PKG_VERSION") => {
                self.state = HostState::Checking;
                self.shell_text.clear();
                let setup = plan.setup(host);
                // A host that is ready may wait long for others.
                self.channel.begin_heartbeats(Duration::from_millis(setup.silence_ms));
                self.channel.send(&Frame::Setup(setup));
            }
            ShellLine::Agent { version } => self.fail(format!(
                "it has version {version} of mpjdev, and this launcher is {}: install the same version \
                 there, or use --stage",
                env!("CARGO_PKG_VERSION")
            )),
            ShellLine::Missing { path } => {
                self.fail(format!(
                    "it has no program {path}: install mpjdev at the same place, or use --stage"
                ));
            }
            ShellLine::Stage { machine } if machine == std::env::consts::ARCH => {
                self.send_program(plan, host);
            }
            ShellLine::Stage { machine } => self.fail(format!(
                "its architecture is {machine}, and this one is {}: install mpjdev there, and run \
                 without --stage",
                std::env::consts::ARCH
            )),
        }
    }

    /// Sends our program, which the shell stores and starts.
    fn send_program(&mut self, plan: &HostsPlan, host: usize) {
        let mut octets = Vec::new();
        let len = plan.stage_of(host).map_or(0, |stage| stage.program_len);
        let read = self.program.take().map(|file| file.take(len).read_to_end(&mut octets)).transpose();
        match read {
            Ok(Some(read)) if read as u64 == len => self.channel.send_raw(&octets),
            Ok(_) => self.fail(format!("{} has changed meanwhile", plan.program.display())),
            Err(error) => self.fail(format!("{}: {error}", plan.program.display())),
        }
    }

    /// Sends staged files, as far as their credit and the pipe allow.
    fn send_files(&mut self, plan: &HostsPlan, host: usize) {
        let Some(stage) = plan.stage_of(host).filter(|_| matches!(self.state, HostState::Checking)) else {
            return;
        };
        while !self.channel.is_waiting() {
            if let Some(file) = &mut self.sending {
                let room = self.channel.room(Stream::File);
                if room == 0 {
                    return;
                }
                let mut octets = vec![0; room.min(DATA_MAX)];
                match file.read(&mut octets) {
                    Ok(0) => self.sending = None,
                    Ok(n) => {
                        octets.truncate(n);
                        self.channel.send_data(Stream::File, octets.into());
                        // A slow network is no fault as long as octets move.
                        self.ready_by = Some(Instant::now() + plan.connect_time);
                    }
                    Err(error) => return self.fail(format!("a staged file: {error}")),
                }
                self.write();
                continue;
            }
            let Some(source) = stage.sources.get(self.files_sent) else { return };
            self.files_sent += 1;
            match File::open(&source.file) {
                Ok(file) => {
                    // A file that grows meanwhile has its first octets only.
                    self.sending = (source.staged.len > 0).then(|| file.take(source.staged.len));
                    self.channel.send(&Frame::File(source.staged.clone()));
                }
                Err(error) => return self.fail(format!("{}: {error}", source.file.display())),
            }
        }
    }

    fn handle(&mut self, frame: Frame, events: &mut Vec<HostEvent>) {
        match (frame, &self.state) {
            (Frame::Hello(hello), HostState::Checking) if hello.faults.is_empty() => {
                self.state = HostState::Ready(hello);
            }
            (Frame::Hello(hello), HostState::Checking) => self.state = HostState::Faulty(hello.faults),
            (Frame::Exchange(line), HostState::Running) => events.push(HostEvent::Exchange(line)),
            (Frame::Failure(line), HostState::Running) => {
                events.push(HostEvent::Failure(String::from_utf8_lossy(&line).into_owned()));
            }
            (Frame::Data(Stream::Output, octets), HostState::Running) => {
                self.unacknowledged[0] += octets.len();
                events.push(HostEvent::Output(self.lines[0].handle_octets(&octets)));
            }
            (Frame::Data(Stream::Error, octets), HostState::Running) => {
                self.unacknowledged[1] += octets.len();
                events.push(HostEvent::Error(self.lines[1].handle_octets(&octets)));
            }
            (Frame::Data(Stream::Profiles, octets), HostState::Running) => {
                self.channel.consume(Stream::Profiles, octets.len());
                events.push(HostEvent::Profiles(octets));
            }
            (Frame::Closed(Stream::Input), HostState::Running) => events.push(HostEvent::InputClosed),
            (Frame::End(status), HostState::Running) => {
                self.end_lines(events);
                events.push(HostEvent::Ended(status));
                self.state = HostState::Ended(status);
                self.to = None;
            }
            _ => {}
        }
    }

    /// Passes on the last lines, also without their ends.
    fn end_lines(&mut self, events: &mut Vec<HostEvent>) {
        events.push(HostEvent::Output(self.lines[0].handle_end()));
        events.push(HostEvent::Error(self.lines[1].handle_end()));
        events.push(HostEvent::Error(self.lines[2].handle_end()));
    }

    /// Begins to run the ranks.
    pub fn run(&mut self, start: Frame) {
        self.state = HostState::Running;
        self.send(&start);
    }

    /// The connection has ended.
    fn handle_end(&mut self, plan: &HostsPlan, error: &ChannelError, events: &mut Vec<HostEvent>) {
        self.from = None;
        let is_ended = matches!(error, ChannelError::Ended);
        match self.state {
            HostState::Greeting | HostState::Checking | HostState::Ready(_) => {
                // The text of the shell and its status explain the end of its output.
                let why = if is_ended { self.end_of_shell(plan) } else { error.to_string() + &self.quoted() };
                self.fail(why);
            }
            HostState::Running => {
                self.end_lines(events);
                let why = if is_ended { self.end_of_shell(plan) } else { error.to_string() };
                events.push(HostEvent::Lost(why));
                self.state = HostState::Lost;
            }
            _ => {}
        }
    }

    /// The end of the remote shell, with its last words and what to do.
    fn end_of_shell(&mut self, plan: &HostsPlan) -> String {
        self.await_end();
        let name = plan.shell.name();
        let status =
            self.status.map_or_else(|| "has closed its output".to_owned(), |status| status.to_string());
        let bare = self.name.rsplit('@').next().unwrap_or_default();
        let advice = advice(bare, &self.shell_text).map(|advice| format!(" ({advice})")).unwrap_or_default();
        format!("{name} {status}{}{advice}", self.quoted())
    }

    /// Waits a moment for the end of the shell and the rest of its words.
    fn await_end(&mut self) {
        let deadline = Instant::now() + SHELL_END_MAX;
        while (self.shell_error.is_some() || self.status.is_none()) && Instant::now() < deadline {
            self.read_shell_error(&mut Vec::new());
            if let Some(pid) = self.pid() {
                let ended = waitpid(Some(pid), WaitOptions::NOHANG).ok().flatten();
                self.status = ended.and_then(|(_, status)| descendants::exit_status(status));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn quoted(&self) -> String {
        let lines: Vec<&str> =
            self.shell_text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(QUOTED_MAX)..];
        if last.is_empty() { String::new() } else { format!(": {}", last.join(" / ")) }
    }

    /// The host cannot take part.
    fn fail(&mut self, why: String) {
        self.state = HostState::Faulty(vec![why]);
        self.kill();
    }

    /// Keeps the last octets of the shell's words.
    fn note(&mut self, octets: &[u8]) {
        self.shell_text += &String::from_utf8_lossy(octets);
        if !self.shell_text.ends_with('\n') {
            self.shell_text.push('\n');
        }
        if self.shell_text.len() > SHELL_TEXT_MAX {
            let mut cut = self.shell_text.len() - SHELL_TEXT_MAX / 2;
            while !self.shell_text.is_char_boundary(cut) {
                cut += 1;
            }
            self.shell_text.drain(..cut);
        }
    }

    /// Reads standard error of the remote shell. While the ranks run, its lines are passed on.
    fn read_shell_error(&mut self, events: &mut Vec<HostEvent>) {
        let mut octets = BytesMut::zeroed(4096);
        while let Some(fd) = &self.shell_error {
            match rustix::io::read(fd, &mut octets[..]) {
                Ok(0) => self.shell_error = None,
                Ok(n) => {
                    self.note(&octets[..n]);
                    if self.is_running() {
                        events.push(HostEvent::Error(self.lines[2].handle_octets(&octets[..n])));
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.shell_error = None,
            }
        }
    }
}
