//! Ranks of jobs in which processes are killed or stopped.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use mpjdev_engine::{Config, DeviceError, Mode, RecvFrom, Uninterruptible};
use rustix::process::{Pid, Signal, getpid, kill_process};

use super::{TestRank, join_with};

/// Number of exchanges between all pairs.
pub(crate) const ROUNDS: u64 = 15;
/// Octets of the messages in turn: inside a queue, by reference, past the credit.
const SIZES: [usize; 5] = [16, 600, 4096, 100_000, 300_000];
const CREDIT: u64 = 200_000;

/// Waits for a condition.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "not in time: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Exchanges messages with all others, and continues without those that fail.
pub(crate) fn exchanges() -> ExitCode {
    let config = Config { credit: CREDIT, ..Config::default() };
    let rank = match join_with(config) {
        Ok(rank) => rank,
        Err(error) => {
            println!("{}: {error}", super::rank());
            println!("{}: done", super::rank());
            return ExitCode::SUCCESS;
        }
    };
    let me = rank.world.rank();
    println!("{me}: joined");
    let mut others: Vec<u32> = (0..rank.world.size() as u32).filter(|rank| *rank != me).collect();
    for round in 0..ROUNDS {
        others.retain(|other| match rank.exchange_once(*other, round) {
            Ok(()) => true,
            Err(error) => {
                println!("{me}: {error}");
                let failed = matches!(error, DeviceError::PeerFailed { rank, .. } if rank == *other);
                assert!(failed, "with rank {other}: {error}");
                false
            }
        });
        println!("{me}: round {round}");
    }
    // Messages to a failed rank are not delivered.
    match rank.world.finish(&mut Uninterruptible) {
        Ok(()) => {}
        Err(error @ (DeviceError::Undelivered { .. } | DeviceError::PeerFailed { .. })) => {
            println!("{me}: {error}");
        }
        Err(error) => panic!("{error}"),
    }
    println!("{me}: done");
    ExitCode::SUCCESS
}

impl TestRank {
    fn exchange_once(&self, other: u32, round: u64) -> Result<(), DeviceError> {
        let octets = SIZES[round as usize % SIZES.len()];
        let seed = |rank: u32| u64::from(rank) << 32 | round;
        let mode = if round.is_multiple_of(3) { Mode::Synchronous } else { Mode::Standard };
        let message = self.write(octets, seed(self.world.rank()));
        let sent = self.world.isend(&message, other as i32, 5, mode)?;
        let from = RecvFrom { source: Some(other as i32), tag: Some(5) };
        let received = self.world.recv(from, octets, None, &mut Uninterruptible);
        if let Some(id) = sent {
            self.world.wait(id, None, &mut Uninterruptible)?;
        }
        Self::check(&received?.1, octets, seed(other));
        Ok(())
    }

    /// Rank 1 is stopped and continued, then stopped and killed, while rank 0 waits for it. Other ranks
    /// detect only its end.
    pub(crate) fn stopped(&self) -> ExitCode {
        if self.world.rank() > 1 {
            let from = RecvFrom { source: Some(1), tag: Some(1) };
            println!(
                "{}",
                self.world.recv(from, 8, None, &mut Uninterruptible).expect_err("nothing is sent")
            );
            self.finish();
            return ExitCode::SUCCESS;
        }
        let from = |tag| RecvFrom { source: Some(1 - self.world.rank() as i32), tag: Some(tag) };
        if self.world.rank() == 1 {
            for tag in 1..3 {
                kill_process(getpid(), Signal::STOP).expect("it is us");
                self.world
                    .send(&self.write(8, 1), 0, tag, Mode::Standard, &mut Uninterruptible)
                    .expect("send");
            }
            unreachable!("rank 0 kills it");
        }
        let until_it_is_stopped = || until("rank 1 is stopped", || self.other_is('T'));
        let id = self.world.irecv(from(1), 8, None).expect("irecv");
        until_it_is_stopped();
        let deadline = Some(Instant::now() + Duration::from_millis(1500));
        let error = self.world.wait(id, deadline, &mut Uninterruptible).expect_err("rank 1 is stopped");
        assert!(matches!(error, DeviceError::TimedOut { .. }), "{error}");
        let mut asked = 0;
        let mut gives_up = || {
            asked += 1;
            asked < 3
        };
        let error = self.world.wait(id, None, &mut gives_up).expect_err("rank 1 is stopped");
        assert_eq!(error, DeviceError::Interrupted);
        kill_process(self.other(), Signal::CONT).expect("it lives");
        self.world.wait(id, None, &mut Uninterruptible).expect("the request completes");
        until_it_is_stopped();
        let begun = Instant::now();
        kill_process(self.other(), Signal::KILL).expect("it lives");
        let error = self.world.recv(from(2), 8, None, &mut Uninterruptible).expect_err("it is dead");
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        println!("{error}");
        self.finish();
        ExitCode::SUCCESS
    }

    /// Rank 0 sleeps in a receive, rank 1 computes, until they are killed.
    pub(crate) fn sleeps_or_computes(&self) -> ExitCode {
        println!("joined");
        if self.world.rank() == 0 {
            let from = RecvFrom { source: Some(1), tag: Some(1) };
            println!("{:?}", self.world.recv(from, 8, None, &mut Uninterruptible));
        }
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(60) {
            std::hint::spin_loop();
        }
        ExitCode::FAILURE
    }

    /// The process of the other of two ranks: the other child of this process's parent.
    pub(super) fn other(&self) -> Pid {
        let parent = rustix::process::getppid().expect("a parent").as_raw_nonzero();
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        let children = children.expect("/proc");
        let mut pids = children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
        pids.find(|pid| *pid != getpid()).expect("two ranks")
    }

    pub(super) fn other_is(&self, state: char) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.other().as_raw_nonzero()));
        stat.expect("/proc").rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(state))
    }
}
