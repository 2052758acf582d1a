//! Tests of the socket buffer of ranks over UDP: the kernel drops no datagram.
#![cfg(not(loom))]
#![forbid(unsafe_code)]

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::scope;
use std::time::{Duration, Instant};

use mpjdev_bootstrap::job;
use mpjdev_buffer::{Encoding, Message, ReadBuffer, SlabSource, WriteBuffer};
use mpjdev_engine::pool::HeapPool;
use mpjdev_engine::{Comm, Config, Mode, RecvFrom, WaitControl};
use mpjdev_proto::datagram::reliable::rtt::Timing;
use mpjdev_proto::datagram::reliable::settings::Path;
use mpjdev_proto::datagram::reliable::time::MILLISECOND;
use mpjdev_sim::{Chance, Impairment, Reorder};
use mpjdev_sys::datagram::options;
use mpjdev_transport::udp::Terms;

/// Half of the default size of a socket buffer: the system doubles it.
const DEFAULT_LEN: usize = 106_496;

/// A rank with its socket.
struct Rank {
    comm: Comm,
    socket: UdpSocket,
    source: Arc<dyn SlabSource>,
}

fn ranks(count: usize, terms: Terms) -> Vec<Rank> {
    ranks_of(mpjdev_testing::udp_jobs(count, terms).expect("sockets"))
}

fn ranks_of(jobs: Vec<mpjdev_transport::udp::Job>) -> Vec<Rank> {
    let source: Arc<dyn SlabSource> = HeapPool::new(1 << 30);
    let config = Config::default().for_ranks(jobs.len()).bounded();
    let rank = |job: mpjdev_transport::udp::Job| {
        let socket = job.socket.try_clone().expect("a socket");
        let (comm, _) = job::udp_rank(job, config.clone(), &source, None).expect("a rank");
        Rank { comm, socket, source: source.clone() }
    };
    jobs.into_iter().map(rank).collect()
}

impl Rank {
    /// A message of `count` numbers, each with its sender and its index.
    fn message(&self, count: usize, seed: usize) -> Message {
        let numbers: Vec<i64> = (0..count).map(|at| number(seed, at)).collect();
        let mut buffer =
            WriteBuffer::new(self.source.clone(), 8 + 8 * count as i64, Encoding::NATIVE).expect("a buffer");
        buffer.write(&numbers).expect("room");
        buffer.finish().expect("a message").clone()
    }

    fn send(&self, message: &Message, dest: i32, tag: i32) {
        self.comm.send(message, dest, tag, Mode::Standard, &mut wait_control()).expect("sent");
    }

    /// Receives such a message, and checks its contents.
    fn receive(&self, source: i32, tag: i32, count: usize, seed: usize) {
        let from = RecvFrom { source: Some(source), tag: Some(tag) };
        let received = self.comm.recv(from, 8 + 8 * count, None, &mut wait_control());
        let (_, message) = received.expect("a message");
        let mut buffer = ReadBuffer::new(self.source.clone(), 8 + 8 * count as i64).expect("a buffer");
        buffer.adopt(message);
        let mut numbers = vec![0; count];
        buffer.read(&mut numbers).expect("numbers");
        let wrong = (0..count).find(|at| numbers[*at] != number(seed, *at));
        assert_eq!(wrong, None, "of {count} numbers");
    }
}

/// Time after which a message counts as lost.
fn wait_control() -> impl WaitControl {
    let deadline = Instant::now() + Duration::from_secs(20);
    move || Instant::now() < deadline
}

fn number(seed: usize, at: usize) -> i64 {
    (seed as i64) << 32 | at as i64
}

/// Section 5.12, 8: all ranks send at any time, and the kernel drops no datagram with the default socket
/// buffer.
fn nothing_is_dropped(count: usize, times: usize) {
    const SENDERS: usize = 8;
    let ranks = ranks(SENDERS + 1, Terms { receive_buffer_len: DEFAULT_LEN, ..Terms::default() });
    let granted = options::buffers(ranks[0].socket.as_fd()).expect("the system reports it").receive_len;
    assert_eq!(granted, 2 * DEFAULT_LEN);
    scope(|threads| {
        for (rank, sender) in ranks.iter().enumerate().skip(1) {
            threads.spawn(move || {
                let message = sender.message(count, rank);
                (0..times).for_each(|_| sender.send(&message, 0, 1));
            });
        }
        for _ in 0..times {
            (1..=SENDERS).for_each(|rank| ranks[0].receive(rank as i32, 1, count, rank));
        }
    });
    for rank in &ranks {
        assert_eq!(options::memory(rank.socket.as_fd()).expect("the system reports it").drops, 0);
    }
}

#[test]
fn eight_senders_of_small_messages_never_fill_a_socket() {
    nothing_is_dropped(1, 2000);
}

#[test]
fn eight_senders_of_large_messages_never_fill_a_socket() {
    nothing_is_dropped(1 << 17, 6);
}

/// Datagrams are read to their predicted place. Other, repeated, late and lost datagrams damage no message,
/// also with interleaved messages of several threads.
#[test]
fn messages_are_whole_after_wrong_predictions() {
    let timing = Timing { floor: MILLISECOND, ..Timing::SHARED };
    let path = Path { timing, ..Path::PRIVATE };
    let disorder = Impairment {
        loss: Chance::percent(2),
        duplication: Chance::percent(3),
        reorder: Some(Reorder { distance: 3, chance: Chance::percent(5) }),
        ..Impairment::NONE
    };
    let disorders =
        [(8968, None, false), (8968, Some((disorder, 3)), false), (65504, Some((disorder, 4)), false)];
    for (len, impairment, is_checked) in disorders.into_iter().chain([(65504, Some((disorder, 5)), true)]) {
        let terms = Terms { datagram_len_max: len, path, is_checked, ..Terms::default() };
        let mut jobs = mpjdev_testing::udp_jobs(2, terms).expect("sockets");
        if let Some((impairment, seed)) = impairment {
            mpjdev_testing::impair(&mut jobs, impairment, seed);
        }
        let ranks = ranks_of(jobs);
        scope(|threads| {
            for (at, rank) in ranks.iter().enumerate() {
                let peer = 1 - at as i32;
                for tag in 1..4 {
                    // Messages of one datagram, of several, and by rendezvous, from both ranks.
                    let count = |i: usize| [10, 20_000, 150_000, 90_001][i % 4];
                    threads.spawn(move || {
                        (0..12).for_each(|i| rank.send(&rank.message(count(i), 100 * at + i), peer, tag));
                    });
                    threads.spawn(move || {
                        (0..12).for_each(|i| rank.receive(peer, tag, count(i), 100 * peer as usize + i));
                    });
                }
            }
        });
    }
}
