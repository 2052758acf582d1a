//! A site's connection to the startup server, from joining the job to its end.
//!
//! [`join`] does everything in one call. A caller with a loop of its own uses the parts: [`Link::connect`],
//! [`Link::begin`], then [`Joining::advance`] whenever its descriptor is ready.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use mpjdev_proto::impi::startup::{Client, ClientError, Event, Settings, SettingsError, Tables};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thiserror::Error;

/// Octets of one read.
const PIECE: usize = 64 << 10;
/// Maximum time to connect if there is no deadline.
const CONNECT_MAX: Duration = Duration::from_secs(60);

/// The reason why a site has not joined its job, or has lost the startup server.
#[derive(Debug, Error)]
pub enum JoinError {
    /// The server's address cannot be resolved.
    #[error("startup server {address}: {source}")]
    Address {
        /// The address as the user gave it.
        address: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The connection failed.
    #[error("cannot connect to the startup server at {address}: {source}")]
    Connect {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The settings are not valid for a client.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The server or a client breaks the protocol, or the server has aborted the job.
    #[error(transparent)]
    Protocol(#[from] ClientError),
    /// The connection is broken.
    #[error("connection to the startup server: {0}")]
    Io(#[from] io::Error),
    /// The deadline has passed.
    #[error(
        "the time is over: {}",
        if *.has_joined { "the job has not started" } else { "not all clients have joined" }
    )]
    Deadline {
        /// Whether all clients had joined.
        has_joined: bool,
    },
}

/// A site that has joined.
#[derive(Debug)]
pub struct Joined {
    /// The tables of the job.
    pub tables: Tables,
    /// The connection; the caller keeps it while the job runs.
    pub connection: Connection,
}

/// Joins the job of the server at this address, `host:port`. Blocks until all clients have joined and the
/// tables have arrived.
///
/// # Errors
/// The site has not joined before the deadline, or at all.
pub fn join(address: &str, settings: Settings, deadline: Option<Instant>) -> Result<Joined, JoinError> {
    Link::connect(address, deadline)?.begin(settings)?.join(deadline)
}

/// A new connection, on which no octets have been sent. The server waits some seconds for the first octets.
#[derive(Debug)]
pub struct Link {
    stream: TcpStream,
}

impl Link {
    /// Connects to the server; blocks.
    ///
    /// # Errors
    /// The connection fails, or the deadline passes.
    pub fn connect(address: &str, deadline: Option<Instant>) -> Result<Link, JoinError> {
        let unknown = |source| JoinError::Address { address: address.to_owned(), source };
        let addresses = address.to_socket_addrs().map_err(unknown)?;
        let mut last = unknown(io::Error::from(ErrorKind::NotFound));
        for address in addresses {
            let left = deadline.map_or(CONNECT_MAX, |at| at.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(JoinError::Deadline { has_joined: false });
            }
            match TcpStream::connect_timeout(&address, left) {
                Ok(stream) => {
                    super::set_options(&stream);
                    stream.set_nonblocking(true)?;
                    return Ok(Link { stream });
                }
                Err(source) => last = JoinError::Connect { address, source },
            }
        }
        Err(last)
    }

    /// This machine's address on the path to the server. Other sites may be able to reach it.
    ///
    /// # Errors
    /// The system does not know the address.
    pub fn local_address(&self) -> io::Result<IpAddr> {
        Ok(self.stream.local_addr()?.ip())
    }

    /// Begins to join. The ports in the settings must already listen.
    ///
    /// # Errors
    /// The settings are not valid for a client.
    pub fn begin(self, settings: Settings) -> Result<Joining, JoinError> {
        let driver = Driver { stream: self.stream, client: Client::new(settings)?, queue: BytesMut::new() };
        Ok(Joining { driver, has_joined: false })
    }
}

/// A client that waits for the others.
#[derive(Debug)]
pub struct Joining {
    driver: Driver,
    has_joined: bool,
}

impl Joining {
    /// Sends and receives what it can; never blocks. Returns the tables once, when the job has started;
    /// [`into_connection`](Self::into_connection) follows.
    ///
    /// # Errors
    /// The job does not form.
    pub fn advance(&mut self) -> Result<Option<Tables>, JoinError> {
        self.driver.exchange()?;
        let mut done = None;
        while let Some(event) = self.driver.client.poll_event() {
            match event {
                Event::Joined { .. } => self.has_joined = true,
                Event::Done(tables) => done = Some(*tables),
            }
        }
        Ok(done)
    }

    /// Whether all clients have joined.
    #[must_use]
    pub fn has_joined(&self) -> bool {
        self.has_joined
    }

    /// The events to poll the descriptor for before the next call of [`advance`](Self::advance).
    #[must_use]
    pub fn interest(&self) -> PollFlags {
        self.driver.interest()
    }

    /// The connection of the running job.
    #[must_use]
    pub fn into_connection(self) -> Connection {
        Connection { driver: self.driver }
    }

    /// Blocks until the client has joined.
    ///
    /// # Errors
    /// The site has not joined before the deadline, or at all.
    pub fn join(mut self, deadline: Option<Instant>) -> Result<Joined, JoinError> {
        loop {
            if let Some(tables) = self.advance()? {
                return Ok(Joined { tables, connection: self.into_connection() });
            }
            if !self.driver.wait(deadline)? {
                return Err(JoinError::Deadline { has_joined: self.has_joined });
            }
        }
    }
}

impl AsFd for Joining {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.driver.stream.as_fd()
    }
}

/// The connection of a running job. Dropping it without [`finish`](Self::finish) reports this site as failed.
#[derive(Debug)]
pub struct Connection {
    driver: Driver,
}

impl Connection {
    /// Checks that the server lives; never blocks. The descriptor becomes readable when there is something to
    /// check.
    ///
    /// # Errors
    /// The server has died, or sends a command that a running job does not have.
    pub fn watch(&mut self) -> Result<(), JoinError> {
        self.driver.exchange()
    }

    /// Reports success to the server and closes the connection. Blocks until the report is sent.
    ///
    /// # Errors
    /// The report cannot be sent before the deadline, or at all.
    pub fn finish(mut self, deadline: Option<Instant>) -> Result<(), JoinError> {
        self.driver.client.finish()?;
        loop {
            self.driver.send()?;
            if self.driver.queue.is_empty() {
                return Ok(());
            }
            if !self.driver.wait(deadline)? {
                return Err(JoinError::Io(ErrorKind::TimedOut.into()));
            }
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.driver.stream.as_fd()
    }
}

/// The driver of the client's state machine: its socket, and the octets to send.
#[derive(Debug)]
struct Driver {
    stream: TcpStream,
    client: Client,
    /// Octets that the system has not taken yet.
    queue: BytesMut,
}

impl Driver {
    /// Sends, and receives until the socket is empty.
    fn exchange(&mut self) -> Result<(), JoinError> {
        self.send()?;
        let mut octets = vec![0; PIECE];
        loop {
            match self.stream.read(&mut octets) {
                Ok(0) => return Ok(self.client.handle_eof()?),
                Ok(n) => self.client.handle_octets(&octets[..n])?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // A peer that closes with unread octets resets the connection. That is an end like any other.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return Ok(self.client.handle_eof()?);
                }
                Err(error) => return Err(error.into()),
            }
            self.send()?;
        }
    }

    fn send(&mut self) -> Result<(), JoinError> {
        while let Some(octets) = self.client.poll_output() {
            self.queue.extend_from_slice(&octets);
        }
        while !self.queue.is_empty() {
            match self.stream.write(&self.queue) {
                Ok(n) => self.queue.advance(n),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset].contains(&error.kind()) => {
                    self.client.handle_eof()?;
                    return Err(error.into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn interest(&self) -> PollFlags {
        PollFlags::IN | if self.queue.is_empty() { PollFlags::empty() } else { PollFlags::OUT }
    }

    /// Sleeps until the socket is ready; false if the deadline passes first.
    fn wait(&self, deadline: Option<Instant>) -> io::Result<bool> {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(false);
        }
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut [PollFd::new(&self.stream, self.interest())], left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}
