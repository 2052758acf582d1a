//! The ranks of a host: their monitor, and the descriptors between it and the agent.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use bytes::{Buf, Bytes, BytesMut};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, getpid};
use signal_hook::consts::SIGTERM;
use tracing::info;

use crate::hosts::channel::Channel;
use crate::hosts::frame::{Frame, Stream};
use crate::hosts::hello::Setup;
use crate::hosts::stage::STAGED_FOLDER;
use crate::job::descendants;
use crate::job::exit_status::ExitStatus;
use crate::job::launcher::{StartedMonitor, handle_monitor_end, start_monitor};

/// Maximum octets of an incomplete line of the monitor.
const LINE_MAX: usize = 8 << 20;

/// The ranks of a host.
#[derive(Debug)]
pub(super) struct Ranks {
    /// The name of the host, for messages.
    host: String,
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

impl Ranks {
    /// Starts the monitor. The ranks announce `address`. `staged` is the folder with the copied files, if the
    /// launcher has copied any, and `profiles` the one for profiles, if the ranks write any.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn start(
        setup: &Setup,
        address: IpAddr,
        staged: Option<&Path>,
        profiles: Option<&Path>,
    ) -> io::Result<Ranks> {
        let (reports, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&reports, true)?;
        let path = format!("/proc/{}/fd/{}", getpid().as_raw_nonzero(), writer.as_raw_fd());
        let (exchange, theirs) = UnixStream::pair()?;
        let mut words =
            ["run", "--report-pipe", &path, "--address", &address.to_string()].map(str::to_owned).to_vec();
        words.extend(setup.words.iter().map(|word| match staged {
            Some(folder) => word.replace(STAGED_FOLDER, &folder.to_string_lossy()),
            None => word.clone(),
        }));
        let words: Vec<_> = words.into_iter().map(Into::into).collect();
        let mut command = Command::new("/proc/self/exe");
        command.envs(setup.variables.iter().map(|(name, value)| (name, value)));
        command.envs(profiles.map(|folder| (mpjdev_profile::VARIABLE, folder)));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let StartedMonitor { signals, mut child, input } =
            start_monitor(command, &words, Some(theirs.into()))?;
        let output = child.stdout.take().map(OwnedFd::from);
        let error = child.stderr.take().map(OwnedFd::from);
        for fd in [&output, &error].into_iter().flatten() {
            rustix::io::ioctl_fionbio(fd, true)?;
        }
        rustix::io::ioctl_fionbio(&input, true)?;
        info!(target: "mpjdev::job", pid = child.id(), "monitor of the host is started");
        Ok(Ranks {
            host: setup.host.clone(),
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
        })
    }

    /// Descriptors to poll for reading.
    pub(super) fn readable(&self, channel: &Channel) -> impl Iterator<Item = BorrowedFd<'_>> {
        let has_room = |stream| channel.room(stream) > 0;
        let output = self.output.as_ref().filter(|_| has_room(Stream::Output));
        let error = self.error.as_ref().filter(|_| has_room(Stream::Error));
        let lines = self.exchange.iter().map(AsFd::as_fd).chain([self.reports.as_fd()]);
        [output, error].into_iter().flatten().map(AsFd::as_fd).chain(lines)
    }

    /// The descriptor to poll for writing, if octets wait.
    pub(super) fn writable(&self) -> Option<BorrowedFd<'_>> {
        self.input.as_ref().filter(|_| !self.pending.is_empty()).map(AsFd::as_fd)
    }

    /// Handles a frame for the monitor. One that has ended needs none.
    pub(super) fn handle(&mut self, frame: Frame, channel: &mut Channel) {
        match frame {
            Frame::Exchange(line) => {
                let _ = self.exchange.as_mut().map(|socket| socket.write_all(&[&line[..], b"\n"].concat()));
            }
            Frame::Signal(number) => self.signal(&[number]),
            // A monitor kills its ranks at the second signal that ends them.
            Frame::Kill => self.signal(&[SIGTERM as u8; 2]),
            Frame::Data(Stream::Input, octets) if self.input.is_some() => {
                self.pending.extend_from_slice(&octets);
            }
            Frame::Data(stream, octets) => channel.consume(stream, octets.len()),
            Frame::Closed(Stream::Input) => self.is_input_closing = true,
            Frame::Closed(Stream::Output) => self.output = None,
            Frame::Closed(Stream::Error) => self.error = None,
            _ => {}
        }
    }

    fn signal(&mut self, numbers: &[u8]) {
        let _ = self.signals.as_mut().map(|socket| socket.write_all(numbers));
    }

    /// Moves octets between the monitor and the launcher. Returns the exit status when the monitor has ended
    /// and everything of it has been read.
    pub(super) fn advance(&mut self, channel: &mut Channel) -> Option<u8> {
        self.reap();
        self.write_input(channel);
        if let Some(status) = self.status.filter(|_| self.signals.is_some()) {
            self.signals = None;
            // Processes that outlive the monitor would keep its pipes open.
            self.status = Some(ExitStatus::Exited(handle_monitor_end(status, Some(&self.host))));
        }
        forward(&mut self.output, Stream::Output, channel);
        forward(&mut self.error, Stream::Error, channel);
        self.read_lines(channel);
        let is_read = self.output.is_none() && self.error.is_none();
        self.status.filter(|_| is_read).map(ExitStatus::status)
    }

    /// Lets the monitor end the ranks, whose output has no reader from now on.
    pub(super) fn end(&mut self) {
        (self.signals, self.output, self.error) = (None, None, None);
    }

    /// Whether the monitor runs.
    pub(super) fn is_running(&mut self) -> bool {
        self.reap();
        self.status.is_none()
    }

    fn reap(&mut self) {
        descendants::reap(|pid, status| {
            if self.pid == Some(pid) {
                self.status = Some(status);
            }
        });
    }

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
