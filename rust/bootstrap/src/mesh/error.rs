//! Errors of a mesh that was not made, and warnings of one that was.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rustix::io::Errno;
use thiserror::Error;

use super::handshake::Fault;

/// The number of hosts that an error names; further ones are counted.
const NAMED_MAX: usize = 8;

/// The reason why a mesh was not made. All its connections are closed.
#[derive(Debug, Error)]
pub enum MeshError {
    /// Not all hosts were connected in time.
    #[error("host {host} at {address} {why} within {:.1} s (--connect-timeout sets this time); {}{}", .after.as_secs_f64(), .why.advice(), Others(.others))]
    Absent {
        /// The first host that was not connected.
        host: u32,
        /// The address that it listens at.
        address: SocketAddr,
        /// The state that its connection reached.
        why: Absence,
        /// The time that it had.
        after: Duration,
        /// The other hosts that were not connected.
        others: Vec<u32>,
    },
    /// The listener at a host's address is not that host.
    #[error(
        "host {host} at {address} does not belong to this job: {fault}; give all sites of the job the same \
         key, and check which program listens at that address"
    )]
    WrongHost {
        /// The host.
        host: u32,
        /// The address that it should listen at.
        address: SocketAddr,
        /// The fault.
        fault: Fault,
    },
    /// The address that this host's own connections come from cannot be used.
    #[error("cannot connect to host {host} at {address} from {bind}: {error}; {}", bind_advice(error))]
    Bind {
        /// The host.
        host: u32,
        /// The address that it listens at.
        address: SocketAddr,
        /// The own address.
        bind: IpAddr,
        /// The system's error.
        error: io::Error,
    },
    /// A connection to a host's address is impossible, now and later.
    #[error("cannot connect to host {host} at {address}: {error}; {}", connect_advice(error))]
    Connect {
        /// The host.
        host: u32,
        /// The address that it should listen at.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The waiting thread was interrupted.
    #[error("interrupted while connecting to the other hosts")]
    Interrupted,
    /// The system refuses.
    #[error("cannot {what} while connecting to the other hosts: {error}")]
    System {
        /// The failed action.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl MeshError {
    pub(super) fn system(what: &'static str, errno: Errno) -> MeshError {
        MeshError::System { what, error: errno.into() }
    }

    /// The host that could not be connected, if it is one.
    #[must_use]
    pub fn host(&self) -> Option<u32> {
        match self {
            MeshError::Absent { host, .. }
            | MeshError::WrongHost { host, .. }
            | MeshError::Connect { host, .. } => Some(*host),
            MeshError::Bind { .. } | MeshError::Interrupted | MeshError::System { .. } => None,
        }
    }
}

const NOT_LOCAL: &str = "this must be an address of this machine";
const UNREACHABLE: &str = "the address that it announces must be one that this machine can reach";
const NO_PORT: &str = "all local ports for connections to it are in use, or were within the last minute; \
    the sysctl net.ipv4.ip_local_port_range sets their range";

fn bind_advice(error: &io::Error) -> &'static str {
    if Errno::from_io_error(error) == Some(Errno::ADDRINUSE) { NO_PORT } else { NOT_LOCAL }
}

/// The system reports that the address is not available when no port is left to connect from.
fn connect_advice(error: &io::Error) -> &'static str {
    if Errno::from_io_error(error) == Some(Errno::ADDRNOTAVAIL) { NO_PORT } else { UNREACHABLE }
}

/// The state that a missing host's connection reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Absence {
    /// The host should have connected, and no connection with its number arrived.
    #[error("did not connect")]
    NotConnected,
    /// The last connection with its number was refused.
    #[error("did not connect ({0})")]
    Refused(Refused),
    /// It could not be connected to; the system's last error.
    #[error("could not be reached ({})", io::Error::from(*.0))]
    Unreachable(Errno),
    /// No connection was made, and the system reported nothing.
    #[error("could not be reached")]
    NotReached,
    /// It accepted the connection, and did not answer.
    #[error("accepted the connection and did not answer")]
    NoAnswer,
    /// It closed each connection.
    #[error("closed each connection before it had answered")]
    Closing,
}

impl Absence {
    fn advice(&self) -> &'static str {
        match self {
            Absence::NotConnected | Absence::Unreachable(_) | Absence::NotReached => {
                "its site may not have started, or a firewall is between"
            }
            Absence::Refused(_) => {
                "its number, its key and the address that it comes from must be those of the job"
            }
            Absence::NoAnswer | Absence::Closing => "its site may hang, or another program listens there",
        }
    }
}

/// The reason why an incoming connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// There is no such host.
    #[error("it claims to be host {number}, but the job has {hosts} hosts")]
    OutOfRange {
        /// The number that it sent.
        number: u32,
        /// Hosts of the job.
        hosts: usize,
    },
    /// That host does not connect here: the host with the higher number connects (IMPI 6).
    #[error("it claims to be host {number}, which does not connect to host {own}")]
    NotHigher {
        /// The number that it sent.
        number: u32,
        /// The own number.
        own: u32,
    },
    /// This host needs no connection to that host.
    #[error("it claims to be host {number}, which needs no connection to this host")]
    NotWanted {
        /// The number that it sent.
        number: u32,
    },
    /// That host is connected already.
    #[error("it claims to be host {number}, which is connected already")]
    Taken {
        /// The number that it sent.
        number: u32,
    },
    /// That host's connections come from another address.
    #[error("it claims to be host {number}, whose connections come from {source_address}")]
    Source {
        /// The number that it sent.
        number: u32,
        /// That address.
        source_address: IpAddr,
    },
    /// It has not proved that it is that host.
    #[error("it claims to be host {number}, but {fault}")]
    Fault {
        /// The number that it sent.
        number: u32,
        /// The fault.
        fault: Fault,
    },
    /// It took too long to send its number, or to prove it.
    #[error("it did not identify itself in time")]
    Slow {
        /// The number that it sent, if any.
        number: Option<u32>,
    },
    /// It closed the connection before that.
    #[error("it closed the connection before it identified itself")]
    Closed {
        /// The number that it sent, if any.
        number: Option<u32>,
    },
    /// Too many connections had not proved their number, and this one was closed to make room.
    #[error("too many unidentified connections")]
    Evicted {
        /// The number that it sent, if any.
        number: Option<u32>,
    },
    /// The system refuses.
    #[error("{}", io::Error::from(*.errno))]
    System {
        /// The number that it sent, if any.
        number: Option<u32>,
        /// The system's error.
        errno: Errno,
    },
}

impl Refusal {
    /// The number that the connection claimed.
    pub fn number(&self) -> Option<u32> {
        match *self {
            Refusal::OutOfRange { number, .. }
            | Refusal::NotHigher { number, .. }
            | Refusal::NotWanted { number }
            | Refusal::Taken { number }
            | Refusal::Source { number, .. }
            | Refusal::Fault { number, .. } => Some(number),
            Refusal::Slow { number }
            | Refusal::Closed { number }
            | Refusal::Evicted { number }
            | Refusal::System { number, .. } => number,
        }
    }
}

/// Connections from one address that were refused for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a connection from {from} was refused: {why}{}", Times(*.times))]
pub struct Refused {
    /// Their source address.
    pub from: IpAddr,
    /// The reason.
    pub why: Refusal,
    /// Number of connections.
    pub times: u32,
}

/// A warning about a mesh that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Warning {
    /// A foreign host proves nothing.
    #[error("host {host} is foreign, and is identified by its address {address} alone")]
    ByAddress {
        /// The host.
        host: u32,
        /// Its address.
        address: IpAddr,
    },
    /// A foreign host connected, and its source address was not known in advance.
    #[error(
        "host {host} has connected from {from} and is not checked: it is foreign, and its address was not \
         known"
    )]
    Unchecked {
        /// The host.
        host: u32,
        /// Its source address.
        from: IpAddr,
    },
    /// Other connections were refused.
    #[error("{0}")]
    Refused(Refused),
    /// The number of refusals that are not listed.
    #[error("{0} more connections were refused")]
    More(u32),
}

/// The refused connections; a limited number of them is kept.
#[derive(Debug, Default)]
pub(super) struct Record {
    kept: Vec<Refused>,
    more: u32,
}

impl Record {
    /// The number of reasons that are kept; further ones are counted.
    pub(super) const KEPT_MAX: usize = 16;

    pub(super) fn add(&mut self, from: IpAddr, why: Refusal) {
        if let Some(same) = self.kept.iter_mut().find(|kept| (kept.from, kept.why) == (from, why)) {
            same.times = same.times.saturating_add(1);
        } else if self.kept.len() < Self::KEPT_MAX {
            self.kept.push(Refused { from, why, times: 1 });
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    pub(super) fn warnings(self) -> impl Iterator<Item = Warning> {
        let more = (self.more > 0).then_some(Warning::More(self.more));
        self.kept.into_iter().map(Warning::Refused).chain(more)
    }
}

/// The other hosts, as the end of a sentence.
struct Others<'a>(&'a [u32]);

impl fmt::Display for Others<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = &self.0[..self.0.len().min(NAMED_MAX)];
        for (i, host) in named.iter().enumerate() {
            write!(f, "{}{host}", if i == 0 { " (also missing: host " } else { ", " })?;
        }
        match self.0.len() - named.len() {
            _ if named.is_empty() => Ok(()),
            0 => write!(f, ")"),
            more => write!(f, " and {more} more)"),
        }
    }
}

struct Times(u32);

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 1 { write!(f, " ({} times)", self.0) } else { Ok(()) }
    }
}
