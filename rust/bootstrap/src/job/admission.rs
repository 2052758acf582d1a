//! Admission of a process as a rank of its job, by its monitor.
//!
//! The monitor alone decides whether a rank that cancels is in the job. It answers each `Cancel` by
//! `Cancelled`, unless it has sent, or is about to send, the description of the job. So a cancelled rank has
//! joined if and only if all ranks have.
//!
//! ```text
//!   Asking --interrupt--> Cancelling --Cancelled--> Err(Interrupted)
//!     |                       |
//!     +-----------+-----------+
//!                 +-- World, Welcome --> joining, which is not interrupted any more
//!                 +-- Refused, end ----> an error
//! ```

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use mpjdev_transport::pool::HeapPool;
use mpjdev_transport::shm;
use mpjdev_transport::wait::WaitControl;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::error::{JoinError, LauncherFault, system};
use super::network::NetworkWorld;
use super::world::World;
use crate::control::{self, Packet, Refusal};

/// The time limit of the monitor for an answer that depends on no other rank. It includes delays of a busy
/// machine.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// The interval of retries. No event reports that descriptors in flight have arrived, or that the monitor has
/// read its packets.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);

/// The description of the job that the monitor has sent.
pub(super) struct Admitted {
    /// The world, if it has more ranks than those that share memory.
    pub(super) network: Option<NetworkWorld>,
    /// The shared memory of the launcher's ranks, if they share any.
    pub(super) job: Option<shm::Job>,
}

/// A process that waits for the other ranks.
pub(super) struct Admission<'a> {
    /// The socket to the monitor.
    socket: BorrowedFd<'a>,
    /// The socket with its answers.
    answers: OwnedFd,
    rank: u32,
    ranks: u32,
    /// The longest sleep.
    slice: Duration,
    /// The time limit of the monitor for an answer that depends on no other rank.
    answer_max: Duration,
    /// The end of that time, once the wait control has ended the wait.
    deadline: Option<Instant>,
    /// The pool whose callback closes unused descriptors.
    private: Option<&'a HeapPool>,
}

impl<'a> Admission<'a> {
    /// Sends Hello on this socket. Blocks while the system refuses to take more descriptors.
    ///
    /// # Errors
    /// Interrupted; the monitor has ended; the system refuses.
    pub(super) fn ask(
        socket: BorrowedFd<'a>,
        (rank, ranks): (u32, u32),
        segment: BorrowedFd<'_>,
        slice: Duration,
        wait_control: &mut dyn WaitControl,
    ) -> Result<Admission<'a>, JoinError> {
        let (answers, theirs) = control::socket_pair().map_err(system("a socket"))?;
        loop {
            match control::send(socket, Packet::Hello { rank }, &[segment, theirs.as_fd()]) {
                Ok(()) => break,
                Err(error) if !control::is_temporary(&error) => return Err(system("the launcher")(error)),
                Err(_) if !wait_control.keep_waiting() => return Err(JoinError::Interrupted),
                Err(_) => std::thread::sleep(RETRY_INTERVAL),
            }
        }
        let (answer_max, deadline, private) = (ANSWER_MAX, None, None);
        Ok(Admission { socket, answers, rank, ranks, slice, answer_max, deadline, private })
    }

    /// Sets the pool that asks for a collection when this process has too few descriptors for the next
    /// packet.
    pub(super) fn collect_by(&mut self, private: &'a HeapPool) {
        self.private = Some(private);
    }

    /// Waits for the description of the job, which the monitor sends when all ranks have joined. Blocks.
    ///
    /// # Errors
    /// Interrupted: no rank has joined then. A rank will not join; the monitor has ended, or breaks the
    /// protocol.
    pub(super) fn receive(&mut self, wait_control: &mut dyn WaitControl) -> Result<Admitted, JoinError> {
        let mut first = self.receive_packet(wait_control)?;
        let mut network = None;
        if first.packet == Some(Packet::World) {
            let [world, listener] = pair("World", first.fds)?;
            let world = World::open(world).map_err(system("the description of the world"))?;
            if world.count != self.ranks {
                let fault = LauncherFault::RankCount { count: world.count, expected: self.ranks };
                return Err(JoinError::Launcher(fault));
            }
            let shares_memory = world.shares_memory;
            network = Some(NetworkWorld { world, listener });
            if !shares_memory {
                return Ok(Admitted { network, job: None });
            }
            first = self.receive_packet(wait_control)?;
        }
        let job = self.receive_job(first, wait_control)?;
        Ok(Admitted { network, job: Some(job) })
    }

    /// Receives the shared memory of ranks that share some, after its first packet. Blocks.
    fn receive_job(
        &mut self,
        first: control::Received,
        wait_control: &mut dyn WaitControl,
    ) -> Result<shm::Job, JoinError> {
        let ranks = self.ranks;
        let (mut pages, mut files) = (None, Vec::new());
        let mut next = Some(first);
        while files.len() < ranks as usize {
            let mut received = next.take().map_or_else(|| self.receive_packet(wait_control), Ok)?;
            match received.packet {
                Some(Packet::Welcome { ranks: all }) if all == ranks && pages.is_none() => {
                    pages = Some(pair("Welcome", received.fds)?);
                }
                Some(Packet::Segments { first, count })
                    if first as usize == files.len() && count as usize == received.fds.len() =>
                {
                    files.append(&mut received.fds);
                }
                _ => {
                    let fault = LauncherFault::Order { count: files.len(), expected: ranks as usize };
                    return Err(JoinError::Launcher(fault));
                }
            }
        }
        let Some(pages) = pages.filter(|_| files.len() == ranks as usize) else {
            let fault = LauncherFault::SegmentCount { count: files.len(), expected: ranks as usize };
            return Err(JoinError::Launcher(fault));
        };
        shm::Job::open([pages[0].as_fd(), pages[1].as_fd()], files).map_err(system("the pages of the job"))
    }

    /// Receives the next packet of the job with all its descriptors. Blocks.
    fn receive_packet(&mut self, wait_control: &mut dyn WaitControl) -> Result<control::Received, JoinError> {
        let received = self.receive_any(wait_control)?;
        match received.packet {
            Some(Packet::Refused(why)) => return Err(refused(self.rank, why)),
            Some(Packet::Cancelled) => return Err(JoinError::Interrupted),
            _ => {}
        }
        if received.is_cut {
            let cut = io::Error::from_raw_os_error(Errno::MFILE.raw_os_error());
            return Err(system("the descriptors of the launcher")(cut));
        }
        Ok(received)
    }

    /// Receives the next packet. Blocks.
    fn receive_any(&mut self, wait_control: &mut dyn WaitControl) -> Result<control::Received, JoinError> {
        loop {
            if self.wait()? {
                if let Some(private) = self.private.filter(|_| control::would_be_cut(self.answers.as_fd())) {
                    private.ask_for_room();
                }
                return match control::receive(self.answers.as_fd()) {
                    Ok(Some(received)) => Ok(received),
                    Ok(None) => Err(JoinError::Launcher(LauncherFault::Ended)),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(system("the launcher")(error)),
                };
            }
            match self.deadline {
                None if !wait_control.keep_waiting() => self.cancel()?,
                Some(deadline) if Instant::now() >= deadline => {
                    let fault = LauncherFault::NoAnswer { after: self.answer_max };
                    return Err(JoinError::Launcher(fault));
                }
                _ => {}
            }
        }
    }

    /// Waits a slice of time for a packet; false when there is none. A receive would block without one.
    fn wait(&self) -> Result<bool, JoinError> {
        let slice = Timespec::try_from(self.slice).unwrap_or_default();
        match poll(&mut [PollFd::new(&self.answers, PollFlags::IN)], Some(&slice)) {
            Ok(0) | Err(Errno::INTR) => Ok(false),
            Ok(_) => Ok(true),
            Err(error) => Err(system("the launcher")(error.into())),
        }
    }

    /// Sends a Cancel. The monitor answers it, unless all ranks have joined: then the description is in
    /// flight.
    fn cancel(&mut self) -> Result<(), JoinError> {
        let deadline = Instant::now() + self.answer_max;
        self.deadline = Some(deadline);
        loop {
            match control::send(self.socket, Packet::Cancel { rank: self.rank }, &[]) {
                Ok(()) => return Ok(()),
                Err(error) if !control::is_temporary(&error) => return Err(system("the launcher")(error)),
                // `receive_any` reports the missing answer at the deadline.
                Err(_) if Instant::now() >= deadline => return Ok(()),
                Err(_) => std::thread::sleep(RETRY_INTERVAL),
            }
        }
    }
}

/// The two descriptors of a packet.
fn pair(packet: &'static str, fds: Vec<OwnedFd>) -> Result<[OwnedFd; 2], JoinError> {
    let wrong = |fds: Vec<OwnedFd>| LauncherFault::Descriptors { packet, count: fds.len(), expected: 2 };
    <[_; 2]>::try_from(fds).map_err(|fds| JoinError::Launcher(wrong(fds)))
}

fn refused(rank: u32, why: Refusal) -> JoinError {
    match why {
        Refusal::Ended(peer) | Refusal::Failed(peer) => JoinError::Peer { rank: peer, why },
        Refusal::Taken | Refusal::NoRoom | Refusal::NoJob | Refusal::Once => JoinError::Refused { rank, why },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpjdev_transport::shm::StatusPage;
    use mpjdev_transport::wait::Uninterruptible;

    /// The monitor's end of one rank's sockets.
    struct Monitor {
        socket: OwnedFd,
        answer: OwnedFd,
    }

    impl Monitor {
        fn send(&self, packet: Packet, fds: &[BorrowedFd<'_>]) {
            control::send(self.answer.as_fd(), packet, fds).expect("sent");
        }

        fn admit(&self) {
            let status_page = StatusPage::create(2).expect("memory");
            for (packet, fds) in
                control::welcome(status_page.files(), &[self.socket.as_fd(), self.socket.as_fd()])
            {
                self.send(packet, &fds);
            }
        }

        fn receive(&self) -> Option<Packet> {
            let received = control::receive(self.socket.as_fd()).expect("no error");
            received.expect("the rank lives").packet
        }
    }

    /// The result of rank 0 of 2 when the wait control, which is called repeatedly, acts on the monitor.
    fn ask(
        mut wait_control: impl FnMut(&Monitor) -> bool,
        answer_max: Duration,
    ) -> Result<Admitted, JoinError> {
        let (socket, theirs) = control::socket_pair().expect("sockets");
        let slice = Duration::from_millis(1);
        let admission = Admission::ask(socket.as_fd(), (0, 2), socket.as_fd(), slice, &mut Uninterruptible);
        let hello = control::receive(theirs.as_fd()).expect("no error").expect("the rank lives");
        assert_eq!(hello.packet, Some(Packet::Hello { rank: 0 }));
        let [_, answer] = <[OwnedFd; 2]>::try_from(hello.fds).expect("two descriptors");
        let monitor = Monitor { socket: theirs, answer };
        let mut admission = Admission { answer_max, ..admission? };
        admission.receive(&mut || wait_control(&monitor))
    }

    #[test]
    fn interrupted_rank_joins_when_the_welcome_is_in_flight() {
        let mut asked = 0;
        let found = ask(
            |monitor| {
                asked += 1;
                monitor.admit();
                false
            },
            ANSWER_MAX,
        );
        assert!(found.expect("all have joined").job.is_some());
        assert_eq!(asked, 1, "it is not interrupted any more");
    }

    #[test]
    fn interrupted_rank_that_the_monitor_cancels_has_not_joined() {
        let found = std::thread::scope(|s| {
            let mut cancel = Some(|monitor: OwnedFd, answer: OwnedFd| {
                let monitor = Monitor { socket: monitor, answer };
                assert_eq!(monitor.receive(), Some(Packet::Cancel { rank: 0 }));
                monitor.send(Packet::Cancelled, &[]);
            });
            let wait_control = |monitor: &Monitor| {
                let copies =
                    [&monitor.socket, &monitor.answer].map(|fd| fd.try_clone().expect("a descriptor"));
                let [socket, answer] = copies;
                cancel.take().map(|cancel| s.spawn(move || cancel(socket, answer)));
                false
            };
            ask(wait_control, ANSWER_MAX)
        });
        assert!(matches!(found, Err(JoinError::Interrupted)));
    }

    #[test]
    fn interrupted_rank_gets_the_reason_of_the_refusal() {
        let found = ask(
            |monitor| {
                monitor.send(Packet::Refused(Refusal::Ended(1)), &[]);
                false
            },
            ANSWER_MAX,
        );
        assert!(matches!(found, Err(JoinError::Peer { rank: 1, why: Refusal::Ended(1) })));
    }

    #[test]
    fn interrupted_rank_stops_waiting_for_an_unresponsive_monitor() {
        let found = ask(|_| false, Duration::from_millis(5));
        let after = Duration::from_millis(5);
        let Err(JoinError::Launcher(fault)) = found else { panic!("no answer has arrived") };
        assert_eq!(fault, LauncherFault::NoAnswer { after });
        assert!(fault.to_string().ends_with("within 0.005 s"), "{fault}");
    }
}
