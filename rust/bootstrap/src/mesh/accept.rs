//! Incoming connections, from hosts with higher numbers and from unauthenticated clients.

use std::cmp::Reverse;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tracing::{debug, info};

use super::error::{Absence, MeshError, Record, Refusal, Refused, Warning};
use super::handshake::Handshake;
use super::socket::{HandshakeError, HandshakeStream, accept, prepare};
use super::{ACCEPTS_MAX, Limits, Plan, PollEntry, nonce};

/// The listener and its unfinished connections.
pub(super) struct Incoming<'p, 'a> {
    plan: &'p Plan<'a>,
    limits: Limits,
    /// `None` when all hosts are connected.
    listener: Option<OwnedFd>,
    is_ready: bool,
    /// Oldest first.
    pending: Vec<PendingConnection<'a>>,
    record: Record,
    /// The last refused connection that claimed to be each host.
    claims: Vec<Option<Refused>>,
}

/// A connection that has not sent, or not proved, its number.
struct PendingConnection<'a> {
    stream: HandshakeStream<'a>,
    from: IpAddr,
    until: Instant,
    /// The host that it claims to be, if the mesh waits for that host.
    host: Option<u32>,
    is_ready: bool,
}

impl<'p, 'a> Incoming<'p, 'a> {
    pub(super) fn new(plan: &'p Plan<'a>, listener: OwnedFd, limits: Limits) -> Self {
        Incoming {
            plan,
            limits,
            listener: Some(listener),
            is_ready: true,
            pending: Vec::new(),
            record: Record::default(),
            claims: plan.hosts.iter().map(|_| None).collect(),
        }
    }

    /// Whether a host is not connected yet.
    pub(super) fn is_open(&self) -> bool {
        self.listener.is_some()
    }

    /// The poll entries: the listener, while it is open, then each unfinished connection.
    pub(super) fn sockets(&self) -> impl Iterator<Item = PollEntry<'_>> {
        let listener = self.listener.iter().map(|listener| (listener.as_fd(), PollFlags::IN));
        listener.chain(self.pending.iter().map(|s| (s.stream.socket.as_fd(), s.stream.events())))
    }

    /// Takes the results of the [`sockets`](Self::sockets), one each.
    pub(super) fn note_ready(&mut self, ready: &mut dyn Iterator<Item = bool>) {
        self.is_ready = self.is_open() && ready.next().unwrap_or(false);
        for connection in &mut self.pending {
            connection.is_ready = ready.next().unwrap_or(false);
        }
    }

    /// The missing hosts, each with the reason.
    pub(super) fn absent(&self, sockets: &[Option<OwnedFd>]) -> impl Iterator<Item = (u32, Absence)> {
        self.expected(sockets).map(|host| {
            let claim = self.claims[host as usize];
            (host, claim.map_or(Absence::NotConnected, Absence::Refused))
        })
    }

    pub(super) fn into_warnings(self) -> impl Iterator<Item = Warning> {
        self.record.warnings()
    }

    fn expected(&self, sockets: &[Option<OwnedFd>]) -> impl Iterator<Item = u32> {
        let higher = (0u32..).zip(sockets).skip(self.plan.number as usize + 1);
        let missing = higher.filter(|(_, socket)| socket.is_none()).map(|(host, _)| host);
        missing.filter(|host| self.plan.wants(*host))
    }

    /// Makes all progress that is possible now. Complete connections move to `sockets`.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn advance(&mut self, now: Instant, sockets: &mut [Option<OwnedFd>]) -> Result<(), MeshError> {
        let mut i = 0;
        while i < self.pending.len() {
            let connection = &mut self.pending[i];
            let progress =
                if connection.is_ready { connection.advance(self.plan, sockets)? } else { Progress::Partial };
            match progress {
                Progress::Partial if connection.until <= now => {
                    let number = connection.host;
                    self.refuse(i, Refusal::Slow { number });
                }
                Progress::Partial => i += 1,
                Progress::Refused(why) => self.refuse(i, why),
                Progress::Complete(host) => {
                    sockets[host as usize] = Some(self.pending.remove(i).stream.socket);
                }
            }
        }
        if self.is_ready {
            self.accept(now, sockets)?;
        }
        if self.expected(sockets).next().is_none() {
            self.listener = None;
            self.pending.clear();
        }
        Ok(())
    }

    /// Accepts the waiting connections.
    fn accept(&mut self, now: Instant, sockets: &mut [Option<OwnedFd>]) -> Result<(), MeshError> {
        let expected = self.expected(sockets).count();
        for _ in 0..ACCEPTS_MAX {
            let Some(listener) = &self.listener else { return Ok(()) };
            match accept(listener.as_fd()) {
                Ok((socket, from)) => {
                    if self.pending.len() >= self.limits.pending_max + expected {
                        self.make_room();
                    }
                    self.take(socket, from.ip().to_canonical(), now, sockets)?;
                }
                Err(Errno::AGAIN) => {
                    self.is_ready = false;
                    return Ok(());
                }
                // The system reports a lack of descriptors even when no connection waits.
                Err(errno) if is_shortage(errno) && !is_readable(listener.as_fd()) => {
                    self.is_ready = false;
                    return Ok(());
                }
                Err(errno) if is_shortage(errno) && !self.pending.is_empty() => self.make_room(),
                Err(errno) if is_temporary(errno) => {}
                Err(errno) => return Err(MeshError::system("accept a connection", errno)),
            }
        }
        Ok(())
    }

    /// Takes one accepted connection.
    fn take(
        &mut self,
        socket: OwnedFd,
        from: IpAddr,
        now: Instant,
        sockets: &mut [Option<OwnedFd>],
    ) -> Result<(), MeshError> {
        debug!(target: "mpjdev::mesh", own = self.plan.number, %from, "connection is accepted");
        let prepared = prepare(socket.as_fd(), self.plan.peer_timeout);
        let stream = HandshakeStream { socket, handshake: Handshake::accept() };
        let until = now + self.limits.pending_time;
        self.pending.push(PendingConnection { stream, from, until, host: None, is_ready: true });
        let last = self.pending.len() - 1;
        if let Err(errno) = prepared {
            self.refuse(last, Refusal::System { number: None, errno });
            return Ok(());
        }
        // A host sends its number at once, so it has probably arrived.
        match self.pending[last].advance(self.plan, sockets)? {
            Progress::Partial => {}
            Progress::Refused(why) => self.refuse(last, why),
            Progress::Complete(host) => {
                sockets[host as usize] = Some(self.pending.remove(last).stream.socket);
            }
        }
        Ok(())
    }

    /// Closes the oldest connection of the address with the most connections, one without a number before one
    /// with a number. A flood keeps out no other address.
    fn make_room(&mut self) {
        let rank = |i: usize| {
            let connection = &self.pending[i];
            let same = self.pending.iter().filter(|other| other.from == connection.from).count();
            (same, connection.host.is_none(), Reverse(i))
        };
        if let Some(victim) = (0..self.pending.len()).max_by_key(|i| rank(*i)) {
            let number = self.pending[victim].host;
            self.refuse(victim, Refusal::Evicted { number });
        }
    }

    /// Closes a connection and records the reason.
    fn refuse(&mut self, index: usize, why: Refusal) {
        let from = self.pending.remove(index).from;
        info!(target: "mpjdev::mesh", own = self.plan.number, %from, ?why, "connection is refused");
        self.record.add(from, why);
        let claimed = why.number().filter(|number| *number > self.plan.number);
        if let Some(claim) = claimed.and_then(|number| self.claims.get_mut(number as usize)) {
            *claim = Some(Refused { from, why, times: 1 });
        }
    }
}

/// The result of an attempt to make progress.
enum Progress {
    /// More octets are expected.
    Partial,
    /// The connection is that of this host.
    Complete(u32),
    /// The connection belongs to no host that the mesh waits for.
    Refused(Refusal),
}

impl<'a> PendingConnection<'a> {
    fn advance(&mut self, plan: &Plan<'a>, sockets: &[Option<OwnedFd>]) -> Result<Progress, MeshError> {
        self.is_ready = false;
        loop {
            if let Err(error) = self.stream.advance() {
                return Ok(Progress::Refused(self.refusal(error)));
            }
            if let Some(number) = self.stream.handshake.number() {
                if let Err(why) = admission(plan, number, self.from, sockets) {
                    return Ok(Progress::Refused(why));
                }
                self.admit(plan, number)?;
                continue;
            }
            return Ok(match self.host {
                Some(host) if self.stream.handshake.is_complete() => match &sockets[host as usize] {
                    // Another connection has proved this number first.
                    Some(_) => Progress::Refused(Refusal::Taken { number: host }),
                    None => Progress::Complete(host),
                },
                _ => Progress::Partial,
            });
        }
    }

    fn admit(&mut self, plan: &Plan<'a>, number: u32) -> Result<(), MeshError> {
        self.host = Some(number);
        if plan.host(number).is_ours {
            self.stream.handshake.admit_ours(plan.pair(number), nonce()?);
        } else {
            self.stream.handshake.admit_foreign();
        }
        Ok(())
    }

    fn refusal(&self, error: HandshakeError) -> Refusal {
        let number = self.host;
        match (error, number) {
            (HandshakeError::Fault(fault), Some(number)) => Refusal::Fault { number, fault },
            (HandshakeError::System(errno), _) => Refusal::System { number, errno },
            // A fault occurs only after a number.
            (HandshakeError::Closed | HandshakeError::Fault(_), _) => Refusal::Closed { number },
        }
    }
}

/// Checks that the mesh waits for a host of this number, and that it may connect from `from` (IMPI 6).
fn admission(plan: &Plan<'_>, number: u32, from: IpAddr, sockets: &[Option<OwnedFd>]) -> Result<(), Refusal> {
    let Some(host) = plan.hosts.get(number as usize) else {
        return Err(Refusal::OutOfRange { number, hosts: plan.hosts.len() });
    };
    if number <= plan.number {
        return Err(Refusal::NotHigher { number, own: plan.number });
    }
    if !plan.wants(number) {
        return Err(Refusal::NotWanted { number });
    }
    match host.source.map(|source| source.to_canonical()) {
        Some(source_address) if !host.is_ours && source_address != from => {
            return Err(Refusal::Source { number, source_address });
        }
        _ => {}
    }
    match sockets[number as usize] {
        Some(_) => Err(Refusal::Taken { number }),
        None => Ok(()),
    }
}

/// Whether an error is a lack of descriptors or memory.
fn is_shortage(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
}

/// Whether a connection waits to be accepted.
fn is_readable(listener: BorrowedFd<'_>) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::from_borrowed_fd(listener, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Whether an error of accept(2) is temporary, or concerns the accepted connection alone.
fn is_temporary(errno: Errno) -> bool {
    const TEMPORARY: [Errno; 10] = [
        Errno::INTR,
        Errno::CONNABORTED,
        Errno::NETDOWN,
        Errno::PROTO,
        Errno::NOPROTOOPT,
        Errno::HOSTDOWN,
        Errno::NONET,
        Errno::HOSTUNREACH,
        Errno::OPNOTSUPP,
        Errno::NETUNREACH,
    ];
    TEMPORARY.contains(&errno)
}
