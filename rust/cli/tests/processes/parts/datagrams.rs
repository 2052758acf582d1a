//! Parts of ranks over UDP.

use std::time::{Duration, Instant};

use mpjdev_engine::{DeviceError, Mode, RecvFrom, Uninterruptible};
use rustix::process::{Signal, getpid, kill_process};

use super::kills::until;
use super::{TestRank, kill_this_process};

/// Time for which a rank is stopped.
const STOPPED: Duration = Duration::from_secs(3);
/// Octets of the messages that are sent to it meanwhile, in turn.
const SIZES: [usize; 4] = [16, 1000, 40_000, 300_000];
/// Their number.
const COUNT: usize = 120;

impl TestRank {
    /// Rank 1 is killed while ranks 0 and 2 exchange messages without parking.
    pub(super) fn killed_beside_traffic(&self) {
        let me = self.world.rank();
        self.world.barrier(&mut Uninterruptible).expect("barrier");
        if me == 1 {
            // The other ranks exchange messages by then.
            let from = RecvFrom { source: Some(0), tag: Some(3) };
            self.world.recv(from, 8, None, &mut Uninterruptible).expect("rank 0 has begun");
            kill_this_process();
        }
        let other = 2 - me as i32;
        let of_other = RecvFrom { source: Some(other), tag: None };
        let waits = self.world.irecv(RecvFrom { source: Some(1), tag: None }, 8, None).expect("irecv");
        let (mut begun, mut failed) = (None, false);
        for round in 0u64.. {
            // A rank that has detected the failure notifies the other one. Both continue until both have.
            let tag = i32::from(failed) + 1;
            self.world
                .send(&self.write(8, round), other, tag, Mode::Standard, &mut Uninterruptible)
                .expect("send");
            let (status, message) = self.world.recv(of_other, 8, None, &mut Uninterruptible).expect("recv");
            Self::check(&message, 8, round);
            if round == 100 && me == 0 {
                self.world.send(&self.write(8, 0), 1, 3, Mode::Standard, &mut Uninterruptible).expect("send");
            }
            if round == 100 {
                begun = Some(Instant::now());
            }
            if failed && status.tag == 2 {
                break;
            }
            match self.world.test(waits) {
                Ok(None) => {}
                Ok(Some(_)) => panic!("no rank has sent that"),
                Err(error) if !failed => {
                    assert!(matches!(error, DeviceError::PeerFailed { rank: 1, .. }), "{error}");
                    println!("{me}: {error}");
                    failed = true;
                }
                Err(_) => {}
            }
            let late = begun.is_some_and(|begun| begun.elapsed() > Duration::from_secs(20));
            assert!(failed || !late, "{me}: rank 1 was killed, and this rank does not notice");
        }
    }

    /// Rank 1 is stopped while rank 0 sends it more than its socket holds.
    pub(super) fn sends_while_stopped(&self) {
        self.world.barrier(&mut Uninterruptible).expect("barrier");
        let octets = |i: usize| SIZES[i % SIZES.len()];
        if self.world.rank() == 1 {
            kill_process(getpid(), Signal::STOP).expect("it is us");
            for i in 0..COUNT {
                let from = RecvFrom { source: Some(0), tag: Some(i as i32) };
                let (_, message) =
                    self.world.recv(from, octets(i), None, &mut Uninterruptible).expect("recv");
                Self::check(&message, octets(i), i as u64);
            }
            return println!("1: all has arrived");
        }
        until("rank 1 is stopped", || self.other_is('T'));
        let begun = Instant::now();
        let send = |i| {
            let mode = if i + 1 == COUNT { Mode::Synchronous } else { Mode::Standard };
            self.world.isend(&self.write(octets(i), i as u64), 1, i as i32, mode).expect("isend")
        };
        let sent: Vec<_> = (0..COUNT).filter_map(send).collect();
        let last = *sent.last().expect("a synchronous message waits");
        let error = self
            .world
            .wait(last, Some(begun + STOPPED), &mut Uninterruptible)
            .expect_err("rank 1 is stopped");
        assert!(matches!(error, DeviceError::TimedOut { .. }), "{error}");
        kill_process(self.other(), Signal::CONT).expect("it lives");
        sent.into_iter().for_each(|id| drop(self.world.wait(id, None, &mut Uninterruptible).expect("wait")));
        println!("0: all has left");
    }

    /// Messages of many datagrams pass a ring while the MTU of the interface is lowered.
    pub(super) fn sends_while_the_way_narrows(&self) {
        let (me, all) = (self.world.rank() as i32, self.world.size() as i32);
        let from = RecvFrom { source: Some((me + all - 1) % all), tag: None };
        let mtu = || std::fs::read_to_string("/sys/class/net/eth/mtu").expect("an interface");
        let before = mtu();
        let (mut left, mut round) = (None, 0);
        self.world.barrier(&mut Uninterruptible).expect("barrier");
        println!("met");
        while left != Some(0) {
            let sent = self
                .world
                .isend(&self.write(200_000, round), (me + 1) % all, i32::from(left.is_some()), Mode::Standard)
                .expect("isend");
            let (status, message) = self.world.recv(from, 200_000, None, &mut Uninterruptible).expect("recv");
            Self::check(&message, 200_000, round);
            sent.into_iter()
                .for_each(|id| drop(self.world.wait(id, None, &mut Uninterruptible).expect("wait")));
            round += 1;
            // All continue for as many rounds after the first report as the report needs to arrive.
            left = match left {
                None if me == 0 && mtu() != before => Some(20 * all),
                None if me != 0 && status.tag == 1 => Some(20 * all - me),
                left => left.map(|left| left - 1),
            };
        }
        println!("{me}: done");
    }
}
