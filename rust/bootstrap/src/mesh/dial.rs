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
use super::socket::{HandshakeError, HandshakeStream, bind_to, is_its_own_peer, open, prepare};
use super::{Arrival, Plan, PollEntry, nonce};

/// The pause after a failed attempt, at first and at most.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// A host that this host connects to.
pub(super) struct Outgoing<'p, 'a> {
    plan: &'p Plan<'a>,
    host: u32,
    state: DialState<'a>,
    is_ready: bool,
    pause: Duration,
    last_failure: Option<DialFailure>,
}

enum DialState<'a> {
    /// The next attempt starts at that time.
    Pausing(Instant),
    Connecting(OwnedFd),
    Handshaking(HandshakeStream<'a>),
}

/// The reason why the last attempt has failed.
#[derive(Clone, Copy, Debug)]
enum DialFailure {
    Closed,
    System(Errno),
}

impl<'p, 'a> Outgoing<'p, 'a> {
    pub(super) fn new(plan: &'p Plan<'a>, host: u32, now: Instant) -> Self {
        Outgoing {
            plan,
            host,
            state: DialState::Pausing(now),
            is_ready: false,
            pause: PAUSE_MIN,
            last_failure: None,
        }
    }

    pub(super) fn host(&self) -> u32 {
        self.host
    }

    /// The poll entry.
    pub(super) fn socket(&self) -> Option<PollEntry<'_>> {
        match &self.state {
            DialState::Pausing(_) => None,
            DialState::Connecting(socket) => Some((socket.as_fd(), PollFlags::OUT)),
            DialState::Handshaking(stream) => Some((stream.socket.as_fd(), stream.events())),
        }
    }

    pub(super) fn note_ready(&mut self, is_ready: bool) {
        self.is_ready = is_ready;
    }

    /// The time of the next connection attempt.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        match self.state {
            DialState::Pausing(at) => Some(at),
            DialState::Connecting(_) | DialState::Handshaking(_) => None,
        }
    }

    /// Makes all progress that is possible now; returns the connection when it is complete.
    ///
    /// # Errors
    /// The connection is impossible now and later.
    pub(super) fn advance(&mut self, now: Instant) -> Result<Option<Arrival>, MeshError> {
        match mem::replace(&mut self.state, DialState::Pausing(now)) {
            DialState::Pausing(at) if at <= now => self.start(now),
            DialState::Connecting(socket) if self.is_ready => match socket_error(&socket) {
                Ok(Ok(())) => self.start_handshake(socket, now),
                Ok(Err(errno)) | Err(errno) => self.fail(errno, now),
            },
            DialState::Handshaking(stream) if self.is_ready => self.advance_handshake(stream, now),
            state => {
                self.state = state;
                Ok(None)
            }
        }
    }

    /// Starts an attempt.
    fn start(&mut self, now: Instant) -> Result<Option<Arrival>, MeshError> {
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
            Ok(()) => self.start_handshake(socket, now),
            Err(Errno::INPROGRESS | Errno::INTR) => {
                self.state = DialState::Connecting(socket);
                Ok(None)
            }
            Err(errno) => self.fail(errno, now),
        }
    }

    /// Starts the handshake on a new connection.
    fn start_handshake(&mut self, socket: OwnedFd, now: Instant) -> Result<Option<Arrival>, MeshError> {
        if is_its_own_peer(socket.as_fd()) {
            return self.fail(Errno::CONNREFUSED, now);
        }
        let handshake = if self.plan.host(self.host).is_ours {
            Handshake::connect_ours(self.plan.pair(self.host), nonce()?)
        } else {
            Handshake::connect_foreign(self.plan.number)
        };
        self.advance_handshake(HandshakeStream { socket, handshake }, now)
    }

    fn advance_handshake(
        &mut self,
        mut stream: HandshakeStream<'a>,
        now: Instant,
    ) -> Result<Option<Arrival>, MeshError> {
        match stream.advance() {
            Ok(()) if stream.handshake.is_complete() => {
                let (own, host) = (self.plan.number, self.host);
                debug!(target: "mpjdev::mesh", own, host, "connection is made");
                Ok(Some(Arrival { host, socket: stream.socket }))
            }
            Ok(()) => {
                self.state = DialState::Handshaking(stream);
                Ok(None)
            }
            Err(HandshakeError::Closed) => self.retry(DialFailure::Closed, now),
            Err(HandshakeError::System(errno)) => self.fail(errno, now),
            Err(HandshakeError::Fault(fault)) => {
                let address = self.plan.host(self.host).address;
                Err(MeshError::WrongHost { host: self.host, address, fault })
            }
        }
    }

    /// Handles an error of the system. Where the host may be late, the attempt is repeated.
    fn fail(&mut self, errno: Errno, now: Instant) -> Result<Option<Arrival>, MeshError> {
        match errno {
            Errno::CONNREFUSED
            | Errno::CONNRESET
            | Errno::CONNABORTED
            | Errno::TIMEDOUT
            | Errno::HOSTUNREACH
            | Errno::HOSTDOWN
            | Errno::PIPE => self.retry(DialFailure::System(errno), now),
            _ => Err(self.impossible(errno)),
        }
    }

    fn impossible(&self, errno: Errno) -> MeshError {
        let address = self.plan.host(self.host).address;
        MeshError::Connect { host: self.host, address, error: errno.into() }
    }

    fn retry(&mut self, failure: DialFailure, now: Instant) -> Result<Option<Arrival>, MeshError> {
        let (own, host) = (self.plan.number, self.host);
        debug!(
            target: "mpjdev::mesh", own, host, ?failure, pause = ?self.pause,
            "connection has failed, it is repeated after the pause"
        );
        self.last_failure = Some(failure);
        self.state = DialState::Pausing(now + self.pause);
        self.pause = (2 * self.pause).min(PAUSE_MAX);
        Ok(None)
    }

    /// The reason why the host is not connected.
    pub(super) fn absence(&self) -> Absence {
        match (&self.state, self.last_failure) {
            (DialState::Handshaking(_), _) => Absence::NoAnswer,
            (_, Some(DialFailure::Closed)) => Absence::Closing,
            (_, Some(DialFailure::System(errno))) => Absence::Unreachable(errno),
            (_, None) => Absence::NotReached,
        }
    }
}
