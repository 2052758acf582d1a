//! Which processes are the ranks: they say hello on a socket that each rank's program inherits, get each other's memory when
//! all are there, and are watched until they end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

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
    segment: OwnedFd,
    answer: OwnedFd,
    gone: bool,
}

/// All ranks of a job.
#[derive(Debug)]
pub struct Roster {
    board: Board,
    /// Our ends of the sockets that the ranks' programs inherit.
    controls: Vec<Option<OwnedFd>>,
    members: Vec<Option<Member>>,
    /// Programs that have ended.
    ended: Vec<bool>,
    welcomed: bool,
}

impl Roster {
    /// For a job of so many ranks.
    ///
    /// # Errors
    /// The system refuses.
    pub fn new(ranks: u32) -> io::Result<Roster> {
        let none = || (0..ranks).map(|_| None);
        Ok(Roster {
            board: Board::create(ranks as usize)?,
            controls: none().collect(),
            members: (0..ranks).map(|_| None).collect(),
            ended: vec![false; ranks as usize],
            welcomed: false,
        })
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
        let processes = self.members.iter().flatten().filter(|m| !m.gone).map(|m| m.process.as_fd());
        self.controls.iter().flatten().map(AsFd::as_fd).chain(processes)
    }

    /// Takes in what processes say, and notices which have ended; gives the ranks that did without finishing. Of those that are
    /// their rank's program itself the monitor hears with their status ([`handle_exit`](Self::handle_exit)).
    pub fn look(&mut self, programs: &[Pid]) -> Vec<u32> {
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
        self.welcome();
        let mut lost = Vec::new();
        for rank in 0..self.members.len() {
            let is_lost = |member: &Member| {
                !member.gone && programs.get(rank) != Some(&member.pid) && has_ended(member)
            };
            if self.members[rank].as_ref().is_some_and(is_lost) && self.note_end(rank, Death::Unknown) {
                lost.push(rank as u32);
            }
        }
        lost
    }

    fn handle(&mut self, rank: usize, mut received: control::Received) {
        let (Some(Packet::Hello { rank: said }), Some(pid)) = (received.packet, received.pid) else { return };
        let (Some(answer), Some(segment)) = (received.fds.pop(), received.fds.pop()) else { return };
        // It may have gone before it reads the answer.
        let refuse = |why| drop(control::send(answer.as_fd(), Packet::Refused(why), &[]));
        if said as usize != rank || self.members[rank].is_some() {
            return refuse(Refusal::Taken);
        }
        if let Some(ended) = self.first_ended() {
            return refuse(Refusal::Ended(ended));
        }
        if let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) {
            self.members[rank] = Some(Member { pid, process, segment, answer, gone: false });
        }
    }

    /// A rank whose program has ended before the process said hello.
    fn first_ended(&self) -> Option<u32> {
        let ended =
            self.ended.iter().zip(&self.members).position(|(ended, member)| *ended && member.is_none());
        ended.map(|rank| rank as u32)
    }

    /// Hands the ranks each other's memory when all are there.
    fn welcome(&mut self) {
        if self.welcomed {
            return;
        }
        if let Some(ended) = self.first_ended() {
            for member in self.members.iter().flatten() {
                let _ = control::send(member.answer.as_fd(), Packet::Refused(Refusal::Ended(ended)), &[]);
            }
            self.welcomed = self.members.iter().any(Option::is_some);
            return;
        }
        if self.members.iter().any(Option::is_none) {
            return;
        }
        self.welcomed = true;
        let files = self.members.iter().flatten().map(|member| member.segment.try_clone());
        let Ok(files) = files.collect::<io::Result<Vec<OwnedFd>>>() else { return };
        for member in self.members.iter().flatten() {
            let packet = Packet::Welcome { ranks: self.members.len() as u32 };
            // Who has gone meanwhile reads nothing; its end is noticed by itself.
            let _ = control::send(member.answer.as_fd(), packet, &self.board.files())
                .and_then(|()| control::send_segments(member.answer.as_fd(), &files));
        }
    }

    /// A rank's program has ended; true when it was a rank and had not finished.
    pub fn handle_exit(&mut self, rank: u32, pid: Pid, ending: Ending) -> bool {
        let rank = rank as usize;
        self.ended[rank] = true;
        let death = match ending {
            Ending::Exited(status) => Death::Exited(status),
            Ending::Killed(signal) => Death::Killed(signal),
        };
        let is_member = self.members[rank].as_ref().is_some_and(|member| !member.gone && member.pid == pid);
        is_member && self.note_end(rank, death)
    }

    /// Notes the end of a rank's process; true when it had not finished, which all are told.
    fn note_end(&mut self, rank: usize, death: Death) -> bool {
        let ranks = self.members.len();
        let Some(member) = &mut self.members[rank] else { return false };
        member.gone = true;
        if has_finished(member.segment.as_fd(), ranks, rank as u32) {
            return false;
        }
        self.board.announce(rank as u32, death);
        true
    }
}

fn has_ended(member: &Member) -> bool {
    let mut fds = [PollFd::new(&member.process, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut fds, Some(&now)), Ok(n) if n > 0)
}
