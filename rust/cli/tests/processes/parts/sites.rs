//! Parts of ranks in jobs of several sites.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use mpjdev_engine::{Mode, RecvFrom, Uninterruptible};

use super::kills::until;
use super::{TestRank, join, kill_this_process};

impl TestRank {
    /// Waits until the job is ended.
    pub(super) fn waits(&self) {
        println!("joined");
        until("the job is ended", || false);
    }

    /// Rank 1 is killed while ranks of the other site wait for it. These ranks end without `finish`.
    pub(super) fn needs_rank_1(&self) -> ExitCode {
        self.world.barrier(&mut Uninterruptible).expect("barrier");
        // A rank that has left a barrier does not know whether the others have.
        if self.world.rank() == 1 {
            for rank in (0..self.world.size() as i32).filter(|rank| *rank != 1) {
                let from = RecvFrom { source: Some(rank), tag: Some(1) };
                self.world.recv(from, 8, None, &mut Uninterruptible).expect("it has left the barrier");
            }
            kill_this_process();
        }
        self.world.send(&self.write(8, 0), 1, 1, Mode::Standard, &mut Uninterruptible).expect("send");
        if self.world.rank() == 0 {
            until("the job is ended", || false);
        }
        let from = RecvFrom { source: Some(1), tag: None };
        println!("{}", self.world.recv(from, 8, None, &mut Uninterruptible).expect_err("no rank sends"));
        ExitCode::from(3)
    }

    /// Repeats barriers until a rank fails. `rank` exits with status 5 after some of them.
    pub(super) fn barriers(&self, leaves: Option<i32>) -> ExitCode {
        println!("{} is {}", self.world.rank(), std::process::id());
        for round in 0.. {
            if let Err(error) = self.world.barrier(&mut Uninterruptible) {
                println!("{}: {error}", self.world.rank());
                break;
            }
            if round == 50 && leaves.is_some_and(|rank| rank == self.world.rank() as i32) {
                return ExitCode::from(5);
            }
        }
        ExitCode::from(3)
    }

    /// Each of two sites of two ranks waits for a message of the other one that is never sent.
    pub(super) fn needs_the_other_site(&self) -> ExitCode {
        self.world.barrier(&mut Uninterruptible).expect("barrier");
        println!("met");
        let other = (self.world.rank() + 2) % 4;
        let from = RecvFrom { source: Some(other as i32), tag: None };
        println!("{}", self.world.recv(from, 8, None, &mut Uninterruptible).expect_err("no rank sends"));
        ExitCode::from(3)
    }

    /// Rank 0 sends to the other site over a cut link, and finishes. The other ranks wait for further
    /// messages.
    pub(super) fn finishes_behind_a_cut(&self) -> ExitCode {
        self.world.barrier(&mut Uninterruptible).expect("barrier");
        println!("met");
        if self.world.rank() == 0 {
            let carrier = || std::fs::read_to_string("/sys/class/net/eth/carrier");
            until("the link is cut", || carrier().expect("an interface").trim() == "0");
            let sent = self.world.send(&self.write(1000, 0), 2, 1, Mode::Standard, &mut Uninterruptible);
            match (sent, self.world.finish(&mut Uninterruptible)) {
                (Ok(()), Ok(())) => println!("all is delivered"),
                (Ok(()), Err(error)) => println!("{error}"),
                (Err(error), _) => println!("not sent: {error}"),
            }
            return ExitCode::from(3);
        }
        let from = RecvFrom { source: Some(0), tag: Some(2) };
        self.world.recv(from, 8, None, &mut Uninterruptible).expect_err("no rank sends");
        // Packets of the barrier may be unacked as well.
        let _ = self.world.finish(&mut Uninterruptible);
        ExitCode::SUCCESS
    }

    /// Rank 1 is killed while all others wait for it.
    pub(super) fn detects_failure_of_rank_1(&self) {
        self.world.barrier(&mut Uninterruptible).expect("barrier");
        if self.world.rank() == 1 {
            kill_this_process();
        }
        let begun = Instant::now();
        let from = RecvFrom { source: Some(1), tag: None };
        let error = self.world.recv(from, 8, None, &mut Uninterruptible).expect_err("no rank sends");
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        println!("{}: {error}", self.world.rank());
    }

    /// Finishes, and tries to continue.
    pub(super) fn joins_again(self) -> ExitCode {
        self.world.barrier(&mut Uninterruptible).expect("barrier");
        self.finish();
        println!("{}", join().err().expect("it is over"));
        ExitCode::SUCCESS
    }
}
