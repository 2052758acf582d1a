//! The ranks of a job as their monitor knows them. A rank sends a Hello on a socket that its program
//! inherits. When all ranks have sent one, the monitor sends them each other's memory. It watches them until
//! they end.
//!
//! A rank that has finished may send a Hello again. Such ranks form the next session when all have done so.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mpjdev_bootstrap::control::{self, Packet, Refusal};
use mpjdev_transport::shm::{Death, StatusPage, has_finished, reported_failed_peer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::sockopt::set_socket_passcred;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tracing::{debug, info};

use super::exit_status::ExitStatus;

/// A process that is a rank.
#[derive(Debug)]
struct Member {
    pid: Pid,
    /// Readable when the process has ended.
    process: OwnedFd,
    segment: Arc<OwnedFd>,
    /// The socket for the answer, while the process waits for the other ranks.
    answer: Option<OwnedFd>,
    /// The process has sent a Cancel, which is not answered yet.
    has_cancelled: bool,
}

impl Member {
    fn has_finished(&self, ranks: usize, rank: usize) -> bool {
        has_finished(self.segment.as_fd(), ranks, rank as u32)
    }

    /// Whether the process waits for the other ranks.
    fn is_waiting(&self) -> bool {
        self.answer.is_some() && !self.has_cancelled
    }

    /// Answers a Cancel of the process, if there is one.
    fn release(&mut self) {
        let Some(answer) = self.answer.as_ref().filter(|_| self.has_cancelled) else { return };
        match control::send(answer.as_fd(), Packet::Cancelled, &[]) {
            Err(error) if control::is_temporary(&error) => {}
            _ => (self.answer, self.has_cancelled) = (None, false),
        }
    }
}

/// The processes of the ranks from one `Comm.init` to the next, with the memory that they share.
#[derive(Debug)]
struct Session {
    status_page: StatusPage,
    /// Time of the first Hello; `None` once the late ranks are reported.
    since: Option<Instant>,
    /// Running processes that have not sent a Hello for the next session.
    members: Vec<Option<Member>>,
    /// The segments of ranks that share memory.
    files: Vec<Arc<OwnedFd>>,
    /// The world description, if ranks have to connect.
    description: Option<OwnedFd>,
    /// The listening socket of each rank, until all ranks have joined.
    listeners: Vec<OwnedFd>,
    /// Ranks that have not been sent all packets.
    pending: Vec<PendingMember>,
}

/// A rank that has not been sent all packets.
#[derive(Debug)]
struct PendingMember {
    answer: OwnedFd,
    /// The socket that goes with the world description.
    listener: Option<OwnedFd>,
    /// Number of packets about shared memory that are sent.
    packets: usize,
}

/// The world description for ranks that connect, with their sockets.
#[derive(Debug)]
pub struct WorldGrant {
    /// The description.
    pub description: OwnedFd,
    /// The listening socket of each rank.
    pub listeners: Vec<OwnedFd>,
    /// Whether the ranks also share memory.
    pub shares_memory: bool,
}

impl Session {
    fn new(ranks: usize) -> io::Result<Session> {
        let members = (0..ranks).map(|_| None).collect();
        Ok(Session {
            status_page: StatusPage::create(ranks)?,
            since: Some(Instant::now()),
            members,
            files: Vec::new(),
            description: None,
            listeners: Vec::new(),
            pending: Vec::new(),
        })
    }

    /// Prepares the packets to the ranks, when all have joined.
    fn begin(&mut self, shares_memory: bool) {
        if shares_memory {
            self.files = self.members.iter().flatten().map(|member| member.segment.clone()).collect();
        }
        let mut listeners = self.listeners.drain(..);
        let answers = self.members.iter_mut().flatten().filter_map(|member| member.answer.take());
        let pending = answers.map(|answer| PendingMember { answer, listener: listeners.next(), packets: 0 });
        self.pending = pending.collect();
    }

    /// Whether all ranks wait. A rank that has sent a Cancel does not.
    fn is_complete(&self) -> bool {
        self.members.iter().all(|member| member.as_ref().is_some_and(Member::is_waiting))
    }

    /// Sends the pending packets that the sockets take now.
    fn send_pending(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let segments: Vec<_> = self.files.iter().map(|file| file.as_fd()).collect();
        let mut packets = Vec::new();
        if !segments.is_empty() {
            packets = control::welcome(self.status_page.files(), &segments);
        }
        let description = self.description.as_ref();
        self.pending.retain_mut(|rank| match rank.send_all(description, &packets) {
            Ok(()) => false,
            // A rank that has ended needs no packets. `unhandled_ends` reports its end.
            Err(error) => control::is_temporary(&error),
        });
        if self.pending.is_empty() {
            self.files.clear();
            self.description = None;
        }
    }
}

impl PendingMember {
    /// Sends all packets to the rank.
    ///
    /// # Errors
    /// As of [`control::send`]. The next call continues with the packet that failed.
    fn send_all(
        &mut self,
        description: Option<&OwnedFd>,
        packets: &[(Packet, Vec<BorrowedFd<'_>>)],
    ) -> io::Result<()> {
        if let (Some(description), Some(listener)) = (description, &self.listener) {
            control::send(self.answer.as_fd(), Packet::World, &[description.as_fd(), listener.as_fd()])?;
            self.listener = None;
        }
        while let Some((packet, fds)) = packets.get(self.packets) {
            control::send(self.answer.as_fd(), *packet, fds)?;
            self.packets += 1;
        }
        Ok(())
    }
}

/// The extent of a launcher's ranks in their job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The whole job; the ranks share memory.
    Memory,
    /// The whole job; the ranks connect after each `Comm.init`.
    Connections,
    /// One site of a job, which forms once.
    Site,
}

/// All ranks of a job.
#[derive(Debug)]
pub struct MemberList {
    extent: Extent,
    /// Our ends of the sockets that the ranks' programs inherit.
    controls: Vec<Option<OwnedFd>>,
    running: Option<Session>,
    forming: Option<Session>,
    /// The first process of each rank that has sent a Hello. No other process may.
    pids: Vec<Option<Pid>>,
    /// Whether the program of each rank has ended.
    ended: Vec<bool>,
    /// The peer that each ended rank had reported as failed, by world rank.
    reported_peers: Vec<Option<u32>>,
    /// The reason why some rank cannot send a Hello any more.
    missing: Option<Refusal>,
    /// Whether ranks with connections also share memory.
    shares_memory: bool,
}

impl MemberList {
    /// A list of this number of ranks.
    pub fn new(ranks: u32, extent: Extent) -> MemberList {
        let ranks = ranks as usize;
        MemberList {
            extent,
            controls: (0..ranks).map(|_| None).collect(),
            running: None,
            forming: None,
            pids: vec![None; ranks],
            ended: vec![false; ranks],
            reported_peers: vec![None; ranks],
            missing: None,
            shares_memory: false,
        }
    }

    /// A new control socket: the end that a rank's program inherits. The caller drops it when the program has
    /// started.
    ///
    /// # Errors
    /// The system refuses.
    pub fn control_socket(&mut self, rank: u32) -> io::Result<OwnedFd> {
        let (ours, theirs) = control::socket_pair()?;
        set_socket_passcred(&ours, true)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        fcntl_setfd(&theirs, FdFlags::empty())?;
        self.controls[rank as usize] = Some(ours);
        Ok(theirs)
    }

    /// Descriptors to poll for reading.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let members = self.sessions().flat_map(|session| session.members.iter().flatten());
        self.controls.iter().flatten().map(AsFd::as_fd).chain(members.map(|member| member.process.as_fd()))
    }

    /// Whether packets to some ranks are pending. No event reports that their sockets have room.
    pub fn is_busy(&self) -> bool {
        let has_cancelled =
            |session: &Session| session.members.iter().flatten().any(|member| member.has_cancelled);
        self.running.as_ref().is_some_and(|session| !session.pending.is_empty())
            || self.forming.as_ref().is_some_and(has_cancelled)
    }

    fn sessions(&self) -> impl Iterator<Item = &Session> {
        [&self.forming, &self.running].into_iter().flatten()
    }

    /// The process of a rank, while it runs.
    fn member(&self, rank: usize) -> Option<&Member> {
        self.sessions().find_map(|session| session.members[rank].as_ref())
    }

    /// The id and the pidfd of a rank's process, while it runs.
    pub fn process(&self, rank: u32) -> Option<(Pid, BorrowedFd<'_>)> {
        self.member(rank as usize).map(|member| (member.pid, member.process.as_fd()))
    }

    /// Receives the packets of the processes.
    pub fn listen(&mut self) {
        for rank in 0..self.controls.len() {
            while let Some(line) = &self.controls[rank] {
                match control::receive(line.as_fd()) {
                    Ok(Some(received)) => self.handle(rank, received),
                    Err(e) if e.raw_os_error() == Some(Errno::AGAIN.raw_os_error()) => break,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Ok(None) | Err(_) => self.controls[rank] = None,
                }
            }
        }
    }

    /// Sends the packets that are due.
    pub fn answer(&mut self) {
        self.start_session();
        self.running.iter_mut().for_each(Session::send_pending);
    }

    fn handle(&mut self, rank: usize, received: control::Received) {
        match (received.packet, received.pid) {
            (Some(Packet::Hello { rank: claimed }), Some(pid)) => {
                self.handle_hello(rank, claimed, pid, received)
            }
            (Some(Packet::Cancel { .. }), Some(pid)) => self.handle_cancel(rank, pid),
            _ => {}
        }
    }

    /// Handles the Cancel of a process. If its session has started, the process receives the world instead of
    /// `Cancelled`.
    fn handle_cancel(&mut self, rank: usize, pid: Pid) {
        let waiting = self.forming.as_mut().and_then(|session| session.members[rank].as_mut());
        if let Some(member) = waiting.filter(|member| member.pid == pid && member.answer.is_some()) {
            member.has_cancelled = true;
            debug!(target: "mpjdev::job", member = rank, "rank waits no longer");
        }
    }

    fn handle_hello(&mut self, rank: usize, claimed: u32, pid: Pid, mut received: control::Received) {
        // Without these descriptors the monitor cannot answer. The process sees its socket closed.
        let (Some(answer), Some(segment)) = (received.fds.pop(), received.fds.pop()) else { return };
        let taken = if claimed as usize == rank { self.check(rank, pid) } else { Err(Refusal::Taken) };
        match taken.and_then(|()| self.room_for(pid)) {
            Ok((process, session)) => {
                let (segment, answer) = (Arc::new(segment), Some(answer));
                session.members[rank] = Some(Member { pid, process, segment, answer, has_cancelled: false });
                self.pids[rank] = Some(pid);
                debug!(
                    target: "mpjdev::job", member = rank, pid = pid.as_raw_nonzero().get(),
                    "rank waits for the others"
                );
                self.running.iter_mut().for_each(|session| session.members[rank] = None);
            }
            Err(why) => refuse(&answer, why),
        }
    }

    /// Whether a process may become this rank.
    fn check(&self, rank: usize, pid: Pid) -> Result<(), Refusal> {
        let has_finished = |member: &Member| member.has_finished(self.ended.len(), rank);
        // A process that waited for this rank has cancelled and asks again.
        let is_free = |session: &Session| session.members[rank].as_ref().is_none_or(has_finished);
        if self.pids[rank].is_some_and(|known| known != pid) || !self.running.as_ref().is_none_or(is_free) {
            return Err(Refusal::Taken);
        }
        if self.extent == Extent::Site && self.running.is_some() {
            return Err(Refusal::Once);
        }
        self.missing.map_or(Ok(()), Err)
    }

    /// A pidfd of a new rank, and the session that it joins.
    fn room_for(&mut self, pid: Pid) -> Result<(OwnedFd, &mut Session), Refusal> {
        let process = pidfd_open(pid, PidfdFlags::empty()).map_err(|_| Refusal::NoRoom)?;
        let session = match &mut self.forming {
            Some(session) => session,
            none => none.insert(Session::new(self.ended.len()).map_err(|_| Refusal::NoRoom)?),
        };
        Ok((process, session))
    }

    /// Finds a rank that cannot send a Hello any more, since its program or process has ended.
    fn note_missing(&mut self) {
        let is_over = |rank: usize| self.ended[rank] || self.pids[rank].is_some();
        let has_ended = |rank: &usize| is_over(*rank) && self.member(*rank).is_none();
        let ended = (0..self.ended.len()).find(has_ended).map(|rank| Refusal::Ended(rank as u32));
        // The first reason is kept: later ends may follow from it.
        self.missing = self.missing.or(ended);
    }

    /// Starts the session when all ranks have joined. Refuses the waiting ranks if one cannot join.
    fn start_session(&mut self) {
        let Some(session) = &mut self.forming else { return };
        if let Some(why) = self.missing {
            let answers = session.members.iter().flatten().filter_map(|member| member.answer.as_ref());
            answers.for_each(|answer| refuse(answer, why));
            self.forming = None;
            return;
        }
        session.members.iter_mut().flatten().for_each(Member::release);
        let is_described = self.extent == Extent::Memory || session.description.is_some();
        if is_described && session.is_complete() {
            info!(target: "mpjdev::job", ranks = self.ended.len(), "all ranks have joined");
            session.begin(self.extent == Extent::Memory || self.shares_memory);
            self.running = self.forming.take();
        }
    }

    /// The processes of all ranks, when all have sent a Hello and need a world description.
    pub fn undescribed(&self) -> Option<Vec<Pid>> {
        let session = self.forming.as_ref().filter(|session| session.description.is_none())?;
        let is_ready = self.extent != Extent::Memory && self.missing.is_none() && session.is_complete();
        is_ready.then(|| session.members.iter().flatten().map(|member| member.pid).collect())
    }

    /// Takes the world description for the waiting ranks.
    pub fn grant_world(&mut self, grant: WorldGrant) {
        let WorldGrant { description, listeners, shares_memory } = grant;
        self.shares_memory = shares_memory;
        if let Some(session) = &mut self.forming {
            session.description = Some(description);
            session.listeners = listeners;
        }
    }

    /// Whether all ranks can still join.
    pub fn may_form(&self) -> bool {
        self.missing.is_none()
    }

    /// Refuses waiting ranks from now on. The caller reports why the job cannot form.
    pub fn give_up(&mut self) {
        self.missing = self.missing.or(Some(Refusal::NoJob));
    }

    /// The time at which late ranks are reported, `after` the first Hello.
    pub fn overdue_at(&self, after: Duration) -> Option<Instant> {
        self.forming.as_ref()?.since?.checked_add(after)
    }

    /// The late ranks, once for each session.
    pub fn overdue(&mut self) -> Option<Vec<u32>> {
        let session = self.forming.as_mut()?;
        session.since = None;
        let is_waiting = |member: &Option<Member>| member.as_ref().is_some_and(Member::is_waiting);
        let missing = (0..).zip(&session.members).filter(|(_, member)| !is_waiting(member));
        let missing: Vec<u32> = missing.map(|(rank, _)| rank).collect();
        (!missing.is_empty()).then_some(missing)
    }

    /// Ranks whose process has ended without a call of `handle_exit` or `handle_loss`.
    pub fn unhandled_ends(&self) -> Vec<u32> {
        let members: Vec<(u32, &Member)> = self
            .sessions()
            .flat_map(|session| (0..).zip(&session.members))
            .filter_map(|(rank, member)| Some((rank, member.as_ref()?)))
            .collect();
        let mut fds: Vec<_> =
            members.iter().map(|(_, member)| PollFd::new(&member.process, PollFlags::IN)).collect();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if fds.is_empty() || poll(&mut fds, Some(&now)).is_err() {
            return Vec::new();
        }
        let ended = members.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        ended.map(|((rank, _), _)| *rank).collect()
    }

    /// World rank of the peer that an ended rank had reported as failed.
    pub fn reported_peer(&self, rank: u32) -> Option<u32> {
        self.reported_peers[rank as usize]
    }

    /// A rank's program has ended.
    pub fn handle_program_end(&mut self, rank: u32) {
        self.ended[rank as usize] = true;
        self.note_missing();
    }

    /// A process has ended with this status. Returns its rank, and whether it had not finished.
    pub fn handle_exit(&mut self, pid: Pid, status: ExitStatus) -> Option<(u32, bool)> {
        let is = |rank: &u32| self.process(*rank).is_some_and(|(process, _)| process == pid);
        let rank = (0..self.ended.len() as u32).find(is)?;
        let death = match status {
            ExitStatus::Exited(status) => Death::Exited(status),
            ExitStatus::Killed(signal) => Death::Killed(signal),
        };
        Some((rank, self.note_end(rank as usize, death)))
    }

    /// A rank's process has ended with a status that only its parent knows. Returns whether it had not
    /// finished.
    pub fn handle_loss(&mut self, rank: u32) -> bool {
        self.note_end(rank as usize, Death::Unknown)
    }

    /// Records the end of a rank's process. If it had not finished, the status page reports its death, and
    /// the result is true.
    fn note_end(&mut self, rank: usize, death: Death) -> bool {
        let ranks = self.ended.len();
        let session = match (&mut self.forming, &mut self.running) {
            (Some(session), _) if session.members[rank].is_some() => session,
            (_, Some(session)) => session,
            _ => return false,
        };
        let ended = session.members[rank].take();
        let segment = ended.as_ref().map(|member| member.segment.as_fd());
        self.reported_peers[rank] =
            segment.and_then(|segment| reported_failed_peer(segment, ranks, rank as u32));
        let is_lost = ended.is_some_and(|member| !member.has_finished(ranks, rank));
        if is_lost {
            info!(target: "mpjdev::failure", member = rank, ?death, "rank has ended without finishing");
            session.status_page.record_death(rank as u32, death);
            self.missing = self.missing.or(Some(Refusal::Failed(rank as u32)));
        }
        // Peers reclaim their loans to the ended process, also those of a session before the last.
        self.sessions().for_each(|session| session.status_page.note_end(rank as u32));
        self.note_missing();
        is_lost
    }
}

/// Refuses a process, which may have ended.
fn refuse(answer: &OwnedFd, why: Refusal) {
    info!(target: "mpjdev::job", ?why, "process is refused as a rank");
    drop(control::send(answer.as_fd(), Packet::Refused(why), &[]));
}

#[cfg(test)]
mod tests;
