//! The startup server of a job whose sites one launcher starts.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use tracing::debug;

use super::{Monitor, Pipe};
use crate::impi::auth::{AUTH_KEY, AUTH_KEY_FILE, AUTH_NONE};
use crate::job::exit_status::ExitStatus;
use crate::job::lines::Lines;
use crate::job::network::random;

/// Maximum time until the server prints its address.
const START_MAX: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };
/// Maximum time from the end of all sites to that of the server.
const END_MAX: Duration = Duration::from_secs(5);
/// Maximum octets of the server's output that are kept.
const OUTPUT_MAX: usize = 64 << 10;
/// The status if the server has failed and no site has.
const FAILED: u8 = 1;

/// A running server.
#[derive(Debug)]
pub(super) struct StartupServer {
    pid: Pid,
    address: String,
    /// The key, as the sites find it in their environment.
    key: String,
    status: Option<ExitStatus>,
}

impl StartupServer {
    /// The address of the server.
    pub(super) fn address(&self) -> &str {
        &self.address
    }
}

impl Monitor {
    /// Starts the server, if the plan has sites.
    ///
    /// # Errors
    /// The server does not start, or does not print its address.
    pub(super) fn start_server(&mut self) -> io::Result<()> {
        let Some(sites) = &self.plan.sites else { return Ok(()) };
        // A number that every implementation can read.
        let key = (u64::from_ne_bytes(random()?) >> 1).to_string();
        let ranks = self.plan.ranks.to_string();
        let words = ["/proc/self/exe", "impi-server", "--server", &ranks, "--dialect", sites.dialect];
        let mut command = self.command(&words.map(OsString::from), None);
        set_key(&mut command, &key);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        let pid = Pid::from_child(&child);
        if let Some(fd) = child.stderr.take().map(OwnedFd::from) {
            rustix::io::ioctl_fionbio(&fd, true)?;
            self.pipes.push(Pipe { fd, rank: None, lines: Lines::new(""), is_error: true });
        }
        let address = address(&mut child)?;
        debug!(target: "mpjdev::server", pid = child.id(), address, "startup server is started");
        self.server = Some(StartupServer { pid, address, key, status: None });
        Ok(())
    }

    /// Sets the key in the environment of a site, and removes it from that of a rank.
    pub(super) fn set_server_key(&self, command: &mut Command) {
        if let Some(server) = &self.server {
            set_key(command, &server.key);
        } else if self.plan.site.is_some() {
            command.env_remove(AUTH_KEY).env_remove(AUTH_KEY_FILE);
        }
    }

    pub(super) fn note_server_end(&mut self, pid: Pid, status: ExitStatus) {
        if let Some(server) = self.server.as_mut().filter(|server| server.pid == pid) {
            server.status = Some(status);
        }
    }

    /// Waits for the end of the server. It ends by itself if the job has succeeded.
    pub(super) fn end_server(&mut self, launcher: &UnixStream, children: &UnixStream) {
        if self.plan.sites.is_none() {
            return;
        }
        self.forward();
        let deadline = Instant::now() + END_MAX;
        while let Some(StartupServer { pid, status: None, .. }) = self.server {
            let is_over = self.result.status() != 0 || !self.has_launcher || self.closing.is_some();
            if is_over || Instant::now() > deadline {
                // Its report is not needed any more.
                let _ = kill_process(pid, Signal::KILL);
            }
            self.wait(launcher, children);
            self.listen(launcher, children);
            self.forward();
            self.reap();
            self.keep_time();
        }
        let status = self.server.take().map(|server| server.status);
        let is_its_fault = match status {
            // A failed site has reported the reason already.
            Some(status) => self.result.status() == 0 && status.is_some_and(|status| !status.is_good()),
            None => true,
        };
        if is_its_fault {
            self.result.handle_own(FAILED);
        }
        if is_its_fault || mpjdev_logging::is_on() {
            self.err.put(self.server_output.split().freeze());
        }
    }
}

/// Keeps the server's output; false at its end.
pub(super) fn keep_server_output(
    fd: BorrowedFd<'_>,
    server_output: &mut BytesMut,
    octets: &mut [u8],
) -> bool {
    loop {
        match rustix::io::read(fd, &mut *octets) {
            Ok(0) => return false,
            Ok(n) => server_output.extend_from_slice(&octets[..n.min(OUTPUT_MAX - server_output.len())]),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return true,
            Err(_) => return false,
        }
    }
}

fn set_key(command: &mut Command, key: &str) {
    command.env(AUTH_KEY, key).env_remove(AUTH_KEY_FILE).env_remove(AUTH_NONE);
}

/// The address of the server, which is its first line of output.
fn address(child: &mut Child) -> io::Result<String> {
    let stdout = child.stdout.take().ok_or_else(|| io::Error::other("the startup server has no output"))?;
    let mut line = String::new();
    let count =
        rustix::io::retry_on_intr(|| poll(&mut [PollFd::new(&stdout, PollFlags::IN)], Some(&START_MAX)))?;
    if count > 0 {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    match line.trim() {
        "" => Err(io::Error::other("the startup server has not printed its address within 10 s")),
        address => Ok(address.to_owned()),
    }
}
