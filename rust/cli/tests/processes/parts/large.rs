//! A large message that is blocked, and small ones that are not.

use std::net::Ipv4Addr;
use std::sync::atomic::Ordering::Relaxed;

use mpjdev_engine::{Mode, RecvFrom, Uninterruptible};
use rustix::process::{Pid, Signal, getpid, kill_process};

use super::TestRank;
use super::connected::untaken_len;
use super::kills::until;

/// Octets of the large message: more than the socket buffers at both ends hold.
const LARGE: usize = 64 << 20;
/// Octets of the small messages, in turn.
const COUNT: u64 = 1000;
const SMALL: [usize; 4] = [0, 16, 1024, 5000];
/// Number of small messages behind the large one: more than may be unacked.
const BEHIND: u64 = 300;
/// Maximum rounds. Rank 1 may have received the whole message before it is stopped.
const ROUNDS: u64 = 50;
/// The address that rank 1 listens at.
const RANK_1: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

/// Tags.
const WHO: i32 = 1;
const HUGE: i32 = 2;
const TRAIN: i32 = 3;
const GOT: i32 = 4;
const PING: i32 = 5;
const AGAIN: i32 = 6;
const OVER: i32 = 7;

fn from(source: i32, tag: i32) -> RecvFrom {
    RecvFrom { source: Some(source), tag: Some(tag) }
}

impl TestRank {
    /// Rank 0 sends a large message to rank 1, which is stopped before it has received the whole. Meanwhile
    /// rank 0 exchanges small messages with rank 2, on the same thread or beside a thread that waits for rank
    /// 1.
    pub(super) fn sends_large_and_small(&self, two_threads: bool) {
        match self.world.rank() {
            0 => {
                let is_in_flight = (0..ROUNDS).any(|round| self.send_both(round, two_threads));
                assert!(is_in_flight, "rank 1 has got all of it {ROUNDS} times before it was stopped");
                self.tell_all(OVER);
                println!("0: {COUNT} answers of rank 2 while rank 1 was stopped");
            }
            1 => self.receive_large(),
            _ => self.answer_small(),
        }
    }

    fn send_small(&self, octets: usize, seed: u64, dest: i32, tag: i32) {
        let message = self.write(octets, seed);
        self.world.send(&message, dest, tag, Mode::Standard, &mut Uninterruptible).expect("send");
    }

    fn receive(&self, octets: usize, seed: u64, source: i32, tag: i32) {
        let (_, message) =
            self.world.recv(from(source, tag), octets, None, &mut Uninterruptible).expect("recv");
        Self::check(&message, octets, seed);
    }

    fn tell_all(&self, tag: i32) {
        (1..3).for_each(|dest| self.send_small(0, 0, dest, tag));
    }

    /// One round at rank 0; true if the large message was in flight all the time.
    fn send_both(&self, round: u64, two_threads: bool) -> bool {
        if round > 0 {
            self.tell_all(AGAIN);
        }
        let (_, who) = self.world.recv(from(1, WHO), 16, None, &mut Uninterruptible).expect("recv");
        let pid = who.first_words()[2].load(Relaxed) / 31;
        let rank_1 = Pid::from_raw(pid as i32).expect("a process");
        let begin = || {
            // The large message is matched then. The rest is sent as rank 1 receives it.
            let large = self.write(LARGE, round);
            self.world.send(&large, 1, HUGE, Mode::Synchronous, &mut Uninterruptible).expect("send");
            kill_process(rank_1, Signal::STOP).expect("it lives");
            until("rank 1 is stopped", || is_stopped(rank_1));
        };
        let meanwhile = || {
            self.exchange_small();
            let is_in_flight = untaken_len(RANK_1) > 0;
            kill_process(rank_1, Signal::CONT).expect("it lives");
            is_in_flight
        };
        let end = |behind: Vec<_>| {
            for id in behind.into_iter().flatten() {
                self.world.wait(id, None, &mut Uninterruptible).expect("wait");
            }
            self.receive(0, 0, 1, GOT);
        };
        let behind = || -> Vec<_> {
            let message = |i| self.write(SMALL[i as usize % SMALL.len()], i);
            let send = |i| self.world.isend(&message(i), 1, TRAIN, Mode::Standard).expect("isend");
            (0..BEHIND).map(send).collect()
        };
        if !two_threads {
            begin();
            let behind = behind();
            let is_in_flight = meanwhile();
            end(behind);
            return is_in_flight;
        }
        let (begun, is_begun) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                begin();
                let behind = behind();
                begun.send(()).expect("the other thread waits");
                end(behind);
            });
            is_begun.recv().expect("it begins");
            meanwhile()
        })
    }

    fn exchange_small(&self) {
        for i in 0..COUNT {
            let octets = SMALL[i as usize % SMALL.len()];
            self.send_small(octets, i, 2, PING);
            self.receive(octets, i + 1, 2, PING);
        }
    }

    fn receive_large(&self) {
        for round in 0.. {
            let id = self.world.irecv(from(0, HUGE), LARGE, None).expect("irecv");
            self.send_small(16, getpid().as_raw_nonzero().get() as u64, 0, WHO);
            let message =
                self.world.wait(id, None, &mut Uninterruptible).expect("wait").message.expect("a message");
            Self::check(&message, LARGE, round);
            (0..BEHIND).for_each(|i| self.receive(SMALL[i as usize % SMALL.len()], i, 0, TRAIN));
            self.send_small(0, 0, 0, GOT);
            if self.receive_command() == OVER {
                return;
            }
        }
    }

    fn answer_small(&self) {
        loop {
            for i in 0..COUNT {
                let octets = SMALL[i as usize % SMALL.len()];
                self.receive(octets, i, 0, PING);
                self.send_small(octets, i + 1, 0, PING);
            }
            if self.receive_command() == OVER {
                return;
            }
        }
    }

    /// The tag of the command of rank 0 for the next round.
    fn receive_command(&self) -> i32 {
        let any = RecvFrom { source: Some(0), tag: None };
        self.world.recv(any, 0, None, &mut Uninterruptible).expect("recv").0.tag
    }
}

fn is_stopped(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).expect("/proc");
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}
