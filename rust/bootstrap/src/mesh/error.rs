//! Why a mesh was not made, and what is to be said of one that was.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rustix::io::Errno;
use thiserror::Error;

use super::handshake::Fault;

/// Hosts that an error names by their numbers; the rest are counted.
const NAMED_MAX: usize = 8;

/// Why a mesh was not made. All its connections are closed.
#[derive(Debug, Error)]
pub enum MeshError {
    /// Not all hosts were connected in time.
    #[error("host {host} at {address} {why} within {:.1} s; {}{}", .after.as_secs_f64(), .why.advice(), Others(.others))]
    Absent {
        /// The first that was not.
        host: u32,
        /// Where it listens.
        address: SocketAddr,
        /// How far it came.
        why: Absence,
        /// How long it had.
        after: Duration,
        /// The others that were not.
        others: Vec<u32>,
    },
    /// What listens at a host's address is not that host.
    #[error(
        "host {host} at {address} is none of this job's: {fault}; give all sites of the job the same key, and look what listens there"
    )]
    Stranger {
        /// The host.
        host: u32,
        /// Where it should listen.
        address: SocketAddr,
        /// What was wrong.
        fault: Fault,
    },
    /// The address that one's own connections are to come from cannot be used.
    #[error("cannot connect to host {host} at {address} from {bind}: {error}; {}", bind_advice(error))]
    Bind {
        /// The host.
        host: u32,
        /// Where it listens.
        address: SocketAddr,
        /// One's own address.
        bind: IpAddr,
        /// What the system says.
        error: io::Error,
    },
    /// A host's address cannot be connected to, now or later.
    #[error("cannot connect to host {host} at {address}: {error}; {}", connect_advice(error))]
    Connect {
        /// The host.
        host: u32,
        /// Where it should listen.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// Whoever waits does not want to any more.
    #[error("interrupted while connecting to the other hosts")]
    Interrupted,
    /// The system refuses.
    #[error("cannot {what} while connecting to the other hosts: {error}")]
    System {
        /// What was to be done.
        what: &'static str,
        /// What it says.
        error: io::Error,
    },
}

impl MeshError {
    pub(super) fn system(what: &'static str, errno: Errno) -> MeshError {
        MeshError::System { what, error: errno.into() }
    }

    /// The host without which it was not made, where it is one.
    #[must_use]
    pub fn host(&self) -> Option<u32> {
        match self {
            MeshError::Absent { host, .. }
            | MeshError::Stranger { host, .. }
            | MeshError::Connect { host, .. } => Some(*host),
            MeshError::Bind { .. } | MeshError::Interrupted | MeshError::System { .. } => None,
        }
    }
}

const NOT_HERE: &str = "this must be an address of this machine";
const NO_WAY: &str = "the address that it announces must be one that this machine has a way to";
const NO_PORT: &str = "all ports for connections to there are in use, or were in the last minute; \
    the sysctl net.ipv4.ip_local_port_range sets which there are";

fn bind_advice(error: &io::Error) -> &'static str {
    if Errno::from_io_error(error) == Some(Errno::ADDRINUSE) { NO_PORT } else { NOT_HERE }
}

/// The system says that the address is not available when no port is left to connect from.
fn connect_advice(error: &io::Error) -> &'static str {
    if Errno::from_io_error(error) == Some(Errno::ADDRNOTAVAIL) { NO_PORT } else { NO_WAY }
}

/// How far a host came that is not connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Absence {
    /// It should have connected, and nobody came in its name.
    #[error("did not connect")]
    Away,
    /// Who came in its name last was refused.
    #[error("did not connect ({0})")]
    Refused(Refused),
    /// It could not be connected to, as the system said last.
    #[error("could not be reached ({})", io::Error::from(*.0))]
    Unreachable(Errno),
    /// No connection came about, and nothing was said of it.
    #[error("could not be reached")]
    Silent,
    /// It took the connection and did not answer.
    #[error("took the connection but did not answer")]
    Mute,
    /// It closed each connection.
    #[error("closed each connection before it had answered")]
    Closing,
}

impl Absence {
    fn advice(&self) -> &'static str {
        match self {
            Absence::Away | Absence::Unreachable(_) | Absence::Silent => {
                "its site may not have started, or a firewall is between"
            }
            Absence::Refused(_) => {
                "its number, its key and the address that it comes from must be those of the job"
            }
            Absence::Mute | Absence::Closing => "its site may hang, or another program listens there",
        }
    }
}

/// Why a connection that came was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// There is no such host.
    #[error("it said host {number} of {hosts}")]
    OutOfRange {
        /// The number that it said.
        number: u32,
        /// Hosts of the job.
        hosts: usize,
    },
    /// That host has no reason to connect: the one with the higher number does (IMPI 6).
    #[error("it said host {number}, which does not connect to host {own}")]
    NotHigher {
        /// The number that it said.
        number: u32,
        /// One's own.
        own: u32,
    },
    /// No connection is made to that host.
    #[error("it said host {number}, which needs no connection here")]
    NotWanted {
        /// The number that it said.
        number: u32,
    },
    /// That host is connected.
    #[error("it said host {number}, which is connected already")]
    Taken {
        /// The number that it said.
        number: u32,
    },
    /// That host's connections come from elsewhere.
    #[error("it said host {number}, whose connections come from {source_address}")]
    Source {
        /// The number that it said.
        number: u32,
        /// Where they come from.
        source_address: IpAddr,
    },
    /// It did not prove that it is that host.
    #[error("it said host {number}, and {fault}")]
    Fault {
        /// The number that it said.
        number: u32,
        /// What was wrong.
        fault: Fault,
    },
    /// It took too long to say who it is, or to prove it.
    #[error("it took too long to say who it is")]
    Slow {
        /// The number that it said, if it did.
        number: Option<u32>,
    },
    /// It closed the connection before that.
    #[error("it closed the connection before it had said who it is")]
    Closed {
        /// The number that it said, if it did.
        number: Option<u32>,
    },
    /// Too many had not said who they are, and it was one that had to go.
    #[error("it was one of too many that had not said who they are")]
    Crowded {
        /// The number that it said, if it did.
        number: Option<u32>,
    },
    /// The system says so.
    #[error("{}", io::Error::from(*.errno))]
    System {
        /// The number that it said, if it did.
        number: Option<u32>,
        /// What it says.
        errno: Errno,
    },
}

impl Refusal {
    /// The host that it said it is.
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
            | Refusal::Crowded { number }
            | Refusal::System { number, .. } => number,
        }
    }
}

/// Connections from an address that were not taken for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a connection from {from} was refused: {why}{}", Times(*.times))]
pub struct Refused {
    /// Where they came from.
    pub from: IpAddr,
    /// Why they were not taken.
    pub why: Refusal,
    /// How many.
    pub times: u32,
}

/// What is to be said of a mesh that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Warning {
    /// A foreign host proves nothing.
    #[error("host {host} is known by its address {address} alone, since it is foreign")]
    ByAddress {
        /// The host.
        host: u32,
        /// Its address.
        address: IpAddr,
    },
    /// A foreign host connected, and nobody knew from where it would.
    #[error(
        "host {host} came from {from} and is believed to be that host: it is foreign, and no address was known"
    )]
    Unchecked {
        /// The host.
        host: u32,
        /// Where it came from.
        from: IpAddr,
    },
    /// Others came who were not taken.
    #[error("{0}")]
    Refused(Refused),
    /// And more than are told one by one.
    #[error("{0} more connections were refused")]
    More(u32),
}

/// Who was refused, of which only so much is kept.
#[derive(Debug, Default)]
pub(super) struct Record {
    kept: Vec<Refused>,
    more: u32,
}

impl Record {
    /// Reasons that are kept; further ones are counted.
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

/// The others, as the end of a sentence.
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
