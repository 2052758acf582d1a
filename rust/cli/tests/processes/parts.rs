//! The part of each rank in each test.

mod connected;
mod datagrams;
pub(crate) mod kills;
mod large;
mod sites;

use std::io;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use mpjdev_bootstrap::job;
use mpjdev_bootstrap::setup::PortRelay;
use mpjdev_buffer::{Encoding, Message, SlabSource, Type, WriteBuffer};
use mpjdev_engine::pool::HeapPool;
use mpjdev_engine::{Comm, Config, Mode, RecvFrom, Uninterruptible};

use kills::until;

/// This process as a rank.
struct TestRank {
    world: Comm,
    source: Arc<dyn SlabSource>,
}

/// The variable with a port that takes the datagrams between two ranks.
pub(crate) const FIREWALL_PORT: &str = "MPJDEV_TEST_FIREWALL_PORT";

/// A relay of two ranks that forwards nothing.
#[derive(Debug)]
struct Firewall {
    port: u16,
}

impl Firewall {
    fn from_environment() -> Option<Firewall> {
        let port = std::env::var(FIREWALL_PORT).ok()?;
        Some(Firewall { port: port.parse().expect("a port") })
    }
}

impl PortRelay for Firewall {
    fn ports(&self, rank: u32, _: usize, _: u16, _: Instant) -> io::Result<Vec<u16>> {
        Ok(if rank == 0 { vec![0, self.port] } else { vec![self.port, 0] })
    }

    fn is_inter_node(&self) -> bool {
        false
    }
}

fn join() -> Result<TestRank, job::JoinError> {
    join_with(Config::default())
}

fn join_with(config: Config) -> Result<TestRank, job::JoinError> {
    let private = HeapPool::new(1 << 30);
    let firewall = Firewall::from_environment();
    let relay = firewall.as_ref().map(|firewall| firewall as &dyn PortRelay);
    let joined = job::join_through(relay, config, &private, &mut Uninterruptible)?.expect("a launcher");
    Ok(TestRank { world: joined.world, source: joined.source })
}

/// Plays a part; the exit status is 0 on success.
pub(crate) fn play(part: &str) -> ExitCode {
    match part {
        "absent" if rank() == 1 => return ExitCode::SUCCESS,
        "late" if rank() % 2 == 1 => until("the job is ended", || false),
        "kills" => return kills::exchanges(),
        "says-and-joins" => println!("here"),
        "twice" => return twice(),
        "rounds" => return rounds(12),
        "three-rounds" => return rounds(3),
        _ => {}
    }
    let mut config = Config::default();
    if part == "finishes-behind-a-cut-soon" {
        config.finish_timeout = Duration::from_secs(1);
    }
    let rank = match join_with(config) {
        Ok(rank) => rank,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match part {
        "ring" => rank.ring(&SIZES),
        "long-ring" => rank.ring(&[&SIZES[..], &[64 << 20]].concat()),
        "exchange" => rank.exchange(300),
        "short-exchange" => rank.exchange(28),
        "gathers" => rank.gathers(),
        "addresses" => rank.prints_addresses(),
        "keeps" => rank.prints_open_files(),
        "large-and-small" => rank.sends_large_and_small(false),
        "large-and-small-by-two-threads" => rank.sends_large_and_small(true),
        "computes" => rank.computes(1),
        "computes-far" => rank.computes(rank.world.size() as i32 - 1),
        "killed" => rank.killed(),
        "killed-beside-traffic" => rank.killed_beside_traffic(),
        "narrows" => rank.sends_while_the_way_narrows(),
        "sends-while-stopped" => rank.sends_while_stopped(),
        "stopped" => return rank.stopped(),
        "outlives" | "outlives-and-exits-7" => rank.outlives(),
        "outlives-and-leaves" => {
            rank.outlives();
            if rank.world.rank() == 1 {
                return ExitCode::SUCCESS;
            }
        }
        "sleeps-or-computes" => return rank.sleeps_or_computes(),
        "stays-away" => return rank.stays_away(),
        "fails-meanwhile" => return rank.fails_meanwhile(),
        "leaves" if rank.world.rank() == 1 => return ExitCode::SUCCESS,
        "joins-and-waits" => rank.waits(),
        "barriers" => return rank.barriers(None),
        "rank-1-leaves-barriers" => return rank.barriers(Some(1)),
        "rank-2-leaves-barriers" => return rank.barriers(Some(2)),
        "needs-the-other-site" => return rank.needs_the_other_site(),
        "finishes-behind-a-cut" | "finishes-behind-a-cut-soon" => return rank.finishes_behind_a_cut(),
        "needs-rank-1" => return rank.needs_rank_1(),
        "detects-failure-of-rank-1" => rank.detects_failure_of_rank_1(),
        "joins-again" => return rank.joins_again(),
        "says-and-joins" => println!("joined"),
        "leaves" | "once" => {}
        other => panic!("no part {other}"),
    }
    rank.finish();
    ExitCode::from(if part == "outlives-and-exits-7" { 7 } else { 0 })
}

fn rank() -> u32 {
    std::env::var(mpjdev_bootstrap::control::RANK).expect("a rank").parse().expect("a number")
}

/// Finishes and joins several times, and checks that nothing of an earlier session is left.
fn rounds(count: usize) -> ExitCode {
    let holds = || {
        let files = std::fs::read_dir("/proc/self/fd").expect("/proc").count();
        let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc");
        files + maps.lines().filter(|line| line.contains("mpjdev")).count()
    };
    let mut most = 0;
    for round in 0..count {
        let rank = join().expect("a rank");
        let (me, all) = (rank.world.rank(), rank.world.size() as u32);
        let kept = rank.write(100_000, round as u64);
        let sent = rank.world.isend(&kept, ((me + 1) % all) as i32, 5, Mode::Standard).expect("isend");
        let from = RecvFrom { source: Some(((me + all - 1) % all) as i32), tag: Some(5) };
        let (_, message) = rank.world.recv(from, 100_000, None, &mut Uninterruptible).expect("recv");
        sent.into_iter().for_each(|id| drop(rank.world.wait(id, None, &mut Uninterruptible).expect("wait")));
        rank.finish();
        drop(rank);
        // Messages outlive their session.
        TestRank::check(&message, 100_000, round as u64);
        TestRank::check(&kept, 100_000, round as u64);
        drop((message, kept));
        if round == 0 {
            most = holds();
        }
    }
    // The progress thread of a finished rank wakes once a second.
    until("the memory of the rounds is given back", || holds() <= most);
    println!("done");
    ExitCode::SUCCESS
}

/// A second process claims to be this rank.
fn twice() -> ExitCode {
    let own = std::env::current_exe().expect("this program");
    let start = || Command::new(&own).arg("once").spawn_inheriting();
    let children = [start(), start()];
    let good = children
        .map(|mut child| child.wait().expect("our child").success())
        .into_iter()
        .filter(|good| *good)
        .count();
    ExitCode::from(u8::from(good != 1))
}

fn kill_this_process() {
    let own = rustix::process::getpid();
    rustix::process::kill_process(own, rustix::process::Signal::KILL).expect("it is us");
}

/// A child with the control socket, whose standard error is the standard output of this rank.
trait SpawnInheriting {
    fn spawn_inheriting(&mut self) -> std::process::Child;
}

impl SpawnInheriting for Command {
    fn spawn_inheriting(&mut self) -> std::process::Child {
        self.stderr(std::io::stdout()).spawn().expect("it starts")
    }
}

/// Octets of the messages in the ring. The last one is a rendezvous over TCP.
const SIZES: [usize; 9] = [0, 8, 64, 1024, 1032, 4096, 65_536, 1 << 20, 5 << 20];
const ANY: RecvFrom = RecvFrom { source: None, tag: None };

impl TestRank {
    fn finish(&self) {
        self.world.finish(&mut Uninterruptible).expect("all is delivered");
    }

    /// Continues after the shell that has started it has ended.
    fn outlives(&self) {
        self.world.barrier(&mut Uninterruptible).expect("barrier");
        let shell = rustix::process::getppid().expect("a parent");
        rustix::process::kill_process(shell, rustix::process::Signal::USR1).expect("it lives");
        until("the shell ends", || rustix::process::getppid() != Some(shell));
        self.world.barrier(&mut Uninterruptible).expect("barrier");
        println!("{}: done", self.world.rank());
    }

    /// Rank 1 ends, and the other ranks try to join again.
    fn stays_away(self) -> ExitCode {
        let is_last = self.world.rank() == 1;
        self.finish();
        if !is_last {
            println!("{}", join().err().expect("rank 1 does not come"));
        }
        ExitCode::SUCCESS
    }

    /// Rank 1 is killed before it finishes, while the others wait for it to join again.
    fn fails_meanwhile(self) -> ExitCode {
        if self.world.rank() == 1 {
            let from = RecvFrom { source: Some(0), tag: None };
            self.world.recv(from, 8, None, &mut Uninterruptible).expect_err("rank 0 finishes");
            kill_this_process();
        }
        self.finish();
        println!("{}", join().err().expect("rank 1 has died"));
        ExitCode::SUCCESS
    }

    /// A message of `octets` octets of payload that follow from the seed.
    fn write(&self, octets: usize, seed: u64) -> Message {
        let longs = octets.saturating_sub(8) / 8;
        let mut buffer =
            WriteBuffer::new(self.source.clone(), octets as i64, Encoding::NATIVE).expect("a capacity");
        if octets >= 8 {
            buffer.stage(Type::Long, longs).expect("room");
            buffer.commit();
        }
        let message = buffer.finish().expect("memory").clone();
        for (i, word) in message.first_words()[2..][..longs].iter().enumerate() {
            word.store(seed.wrapping_mul(31).wrapping_add(i as u64), Relaxed);
        }
        message
    }

    fn check(message: &Message, octets: usize, seed: u64) {
        assert_eq!(message.primary_len(), octets);
        let longs = octets.saturating_sub(8) / 8;
        for (i, word) in message.first_words()[2..][..longs].iter().enumerate() {
            assert_eq!(
                word.load(Relaxed),
                seed.wrapping_mul(31).wrapping_add(i as u64),
                "long {i} of {longs}"
            );
        }
    }

    fn ring(&self, sizes: &[usize]) {
        let (me, all) = (self.world.rank(), self.world.size() as u32);
        let (next, before) = ((me + 1) % all, (me + all - 1) % all);
        for (round, octets) in sizes.iter().copied().enumerate() {
            let seed = |rank: u32| u64::from(rank) << 32 | round as u64;
            let sent = self
                .world
                .isend(&self.write(octets, seed(me)), next as i32, 5, Mode::Standard)
                .expect("isend");
            let from = RecvFrom { source: Some(before as i32), tag: Some(5) };
            let (_, message) = self.world.recv(from, octets, None, &mut Uninterruptible).expect("recv");
            Self::check(&message, octets, seed(before));
            sent.into_iter()
                .for_each(|id| drop(self.world.wait(id, None, &mut Uninterruptible).expect("wait")));
        }
        println!("{me}: done");
    }

    /// Two threads of each rank send to all ranks, and two receive.
    fn exchange(&self, count: u64) {
        let (me, all) = (self.world.rank(), self.world.size() as u32);
        let octets = |i: u64| [16, 264, 2048, 40_000][i as usize % 4];
        std::thread::scope(|scope| {
            for thread in 0..2 {
                scope.spawn(move || {
                    for i in 0..count {
                        for dest in 0..all {
                            let seed = u64::from(me) << 32 | i;
                            let message = self.write(octets(i), seed);
                            let mode = if i % 7 == 0 { Mode::Synchronous } else { Mode::Standard };
                            let tag = (i * 2 + thread) as i32;
                            self.world
                                .send(&message, dest as i32, tag, mode, &mut Uninterruptible)
                                .expect("send");
                        }
                    }
                });
                scope.spawn(move || {
                    for _ in 0..count * u64::from(all) {
                        let (status, message) =
                            self.world.recv(ANY, 40_000, None, &mut Uninterruptible).expect("recv");
                        let i = status.tag as u64 / 2;
                        Self::check(&message, octets(i), u64::from(status.source) << 32 | i);
                    }
                });
            }
        });
        self.world.barrier(&mut Uninterruptible).expect("barrier");
        println!("done");
    }

    /// All ranks meet in a barrier, and print their limits on open files.
    fn gathers(&self) {
        self.world.barrier(&mut Uninterruptible).expect("barrier");
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        println!("{}", limit.current.expect("a limit"));
    }

    /// A rank posts a receive and computes. A synchronous send of rank 0 completes meanwhile.
    fn computes(&self, peer: i32) {
        let until = |seconds| Instant::now() + Duration::from_secs(seconds);
        if self.world.rank() == 0 {
            self.world.barrier(&mut Uninterruptible).expect("barrier");
            let id = self
                .world
                .isend(&self.write(4096, 1), peer, 1, Mode::Synchronous)
                .expect("isend")
                .expect("pending");
            self.world
                .wait(id, Some(until(20)), &mut Uninterruptible)
                .expect("done while the other computes");
            println!("sent");
            self.world.send(&self.write(8, 2), peer, 2, Mode::Standard, &mut Uninterruptible).expect("send");
        } else if self.world.rank() as i32 != peer {
            self.world.barrier(&mut Uninterruptible).expect("barrier");
        } else {
            let from = |tag| RecvFrom { source: Some(0), tag: Some(tag) };
            let id = self.world.irecv(from(1), 4096, None).expect("irecv");
            self.world.barrier(&mut Uninterruptible).expect("barrier");
            // No call for longer than the other rank polls before it parks, and shorter than its deadline.
            let end = until(2);
            let mut sum = 0u64;
            while Instant::now() < end {
                sum = std::hint::black_box(sum + 1);
            }
            self.world.recv(from(2), 8, None, &mut Uninterruptible).expect("recv");
            self.world.wait(id, None, &mut Uninterruptible).expect("wait");
            println!("computed");
        }
    }

    /// Rank 1 is killed while rank 0 waits for it. Rank 2 does not wait for it.
    fn killed(&self) {
        self.world.barrier(&mut Uninterruptible).expect("barrier");
        match self.world.rank() {
            0 => {
                let from = RecvFrom { source: Some(1), tag: None };
                let id = self.world.irecv(from, 8, None).expect("irecv");
                let mut has_said = false;
                // The wait control is asked before each park.
                let mut patience = || {
                    if !std::mem::replace(&mut has_said, true) {
                        let message = self.write(8, 1);
                        let sent = self.world.isend(&message, 1, 1, Mode::Standard).expect("isend");
                        sent.into_iter().for_each(|id| self.world.detach(id));
                    }
                    true
                };
                let error = self.world.wait(id, None, &mut patience).expect_err("no rank sends");
                println!("0: {error}");
            }
            1 => {
                let from = RecvFrom { source: Some(0), tag: Some(1) };
                self.world.recv(from, 8, None, &mut Uninterruptible).expect("rank 0 waits");
                kill_this_process();
            }
            _ => println!("2: done"),
        }
    }
}
