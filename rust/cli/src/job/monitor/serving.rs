//! The startup server of a job whose sites are all started here.

use std::io::{self, BufRead, BufReader};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::{Job, Pipe};
use crate::impi::auth::{AUTH_KEY, AUTH_KEY_FILE, AUTH_NONE};
use crate::job::ending::Ending;
use crate::job::lines::Lines;
use crate::job::network::random;

/// How long it may take to say where it is.
const START_MAX: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };
/// How long it may take to end when all sites have.
const END_MAX: Duration = Duration::from_secs(5);
/// Octets of what it says that are kept.
const HEARD_MAX: usize = 64 << 10;
/// The status when it has failed, and no site has.
const FAILED: u8 = 1;

/// A server under way.
#[derive(Debug)]
pub(super) struct Server {
    pid: Pid,
    address: String,
    /// As the sites find it in their environment.
    key: String,
    ending: Option<Ending>,
}

impl Server {
    /// Where it is.
    pub(super) fn address(&self) -> &str {
        &self.address
    }
}

impl Job {
    /// Starts the server, where there is to be one.
    ///
    /// # Errors
    /// It does not say where it is.
    pub(super) fn serve(&mut self) -> io::Result<()> {
        let Some(sites) = &self.plan.sites else { return Ok(()) };
        // As a number that every implementation reads.
        let key = (u64::from_ne_bytes(random()?) >> 1).to_string();
        let mut command = self.stub(None);
        command.args(["/proc/self/exe", "impi-server", "--server"]).arg(self.plan.ranks.to_string());
        command.args(["--dialect", sites.dialect]);
        set_key(&mut command, &key);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        let pid = Pid::from_child(&child);
        if let Some(fd) = child.stderr.take().map(OwnedFd::from) {
            rustix::io::ioctl_fionbio(&fd, true)?;
            self.pipes.push(Pipe { fd, rank: None, lines: Lines::new(""), is_error: true });
        }
        let address = address(&mut child)?;
        self.server = Some(Server { pid, address, key, ending: None });
        Ok(())
    }

    /// Gives a program the key that it needs, and no other one a key.
    pub(super) fn hand_on_key(&self, command: &mut Command) {
        if let Some(server) = &self.server {
            set_key(command, &server.key);
        } else if self.plan.site.is_some() {
            command.env_remove(AUTH_KEY).env_remove(AUTH_KEY_FILE);
        }
    }

    pub(super) fn note_server_end(&mut self, pid: Pid, ending: Ending) {
        if let Some(server) = self.server.as_mut().filter(|server| server.pid == pid) {
            server.ending = Some(ending);
        }
    }

    /// Lets the server end, which it does by itself when all has gone well.
    pub(super) fn end_server(&mut self, launcher: &UnixStream, children: &UnixStream) {
        if self.plan.sites.is_none() {
            return;
        }
        self.forward();
        let deadline = Instant::now() + END_MAX;
        while let Some(Server { pid, ending: None, .. }) = self.server {
            let is_over = self.verdict.status() != 0 || !self.is_led || self.closing.is_some();
            if is_over || Instant::now() > deadline {
                // It has nothing to say any more.
                let _ = kill_process(pid, Signal::KILL);
            }
            self.wait(launcher, children);
            self.listen(launcher, children);
            self.forward();
            self.reap();
            self.keep_time();
        }
        let ending = self.server.take().map(|server| server.ending);
        let is_its_fault = match ending {
            // A site that has failed has said why, and the server would say no more than that.
            Some(ending) => self.verdict.status() == 0 && ending.is_some_and(|ending| !ending.is_good()),
            None => true,
        };
        if is_its_fault {
            self.verdict.handle_own(FAILED);
            self.err.put(std::mem::take(&mut self.heard));
        }
    }
}

/// Keeps what the server says; false when that is over.
pub(super) fn hear(fd: BorrowedFd<'_>, heard: &mut Vec<u8>, octets: &mut [u8]) -> bool {
    loop {
        match rustix::io::read(fd, &mut *octets) {
            Ok(0) => return false,
            Ok(n) => heard.extend_from_slice(&octets[..n.min(HEARD_MAX - heard.len())]),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return true,
            Err(_) => return false,
        }
    }
}

fn set_key(command: &mut Command, key: &str) {
    command.env(AUTH_KEY, key).env_remove(AUTH_KEY_FILE).env_remove(AUTH_NONE);
}

/// What a server says first: where it is to be reached.
fn address(child: &mut Child) -> io::Result<String> {
    let stdout = child.stdout.take().ok_or_else(|| io::Error::other("the startup server has no output"))?;
    let mut line = String::new();
    let count =
        rustix::io::retry_on_intr(|| poll(&mut [PollFd::new(&stdout, PollFlags::IN)], Some(&START_MAX)))?;
    if count > 0 {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    match line.trim() {
        "" => Err(io::Error::other("the startup server does not say where it is")),
        address => Ok(address.to_owned()),
    }
}
