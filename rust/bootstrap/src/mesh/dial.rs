//! Connections to hosts with lower numbers.

use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::connect;
use rustix::net::sockopt::socket_error;
use tracing::debug;

use super::error::{Absence, MeshError};
use super::handshake::Handshake;
use super::socket::{Ended, Talk, bind_to, is_its_own_peer, open, prepare};
use super::{Arrival, Plan, Watched, nonce};

/// The pause after a failed connection, at first and at last.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// A host that this host connects to.
pub(super) struct Outgoing<'p, 'a> {
    plan: &'p Plan<'a>,
    host: u32,
    stage: Stage<'a>,
    is_ready: bool,
    pause: Duration,
    trouble: Option<Trouble>,
}

enum Stage<'a> {
    /// The next connection is tried at that time.
    Apart(Instant),
    Connecting(OwnedFd),
    Talking(Talk<'a>),
}

/// The result of the last connection.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    Closed,
    System(Errno),
}

impl<'p, 'a> Outgoing<'p, 'a> {
    pub(super) fn new(plan: &'p Plan<'a>, host: u32, now: Instant) -> Self {
        Outgoing { plan, host, stage: Stage::Apart(now), is_ready: false, pause: PAUSE_MIN, trouble: None }
    }

    pub(super) fn host(&self) -> u32 {
        self.host
    }

    /// The poll entry.
    pub(super) fn socket(&self) -> Option<Watched<'_>> {
        match &self.stage {
            Stage::Apart(_) => None,
            Stage::Connecting(socket) => Some((socket.as_fd(), PollFlags::OUT)),
            Stage::Talking(talk) => Some((talk.socket.as_fd(), talk.events())),
        }
    }

    pub(super) fn note_ready(&mut self, is_ready: bool) {
        self.is_ready = is_ready;
    }

    /// The time of the next connection attempt.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        match self.stage {
            Stage::Apart(at) => Some(at),
            Stage::Connecting(_) | Stage::Talking(_) => None,
        }
    }

    /// Makes all progress that is possible now; returns the connection when it is complete.
    ///
    /// # Errors
    /// The connection is impossible now and later.
    pub(super) fn advance(&mut self, now: Instant) -> Result<Option<Arrival>, MeshError> {
        match mem::replace(&mut self.stage, Stage::Apart(now)) {
            Stage::Apart(at) if at <= now => self.call(now),
            Stage::Connecting(socket) if self.is_ready => match socket_error(&socket) {
                Ok(Ok(())) => self.greet(socket, now),
                Ok(Err(errno)) | Err(errno) => self.fail(errno, now),
            },
            Stage::Talking(talk) if self.is_ready => self.talk(talk, now),
            stage => {
                self.stage = stage;
                Ok(None)
            }
        }
    }

    /// Tries a connection.
    fn call(&mut self, now: Instant) -> Result<Option<Arrival>, MeshError> {
        let address = self.plan.host(self.host).address;
        let (own, host) = (self.plan.number, self.host);
        debug!(target: "mpjdev::mesh", own, host, %address, "connection is tried");
        let socket = open(&address).map_err(|errno| self.impossible(errno))?;
        prepare(socket.as_fd(), self.plan.peer_timeout)
            .map_err(|errno| MeshError::system("set the options of a socket", errno))?;
        if let Some(from) = self.plan.bind.filter(|from| from.is_ipv4() == address.is_ipv4()) {
            bind_to(socket.as_fd(), from).map_err(|errno| MeshError::Bind {
                host: self.host,
                address,
                bind: from,
                error: errno.into(),
            })?;
        }
        match connect(&socket, &address) {
            Ok(()) => self.greet(socket, now),
            Err(Errno::INPROGRESS | Errno::INTR) => {
                self.stage = Stage::Connecting(socket);
                Ok(None)
            }
            Err(errno) => self.fail(errno, now),
        }
    }

    /// Starts the exchange on a new connection.
    fn greet(&mut self, socket: OwnedFd, now: Instant) -> Result<Option<Arrival>, MeshError> {
        if is_its_own_peer(socket.as_fd()) {
            return self.fail(Errno::CONNREFUSED, now);
        }
        let exchange = if self.plan.host(self.host).is_ours {
            Handshake::connect_ours(self.plan.pair(self.host), nonce()?)
        } else {
            Handshake::connect_foreign(self.plan.number)
        };
        self.talk(Talk { socket, exchange }, now)
    }

    fn talk(&mut self, mut talk: Talk<'a>, now: Instant) -> Result<Option<Arrival>, MeshError> {
        match talk.advance() {
            Ok(()) if talk.exchange.is_complete() => {
                let (own, host) = (self.plan.number, self.host);
                debug!(target: "mpjdev::mesh", own, host, "connection is made");
                Ok(Some(Arrival { host, socket: talk.socket }))
            }
            Ok(()) => {
                self.stage = Stage::Talking(talk);
                Ok(None)
            }
            Err(Ended::Closed) => self.try_again(Trouble::Closed, now),
            Err(Ended::System(errno)) => self.fail(errno, now),
            Err(Ended::Fault(fault)) => {
                let address = self.plan.host(self.host).address;
                Err(MeshError::WrongHost { host: self.host, address, fault })
            }
        }
    }

    /// Handles an error of the system: the host may be a little late, or unreachable.
    fn fail(&mut self, errno: Errno, now: Instant) -> Result<Option<Arrival>, MeshError> {
        match errno {
            Errno::CONNREFUSED
            | Errno::CONNRESET
            | Errno::CONNABORTED
            | Errno::TIMEDOUT
            | Errno::HOSTUNREACH
            | Errno::HOSTDOWN
            | Errno::PIPE => self.try_again(Trouble::System(errno), now),
            _ => Err(self.impossible(errno)),
        }
    }

    fn impossible(&self, errno: Errno) -> MeshError {
        let address = self.plan.host(self.host).address;
        MeshError::Connect { host: self.host, address, error: errno.into() }
    }

    fn try_again(&mut self, trouble: Trouble, now: Instant) -> Result<Option<Arrival>, MeshError> {
        let (own, host) = (self.plan.number, self.host);
        debug!(
            target: "mpjdev::mesh", own, host, ?trouble, pause = ?self.pause,
            "connection has failed, it is tried again"
        );
        self.trouble = Some(trouble);
        self.stage = Stage::Apart(now + self.pause);
        self.pause = (2 * self.pause).min(PAUSE_MAX);
        Ok(None)
    }

    /// The reason why the host is not connected.
    pub(super) fn absence(&self) -> Absence {
        match (&self.stage, self.trouble) {
            (Stage::Talking(_), _) => Absence::Mute,
            (_, Some(Trouble::Closed)) => Absence::Closing,
            (_, Some(Trouble::System(errno))) => Absence::Unreachable(errno),
            (_, None) => Absence::Silent,
        }
    }
}
