//! The mesh: one TCP connection between every two hosts of a job that need one (IMPI 6).
//!
//! The host with the higher number connects and sends its number. Hosts of this project prove to each other
//! that they have the job's key, on that connection and before any packet ([`handshake`]). A foreign host is
//! identified by its address alone. All connections are made at the same time, in one loop that blocks only
//! in `poll`.
//!
//! Any client may connect while the listener is open. A connection that belongs to no expected host is closed
//! and recorded; it keeps out no other host. A connection has five seconds to send and to prove its number.
//! The number of such connections is limited. Beyond the limit, the oldest connection of the address with the
//! most of them is closed.

mod accept;
mod dial;
mod error;
pub mod handshake;
mod socket;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use mpjdev_transport::wait::WaitControl;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use tracing::info;

use self::accept::Incoming;
use self::dial::Outgoing;
pub use self::error::{Absence, MeshError, Refusal, Refused, Warning};
use self::handshake::{NONCE_LEN, Nonce, Pair};
pub use self::socket::listen;

/// One host of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// The address that it listens at.
    pub address: SocketAddr,
    /// The source address of its connections, if it is known: checked for foreign hosts.
    pub source: Option<IpAddr>,
    /// Whether it is a host of this project, which proves that it has the job's key. Both ends must agree on
    /// this.
    pub is_ours: bool,
}

/// The arguments of [`connect`].
pub struct Mesh<'a> {
    /// The own number. Hosts are numbered through the whole job (IMPI 1).
    pub number: u32,
    /// All hosts, by their numbers.
    pub hosts: &'a [Host],
    /// The socket of [`listen`]; it is closed when all hosts are connected.
    pub listener: OwnedFd,
    /// The source address of the own connections: the announced one, since peers may check it. Connections to
    /// addresses of the other family have any source.
    pub bind: Option<IpAddr>,
    /// The key of all hosts of this project. Without one the handshake is the same, with an empty key.
    pub key: Option<&'a [u8]>,
    /// The identity of this job, the same at all hosts of this project. It is part of their proofs.
    pub job: &'a [u8],
    /// Whether a connection to a host is wanted; not called for the own number. Both ends must agree on this.
    pub wanted: &'a dyn Fn(u32) -> bool,
    /// The time at which all connections must be complete.
    pub deadline: Instant,
    /// The time that sent octets may stay unacked, or an idle connection may leave keepalive probes
    /// unanswered, before it is dead. 0 leaves that to the system.
    pub peer_timeout: Duration,
}

/// The key is not printed.
impl fmt::Debug for Mesh<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mesh {{ number: {}, hosts: {}, .. }}", self.number, self.hosts.len())
    }
}

/// A mesh that was made.
#[derive(Debug)]
pub struct Connected {
    /// The connection to each host, by its number; `None` where none was wanted. They do not block, and the
    /// next octet on each is that of a packet.
    pub sockets: Vec<Option<OwnedFd>>,
    /// Warnings for the user.
    pub warnings: Vec<Warning>,
}

/// The limits on unauthenticated connections.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Connections that have not proved their number, beyond one for each missing host.
    pending_max: usize,
    /// The time that such a connection may take.
    pending_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { pending_max: 64, pending_time: Duration::from_secs(5) }
    }
}

/// The interval at which the wait control is asked.
const SLICE: Duration = Duration::from_millis(20);
/// Connections that are accepted before the others are polled again.
const ACCEPTS_MAX: usize = 64;

/// Connects a host to all wanted hosts. Blocks until all are connected; asks `wait_control` about every 20
/// ms.
///
/// # Errors
/// A host does not connect in time, is another host, or cannot be reached; the wait control ends the wait;
/// the system refuses.
///
/// # Panics
/// The own number names no host.
pub fn connect(mesh: Mesh<'_>, wait_control: &mut dyn WaitControl) -> Result<Connected, MeshError> {
    connect_within(mesh, Limits::default(), wait_control)
}

fn connect_within(
    mesh: Mesh<'_>,
    limits: Limits,
    wait_control: &mut dyn WaitControl,
) -> Result<Connected, MeshError> {
    let own = mesh.number as usize;
    assert!(own < mesh.hosts.len(), "host {own} of {}", mesh.hosts.len());
    let begun = Instant::now();
    let (plan, listener) = Plan::new(mesh);
    let lower = (0..plan.number).filter(|host| plan.wants(*host));
    let mut state = MeshState {
        outgoing: lower.map(|host| Outgoing::new(&plan, host, begun)).collect(),
        incoming: Incoming::new(&plan, listener, limits),
        sockets: plan.hosts.iter().map(|_| None).collect(),
        plan: &plan,
    };
    let hosts = plan.hosts.len();
    info!(target: "mpjdev::mesh", own, hosts, deadline = ?(plan.deadline - begun), "mesh begins");
    state.run(begun, wait_control)?;
    info!(target: "mpjdev::mesh", own, hosts, after = ?begun.elapsed(), "mesh is complete");
    Ok(state.into_connected())
}

/// The mesh without its listener, which is closed earlier.
struct Plan<'a> {
    number: u32,
    hosts: &'a [Host],
    bind: Option<IpAddr>,
    key: &'a [u8],
    job: &'a [u8],
    wanted: &'a dyn Fn(u32) -> bool,
    deadline: Instant,
    peer_timeout: Duration,
}

impl<'a> Plan<'a> {
    fn new(mesh: Mesh<'a>) -> (Plan<'a>, OwnedFd) {
        let Mesh { number, hosts, listener, bind, key, job, wanted, deadline, peer_timeout } = mesh;
        let key = key.unwrap_or_default();
        (Plan { number, hosts, bind, key, job, wanted, deadline, peer_timeout }, listener)
    }

    fn host(&self, number: u32) -> &'a Host {
        &self.hosts[number as usize]
    }

    fn wants(&self, number: u32) -> bool {
        (self.wanted)(number)
    }

    /// This host and another one of this project.
    fn pair(&self, other: u32) -> Pair<'a> {
        let (connector, acceptor) = (self.number.max(other), self.number.min(other));
        Pair { connector, acceptor, key: self.key, job: self.job }
    }
}

/// A complete connection to a host.
struct Arrival {
    host: u32,
    socket: OwnedFd,
}

struct MeshState<'p, 'a> {
    plan: &'p Plan<'a>,
    sockets: Vec<Option<OwnedFd>>,
    incoming: Incoming<'p, 'a>,
    outgoing: Vec<Outgoing<'p, 'a>>,
}

impl MeshState<'_, '_> {
    fn run(&mut self, begun: Instant, wait_control: &mut dyn WaitControl) -> Result<(), MeshError> {
        let mut ask_at = begun;
        loop {
            let now = Instant::now();
            self.advance(now)?;
            if self.outgoing.is_empty() && !self.incoming.is_open() {
                return Ok(());
            }
            if now >= self.plan.deadline {
                return Err(self.absence(self.plan.deadline - begun));
            }
            if now >= ask_at {
                if !wait_control.keep_waiting() {
                    return Err(MeshError::Interrupted);
                }
                ask_at = now + SLICE;
            }
            self.sleep(now, ask_at)?;
        }
    }

    /// Makes all progress that is possible now.
    fn advance(&mut self, now: Instant) -> Result<(), MeshError> {
        self.incoming.advance(now, &mut self.sockets)?;
        for outgoing in &mut self.outgoing {
            if let Some(Arrival { host, socket }) = outgoing.advance(now)? {
                self.sockets[host as usize] = Some(socket);
            }
        }
        self.outgoing.retain(|outgoing| self.sockets[outgoing.host() as usize].is_none());
        Ok(())
    }

    /// Sleeps until a socket is ready or the next time is due.
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

    /// The error of a mesh that is not complete.
    fn absence(&self, after: Duration) -> MeshError {
        let lower = self.outgoing.iter().map(|outgoing| (outgoing.host(), outgoing.absence()));
        let mut absent = lower.chain(self.incoming.absent(&self.sockets));
        let (host, why) = absent.next().expect("a missing host");
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
    /// The warning about a connected foreign host.
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

/// Random octets of the system.
fn nonce() -> Result<Nonce, MeshError> {
    let mut nonce = [0; NONCE_LEN];
    loop {
        match getrandom(&mut nonce, GetRandomFlags::empty()) {
            // The system delivers so few octets in full, or none.
            Ok(_) => return Ok(nonce),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(MeshError::system("get random octets", errno)),
        }
    }
}

/// A poll entry with its events.
type PollEntry<'s> = (BorrowedFd<'s>, PollFlags);
