//! A site's connection to the startup server, from joining the job to its end.
//!
//! [`join`] does it all in one call. Whoever has an own loop takes the parts: [`Link::connect`], [`Link::begin`], then
//! [`Joining::advance`] whenever its descriptor is ready.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use mpjdev_proto::impi::startup::{Client, ClientError, Event, Settings, SettingsError, Tables};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thiserror::Error;

/// Octets that are read at a time.
const PIECE: usize = 64 << 10;
/// How long a system may take to connect when there is no deadline.
const CONNECT_MAX: Duration = Duration::from_secs(60);

/// Why a site has not joined, or has lost the server.
#[derive(Debug, Error)]
pub enum JoinError {
    /// The server's address means nothing here.
    #[error("startup server {address}: {source}")]
    Address {
        /// The address as it was given.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// The connection cannot be made.
    #[error("cannot connect to the startup server at {address}: {source}")]
    Connect {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// Settings that no client may have.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Server or clients break the protocol, or the server has given up.
    #[error(transparent)]
    Protocol(#[from] ClientError),
    /// The connection cannot be used any more.
    #[error("connection to the startup server: {0}")]
    Io(#[from] io::Error),
    /// The time is over.
    #[error("the time is over: {}", if *.has_joined { "the job has not started" } else { "not all clients have joined" })]
    Deadline {
        /// All clients had joined.
        has_joined: bool,
    },
}

/// A site that has joined.
#[derive(Debug)]
pub struct Joined {
    /// The job.
    pub tables: Tables,
    /// To be held for as long as the job runs.
    pub connection: Connection,
}

/// Joins the job of the server at this address, `host:port`; blocks until all have joined and the tables are there.
///
/// # Errors
/// It has not come to that, until the deadline if there is one.
pub fn join(address: &str, settings: Settings, deadline: Option<Instant>) -> Result<Joined, JoinError> {
    Link::connect(address, deadline)?.begin(settings)?.join(deadline)
}

/// A connection on which nothing has been said. The server waits some seconds for the first words.
#[derive(Debug)]
pub struct Link {
    stream: TcpStream,
}

impl Link {
    /// Connects; blocks.
    ///
    /// # Errors
    /// It cannot, until the deadline if there is one.
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

    /// This machine's address on the way to the server: one that the other sites may be able to reach.
    ///
    /// # Errors
    /// The system does not know.
    pub fn local_address(&self) -> io::Result<IpAddr> {
        Ok(self.stream.local_addr()?.ip())
    }

    /// Begins to join. The ports that the settings name must be listening already.
    ///
    /// # Errors
    /// Settings that no client may have.
    pub fn begin(self, settings: Settings) -> Result<Joining, JoinError> {
        let wire = Wire { stream: self.stream, client: Client::new(settings)?, queue: VecDeque::new() };
        Ok(Joining { wire, has_joined: false })
    }
}

/// A client that waits for the others.
#[derive(Debug)]
pub struct Joining {
    wire: Wire,
    has_joined: bool,
}

impl Joining {
    /// Sends and takes in what there is; never blocks. Gives the tables once, when the job has started; then comes
    /// [`into_connection`](Self::into_connection).
    ///
    /// # Errors
    /// The job does not form.
    pub fn advance(&mut self) -> Result<Option<Tables>, JoinError> {
        self.wire.exchange()?;
        let mut done = None;
        while let Some(event) = self.wire.client.poll_event() {
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

    /// What its descriptor must be ready for before [`advance`](Self::advance) has something to do.
    #[must_use]
    pub fn interest(&self) -> PollFlags {
        self.wire.interest()
    }

    /// The connection of the job that runs.
    #[must_use]
    pub fn into_connection(self) -> Connection {
        Connection { wire: self.wire }
    }

    /// Blocks until it has joined.
    ///
    /// # Errors
    /// It has not come to that, until the deadline if there is one.
    pub fn join(mut self, deadline: Option<Instant>) -> Result<Joined, JoinError> {
        loop {
            if let Some(tables) = self.advance()? {
                return Ok(Joined { tables, connection: self.into_connection() });
            }
            if !self.wire.wait(deadline)? {
                return Err(JoinError::Deadline { has_joined: self.has_joined });
            }
        }
    }
}

impl AsFd for Joining {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.stream.as_fd()
    }
}

/// The connection of a job that runs. Dropping it without [`finish`](Self::finish) says that this site has failed.
#[derive(Debug)]
pub struct Connection {
    wire: Wire,
}

impl Connection {
    /// Looks whether the server is there; never blocks. Its descriptor is ready for reading when there is something to see.
    ///
    /// # Errors
    /// The server has died, or says what has no place in a running job.
    pub fn watch(&mut self) -> Result<(), JoinError> {
        self.wire.exchange()
    }

    /// Says that all has ended well here, and closes the connection; blocks until that is said.
    ///
    /// # Errors
    /// It cannot be said, until the deadline if there is one.
    pub fn finish(mut self, deadline: Option<Instant>) -> Result<(), JoinError> {
        self.wire.client.finish()?;
        loop {
            self.wire.send()?;
            if self.wire.queue.is_empty() {
                return Ok(());
            }
            if !self.wire.wait(deadline)? {
                return Err(JoinError::Io(ErrorKind::TimedOut.into()));
            }
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.stream.as_fd()
    }
}

/// The machine and its socket.
#[derive(Debug)]
struct Wire {
    stream: TcpStream,
    client: Client,
    /// What the system has not taken.
    queue: VecDeque<u8>,
}

impl Wire {
    /// Sends, and takes in until there is nothing more.
    fn exchange(&mut self) -> Result<(), JoinError> {
        self.send()?;
        let mut octets = vec![0; PIECE];
        loop {
            match self.stream.read(&mut octets) {
                Ok(0) => return Ok(self.client.handle_eof()?),
                Ok(n) => self.client.handle_octets(&octets[..n])?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // Whoever closes with octets unread resets the connection: the same to us.
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
            self.queue.extend(octets);
        }
        while !self.queue.is_empty() {
            match self.stream.write(self.queue.as_slices().0) {
                Ok(n) => drop(self.queue.drain(..n)),
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

    /// Sleeps until there is something to do; false when the deadline has come first.
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
