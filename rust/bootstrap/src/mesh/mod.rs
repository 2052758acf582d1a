//! The mesh: one TCP connection between every two hosts of a job that need one (IMPI 6).
//!
//! The host with the higher number connects and says its number. Hosts of ours prove to each other that they have the job's
//! key, over that connection and before anything else ([`handshake`]); a foreign host is known by its address alone. All
//! connections are made at the same time, in one loop that never blocks but in `poll`.
//!
//! Anybody may connect while the listener is open. Who is not a host that is waited for is closed and noted, and keeps
//! nobody else out: a connection has five seconds to say and to prove who it is, and so many may be under way
//! at once; when there are more the oldest of those goes who have the most.

mod error;
pub mod handshake;
mod incoming;
mod outgoing;
mod socket;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use mpjdev_transport::waiting::Patience;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

pub use self::error::{Absence, MeshError, Refusal, Refused, Warning};
use self::handshake::{NONCE_LEN, Nonce, Pair};
use self::incoming::Incoming;
use self::outgoing::Outgoing;
pub use self::socket::listen;

/// One host as the job knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where its connections come from, if that is known: asked of foreign hosts.
    pub source: Option<IpAddr>,
    /// Whether it speaks as we do, and proves that it has the job's key. Both ends must think the same of each other.
    pub is_ours: bool,
}

/// What is to be connected.
pub struct Mesh<'a> {
    /// One's own number: hosts are numbered through the whole job (IMPI 1).
    pub number: u32,
    /// All hosts, by their numbers.
    pub hosts: &'a [Host],
    /// What [`listen`] gave; it is closed when all are there.
    pub listener: OwnedFd,
    /// Where one's own connections come from: the address that was announced, since peers may look at it. Connections to
    /// addresses of the other family come from anywhere.
    pub bind: Option<IpAddr>,
    /// The key that all hosts of ours have. Without one the exchange is the same, with a key that everybody has.
    pub key: Option<&'a [u8]>,
    /// What tells this job from others, the same at all hosts of ours: it goes into their proofs.
    pub job: &'a [u8],
    /// Whether there is to be a connection to a host; not asked of oneself. Both ends must think the same.
    pub wanted: &'a dyn Fn(u32) -> bool,
    /// When all must be there.
    pub deadline: Instant,
    /// How long octets that were sent may stay unacknowledged, or a connection without any may be silent though the other end is
    /// asked for a sign of life, before it is dead; 0 leaves that to the system.
    pub silence_max: Duration,
}

/// The key is never shown.
impl fmt::Debug for Mesh<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mesh {{ number: {}, hosts: {}, .. }}", self.number, self.hosts.len())
    }
}

/// A mesh that was made.
#[derive(Debug)]
pub struct Connected {
    /// The connection to each host, by its number; none where none was wanted. They do not block, and the first octet to
    /// come is that of a packet.
    pub sockets: Vec<Option<OwnedFd>>,
    /// What is to be said to the user.
    pub warnings: Vec<Warning>,
}

/// What keeps strangers from keeping others out.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Connections that came and have not proved who they are, besides those that are waited for.
    strangers_max: usize,
    /// How long such a connection may take for it.
    stranger_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { strangers_max: 64, stranger_time: Duration::from_secs(5) }
    }
}

/// How often whoever waits is asked whether to go on.
const SLICE: Duration = Duration::from_millis(20);
/// Connections taken from the listener before the others are looked at again.
const ACCEPTS_MAX: usize = 64;

/// Connects a host to all others that are wanted, and returns when all are there. Blocks until then; `patience` is asked
/// about every 20 ms.
///
/// # Errors
/// A host is not there in time, is not who it should be, or cannot be reached; patience is over; the system refuses.
///
/// # Panics
/// There is no host of one's own number.
pub fn connect(mesh: Mesh<'_>, patience: &mut dyn Patience) -> Result<Connected, MeshError> {
    connect_within(mesh, Limits::default(), patience)
}

fn connect_within(
    mesh: Mesh<'_>,
    limits: Limits,
    patience: &mut dyn Patience,
) -> Result<Connected, MeshError> {
    let own = mesh.number as usize;
    assert!(own < mesh.hosts.len(), "host {own} of {}", mesh.hosts.len());
    let begun = Instant::now();
    let (plan, listener) = Plan::new(mesh);
    let lower = (0..plan.number).filter(|host| plan.wants(*host));
    let mut meeting = Meeting {
        outgoing: lower.map(|host| Outgoing::new(&plan, host, begun)).collect(),
        incoming: Incoming::new(&plan, listener, limits),
        sockets: plan.hosts.iter().map(|_| None).collect(),
        plan: &plan,
    };
    meeting.meet(begun, patience)?;
    Ok(meeting.into_connected())
}

/// The mesh without its listener, which is closed before the rest.
struct Plan<'a> {
    number: u32,
    hosts: &'a [Host],
    bind: Option<IpAddr>,
    key: &'a [u8],
    job: &'a [u8],
    wanted: &'a dyn Fn(u32) -> bool,
    deadline: Instant,
    silence_max: Duration,
}

impl<'a> Plan<'a> {
    fn new(mesh: Mesh<'a>) -> (Plan<'a>, OwnedFd) {
        let Mesh { number, hosts, listener, bind, key, job, wanted, deadline, silence_max } = mesh;
        let key = key.unwrap_or_default();
        (Plan { number, hosts, bind, key, job, wanted, deadline, silence_max }, listener)
    }

    fn host(&self, number: u32) -> &'a Host {
        &self.hosts[number as usize]
    }

    fn wants(&self, number: u32) -> bool {
        (self.wanted)(number)
    }

    /// This host and another of ours.
    fn pair(&self, other: u32) -> Pair<'a> {
        let (connector, acceptor) = (self.number.max(other), self.number.min(other));
        Pair { connector, acceptor, key: self.key, job: self.job }
    }
}

/// A connection to a host is complete.
struct Arrival {
    host: u32,
    socket: OwnedFd,
}

struct Meeting<'p, 'a> {
    plan: &'p Plan<'a>,
    sockets: Vec<Option<OwnedFd>>,
    incoming: Incoming<'p, 'a>,
    outgoing: Vec<Outgoing<'p, 'a>>,
}

impl Meeting<'_, '_> {
    fn meet(&mut self, begun: Instant, patience: &mut dyn Patience) -> Result<(), MeshError> {
        let mut ask_at = begun;
        loop {
            let now = Instant::now();
            self.go_on(now)?;
            if self.outgoing.is_empty() && !self.incoming.is_open() {
                return Ok(());
            }
            if now >= self.plan.deadline {
                return Err(self.absence(self.plan.deadline - begun));
            }
            if now >= ask_at {
                if !patience.goes_on() {
                    return Err(MeshError::Interrupted);
                }
                ask_at = now + SLICE;
            }
            self.sleep(now, ask_at)?;
        }
    }

    /// Does what can be done now.
    fn go_on(&mut self, now: Instant) -> Result<(), MeshError> {
        self.incoming.go_on(now, &mut self.sockets)?;
        for outgoing in &mut self.outgoing {
            if let Some(Arrival { host, socket }) = outgoing.go_on(now)? {
                self.sockets[host as usize] = Some(socket);
            }
        }
        self.outgoing.retain(|outgoing| self.sockets[outgoing.host() as usize].is_none());
        Ok(())
    }

    /// Sleeps until something happens, or it is time for something.
    fn sleep(&mut self, now: Instant, ask_at: Instant) -> Result<(), MeshError> {
        let retry = self.outgoing.iter().filter_map(Outgoing::retry_at).min();
        let until = retry.map_or(ask_at, |retry| retry.min(ask_at)).min(self.plan.deadline);
        let most = Timespec::try_from(until.saturating_duration_since(now)).unwrap_or_default();
        let sockets = self.incoming.sockets().chain(self.outgoing.iter().filter_map(Outgoing::socket));
        let mut fds: Vec<_> =
            sockets.map(|(socket, events)| PollFd::from_borrowed_fd(socket, events)).collect();
        match poll(&mut fds, Some(&most)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(MeshError::system("wait", errno)),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut ready = ready.into_iter();
        self.incoming.note_ready(&mut ready);
        for outgoing in self.outgoing.iter_mut().filter(|outgoing| outgoing.socket().is_some()) {
            outgoing.note_ready(ready.next().unwrap_or(false));
        }
        Ok(())
    }

    /// Why it is not complete.
    fn absence(&self, after: Duration) -> MeshError {
        let lower = self.outgoing.iter().map(|outgoing| (outgoing.host(), outgoing.absence()));
        let mut absent = lower.chain(self.incoming.absent(&self.sockets));
        let (host, why) = absent.next().expect("a host is not there");
        let others = absent.map(|(host, _)| host).collect();
        MeshError::Absent { host, address: self.plan.host(host).address, why, after, others }
    }

    fn into_connected(self) -> Connected {
        let hosts = (0..).zip(self.plan.hosts).zip(&self.sockets);
        let foreign = hosts.filter(|((_, host), socket)| !host.is_ours && socket.is_some());
        let mut warnings: Vec<Warning> = foreign
            .filter_map(|((number, _), socket)| self.plan.warning_of(number, socket.as_ref()?))
            .collect();
        warnings.extend(self.incoming.into_warnings());
        self.sockets.iter().flatten().for_each(|socket| socket::unpace_within_machine(socket.as_fd()));
        Connected { sockets: self.sockets, warnings }
    }
}

impl Plan<'_> {
    /// What is to be said of a foreign host that is connected.
    fn warning_of(&self, number: u32, socket: &OwnedFd) -> Option<Warning> {
        let host = self.host(number);
        if number < self.number {
            return Some(Warning::ByAddress { host: number, address: host.address.ip() });
        }
        if let Some(address) = host.source {
            return Some(Warning::ByAddress { host: number, address });
        }
        let from = rustix::net::getpeername(socket.as_fd()).ok().flatten()?;
        let from = SocketAddr::try_from(from).ok()?.ip().to_canonical();
        Some(Warning::Unchecked { host: number, from })
    }
}

/// Random octets of the system's.
fn nonce() -> Result<Nonce, MeshError> {
    let mut nonce = [0; NONCE_LEN];
    loop {
        match getrandom(&mut nonce, GetRandomFlags::empty()) {
            // So few come at once, or not at all.
            Ok(_) => return Ok(nonce),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(MeshError::system("get random octets", errno)),
        }
    }
}

/// What a poll entry waits for.
type Watched<'s> = (BorrowedFd<'s>, PollFlags);
