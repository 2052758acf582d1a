//! Which processes are the ranks: they say hello on a socket that each rank's program inherits, get each other's memory when
//! all are there, and are watched until they end.
//!
//! A rank that has finished may say hello again. Those that have are gathered apart from the job that may still run, and are
//! the job when all ranks are there again.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mpjdev_device::control::{self, Packet, Refusal};
use mpjdev_device::transport::shm::{Board, Death, has_finished};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::sockopt::set_socket_passcred;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::ending::Ending;

/// A process that is a rank.
#[derive(Debug)]
struct Member {
    pid: Pid,
    /// Readable when the process has ended.
    process: OwnedFd,
    segment: Arc<OwnedFd>,
    /// Where it waits for the others; none when it does not any more.
    answer: Option<OwnedFd>,
}

impl Member {
    fn has_finished(&self, ranks: usize, rank: usize) -> bool {
        has_finished(self.segment.as_fd(), ranks, rank as u32)
    }
}

/// The ranks from one time that all said hello to the next.
#[derive(Debug)]
struct Round {
    board: Board,
    /// When the first said hello; none once it was said that others have not.
    since: Option<Instant>,
    /// Those that live and have not said hello again since.
    members: Vec<Option<Member>>,
    /// The segments, and the ranks that do not know all of them yet with the packets that each has got.
    files: Vec<Arc<OwnedFd>>,
    uninformed: Vec<(OwnedFd, usize)>,
}

impl Round {
    fn new(ranks: usize) -> io::Result<Round> {
        let members = (0..ranks).map(|_| None).collect();
        Ok(Round {
            board: Board::create(ranks)?,
            since: Some(Instant::now()),
            members,
            files: Vec::new(),
            uninformed: Vec::new(),
        })
    }

    /// All ranks are there, and are to get each other's memory.
    fn begin(&mut self) {
        self.files = self.members.iter().flatten().map(|member| member.segment.clone()).collect();
        let answers = self.members.iter_mut().flatten().filter_map(|member| member.answer.take());
        self.uninformed = answers.map(|answer| (answer, 0)).collect();
    }

    /// Tells the ranks as much as they take now.
    fn inform(&mut self) {
        if self.uninformed.is_empty() {
            return;
        }
        let segments: Vec<_> = self.files.iter().map(|file| file.as_fd()).collect();
        let packets = control::welcome(self.board.files(), &segments);
        self.uninformed.retain_mut(|(answer, next)| {
            while let Some((packet, fds)) = packets.get(*next) {
                match control::send(answer.as_fd(), *packet, fds) {
                    Ok(()) => *next += 1,
                    // Who has gone meanwhile reads nothing; its end is noticed by itself.
                    Err(error) => return control::is_passing(&error),
                }
            }
            false
        });
        if self.uninformed.is_empty() {
            self.files.clear();
        }
    }
}

/// All ranks of a job.
#[derive(Debug)]
pub struct Roster {
    /// Our ends of the sockets that the ranks' programs inherit.
    controls: Vec<Option<OwnedFd>>,
    running: Option<Round>,
    gathering: Option<Round>,
    /// The first process of each rank that has said hello; no other one may.
    pids: Vec<Option<Pid>>,
    /// Programs that have ended.
    ended: Vec<bool>,
    /// Why all ranks will never say hello again; none as long as they may.
    missing: Option<Refusal>,
}

impl Roster {
    /// For a job of so many ranks.
    pub fn new(ranks: u32) -> Roster {
        let ranks = ranks as usize;
        Roster {
            controls: (0..ranks).map(|_| None).collect(),
            running: None,
            gathering: None,
            pids: vec![None; ranks],
            ended: vec![false; ranks],
            missing: None,
        }
    }

    /// The socket that a rank's program is to inherit; to be dropped when it has been started.
    ///
    /// # Errors
    /// The system refuses.
    pub fn line_to(&mut self, rank: u32) -> io::Result<OwnedFd> {
        let (ours, theirs) = control::socket_pair()?;
        set_socket_passcred(&ours, true)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        fcntl_setfd(&theirs, FdFlags::empty())?;
        self.controls[rank as usize] = Some(ours);
        Ok(theirs)
    }

    /// What to wake up for.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let members = self.rounds().flat_map(|round| round.members.iter().flatten());
        self.controls.iter().flatten().map(AsFd::as_fd).chain(members.map(|member| member.process.as_fd()))
    }

    /// Whether some ranks must be told more, and nobody says when they can.
    pub fn is_busy(&self) -> bool {
        self.running.as_ref().is_some_and(|round| !round.uninformed.is_empty())
    }

    fn rounds(&self) -> impl Iterator<Item = &Round> {
        [&self.gathering, &self.running].into_iter().flatten()
    }

    /// The process that is a rank, while it lives.
    fn member(&self, rank: usize) -> Option<&Member> {
        self.rounds().find_map(|round| round.members[rank].as_ref())
    }

    /// The process that is a rank, while it lives: its number, and what stands for it.
    pub fn process(&self, rank: u32) -> Option<(Pid, BorrowedFd<'_>)> {
        self.member(rank as usize).map(|member| (member.pid, member.process.as_fd()))
    }

    /// Takes in what processes say.
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

    /// Tells processes what is to be told by now.
    pub fn answer(&mut self) {
        self.gather();
        self.running.iter_mut().for_each(Round::inform);
    }

    fn handle(&mut self, rank: usize, mut received: control::Received) {
        let (Some(Packet::Hello { rank: said }), Some(pid)) = (received.packet, received.pid) else { return };
        // Without them there is nowhere to answer, which the process notices.
        let (Some(answer), Some(segment)) = (received.fds.pop(), received.fds.pop()) else { return };
        let taken = if said as usize == rank { self.check(rank, pid) } else { Err(Refusal::Taken) };
        match taken.and_then(|()| self.room_for(pid)) {
            Ok((process, round)) => {
                let (segment, answer) = (Arc::new(segment), Some(answer));
                round.members[rank] = Some(Member { pid, process, segment, answer });
                self.pids[rank] = Some(pid);
                self.running.iter_mut().for_each(|round| round.members[rank] = None);
            }
            Err(why) => refuse(&answer, why),
        }
    }

    /// Whether a process may say that it is this rank.
    fn check(&self, rank: usize, pid: Pid) -> Result<(), Refusal> {
        let has_finished = |member: &Member| member.has_finished(self.ended.len(), rank);
        // One that waits already has given up waiting, and comes again.
        let is_free = |round: &Round| round.members[rank].as_ref().is_none_or(has_finished);
        if self.pids[rank].is_some_and(|known| known != pid) || !self.running.as_ref().is_none_or(is_free) {
            return Err(Refusal::Taken);
        }
        self.missing.map_or(Ok(()), Err)
    }

    /// What a process needs that is taken as a rank: to be watched, and others to wait with.
    fn room_for(&mut self, pid: Pid) -> Result<(OwnedFd, &mut Round), Refusal> {
        let process = pidfd_open(pid, PidfdFlags::empty()).map_err(|_| Refusal::NoRoom)?;
        let round = match &mut self.gathering {
            Some(round) => round,
            none => none.insert(Round::new(self.ended.len()).map_err(|_| Refusal::NoRoom)?),
        };
        Ok((process, round))
    }

    /// Looks for a rank that will not say hello any more, after the end of a program or process.
    fn note_missing(&mut self) {
        let is_over = |rank: usize| self.ended[rank] || self.pids[rank].is_some();
        let has_ended = |rank: &usize| is_over(*rank) && self.member(*rank).is_none();
        let ended = (0..self.ended.len()).find(has_ended).map(|rank| Refusal::Ended(rank as u32));
        // Whoever ends because of the first one is not the reason.
        self.missing = self.missing.or(ended);
    }

    /// Makes those that have said hello a job when all are there; sends them away when somebody will not come.
    fn gather(&mut self) {
        let Some(round) = &mut self.gathering else { return };
        if let Some(why) = self.missing {
            let answers = round.members.iter().flatten().filter_map(|member| member.answer.as_ref());
            answers.for_each(|answer| refuse(answer, why));
            self.gathering = None;
            return;
        }
        if round.members.iter().any(Option::is_none) {
            return;
        }
        // Those that have given up waiting come again, or end.
        let ranks = self.ended.len();
        let waits = |(rank, member): (usize, &Option<Member>)| {
            member.as_ref().is_some_and(|member| !member.has_finished(ranks, rank))
        };
        if round.members.iter().enumerate().all(waits) {
            round.begin();
            self.running = self.gathering.take();
        }
    }

    /// When there is something to say of ranks that keep others waiting, if that is after so long a time.
    pub fn overdue_at(&self, after: Duration) -> Option<Instant> {
        self.gathering.as_ref()?.since?.checked_add(after)
    }

    /// Which ranks keep others waiting; once each time.
    pub fn overdue(&mut self) -> Option<String> {
        let round = self.gathering.as_mut()?;
        round.since = None;
        let missing = round.members.iter().enumerate().filter(|(_, member)| member.is_none());
        let missing: Vec<usize> = missing.map(|(rank, _)| rank).collect();
        (!missing.is_empty()).then(|| list(&missing))
    }

    /// Ranks whose process has ended, and nobody has said so yet.
    pub fn gone(&self) -> Vec<u32> {
        let members: Vec<(u32, &Member)> = self
            .rounds()
            .flat_map(|round| (0..).zip(&round.members))
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

    /// A rank's program has ended.
    pub fn handle_program_end(&mut self, rank: u32) {
        self.ended[rank as usize] = true;
        self.note_missing();
    }

    /// A process has ended, in a way that is known; gives the rank that it was, and whether it had not finished.
    pub fn handle_exit(&mut self, pid: Pid, ending: Ending) -> Option<(u32, bool)> {
        let is = |rank: &u32| self.process(*rank).is_some_and(|(process, _)| process == pid);
        let rank = (0..self.ended.len() as u32).find(is)?;
        let death = match ending {
            Ending::Exited(status) => Death::Exited(status),
            Ending::Killed(signal) => Death::Killed(signal),
        };
        Some((rank, self.note_end(rank as usize, death)))
    }

    /// A rank's process has ended, and only its parent knows how; true when it had not finished.
    pub fn handle_loss(&mut self, rank: u32) -> bool {
        self.note_end(rank as usize, Death::Unknown)
    }

    /// Notes the end of a rank's process; true when it had not finished, which all are told.
    fn note_end(&mut self, rank: usize, death: Death) -> bool {
        let ranks = self.ended.len();
        let round = match (&mut self.gathering, &mut self.running) {
            (Some(round), _) if round.members[rank].is_some() => round,
            (_, Some(round)) => round,
            _ => return false,
        };
        let is_lost = round.members[rank].take().is_some_and(|member| !member.has_finished(ranks, rank));
        if is_lost {
            round.board.announce(rank as u32, death);
            self.missing = self.missing.or(Some(Refusal::Failed(rank as u32)));
        }
        self.note_missing();
        is_lost
    }
}

/// Ranks for people, the first of them.
fn list(ranks: &[usize]) -> String {
    const NAMED: usize = 8;
    let (named, others) = ranks.split_at(ranks.len().min(NAMED));
    let mut words: Vec<String> = named.iter().map(usize::to_string).collect();
    words.extend((!others.is_empty()).then(|| format!("{} others", others.len())));
    match words.split_last() {
        Some((last, first)) if !first.is_empty() => format!("ranks {} and {last}", first.join(", ")),
        _ => format!("rank {}", words.concat()),
    }
}

/// It may have gone before it reads the answer.
fn refuse(answer: &OwnedFd, why: Refusal) {
    drop(control::send(answer.as_fd(), Packet::Refused(why), &[]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_listed_for_people() {
        let listed = |count| list(&(1..=count).collect::<Vec<_>>());
        assert_eq!(listed(1), "rank 1");
        assert_eq!(listed(2), "ranks 1 and 2");
        assert_eq!(listed(8), "ranks 1, 2, 3, 4, 5, 6, 7 and 8");
        assert_eq!(listed(108), "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 100 others");
    }
}
