//! Tests of ranks over UDP sockets: packets, counters, losses, ends.
#![cfg(not(loom))]
#![forbid(unsafe_code)]

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::scope;
use std::time::{Duration, Instant};

use mpjdev_buffer::{Encoding, Message, SlabSource, WriteBuffer};
use mpjdev_engine::pool::HeapPool;
use mpjdev_engine::stats::Datagrams;
use mpjdev_engine::{Comm, Config, DeviceError, Mode, PacketEngine, RecvFrom, Uninterruptible};
use mpjdev_proto::datagram::header::Header as Fixed;
use mpjdev_proto::datagram::layout::HEAD_LEN_MAX;
use mpjdev_proto::datagram::packet::Packet;
use mpjdev_proto::datagram::reliable::rtt::Timing;
use mpjdev_proto::datagram::reliable::settings::{Path, Settings};
use mpjdev_proto::datagram::reliable::time::SECOND;
use mpjdev_proto::datagram::sequence::FullSequence;
use mpjdev_sim::{Chance, Impairment};
use mpjdev_sys::datagram::options;
use mpjdev_transport::net::progress_thread;
use mpjdev_transport::udp::{Job, Terms, UdpTransport, connect, prepare};
use mpjdev_transport::{PacketSource, Transport};

mod deaths;
mod hostile;
mod relay;
mod tampered;

/// A rank with its transport.
struct Rank {
    comm: Comm,
    transport: Arc<UdpTransport>,
}

/// Whether ranks have a progress thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProgressThread {
    Runs,
    Missing,
}

/// The limit on a finish. One that reaches it fails the test.
const LINGER: Duration = Duration::from_secs(15);

fn ranks(count: usize, terms: Terms, progress_thread: ProgressThread) -> Vec<Rank> {
    ranks_of(mpjdev_testing::udp_jobs(count, terms).expect("sockets"), progress_thread)
}

/// Ranks with a simulated network between them.
fn impaired(count: usize, impairment: Impairment, seed: u64) -> Vec<Job> {
    let mut jobs = mpjdev_testing::udp_jobs(count, Terms::default()).expect("sockets");
    mpjdev_testing::impair(&mut jobs, impairment, seed);
    jobs
}

fn ranks_of(jobs: Vec<Job>, progress_thread: ProgressThread) -> Vec<Rank> {
    let finish_timeout = LINGER;
    ranks_with(jobs, progress_thread, Config { finish_timeout, ..Config::default() })
}

fn ranks_with(jobs: Vec<Job>, progress_thread: ProgressThread, config: Config) -> Vec<Rank> {
    let count = jobs[0].members.len();
    let source: Arc<dyn SlabSource> = HeapPool::new(1 << 30);
    let config = config.for_ranks(count).bounded();
    let rank = |mut job: Job| {
        let rank = job.rank;
        // This distinguishes a finish that waits until then from one on a busy machine.
        job.terms.linger = config.finish_timeout;
        let (transport, packet_source) = connect(job, &config, source.clone()).expect("a wire");
        let ends: (Arc<dyn Transport>, Box<dyn PacketSource>) = (transport.clone(), Box::new(packet_source));
        let endpoint = Arc::new(PacketEngine::new(rank, count as u32, config.clone(), ends, source.clone()));
        if progress_thread == ProgressThread::Runs {
            progress_thread::start("udp", &endpoint, &transport).expect("a thread");
        }
        Rank { comm: Comm::world(endpoint), transport }
    };
    jobs.into_iter().map(rank).collect()
}

fn message(count: usize, first: f64) -> Message {
    let source: Arc<dyn SlabSource> = HeapPool::new(1 << 20);
    let mut buffer = WriteBuffer::new(source, 8 + 8 * count as i64, Encoding::NATIVE).expect("a buffer");
    buffer.write(&vec![first; count]).expect("room");
    buffer.finish().expect("a message").clone()
}

impl Rank {
    fn send(&self, message: &Message, dest: i32) {
        self.comm.send(message, dest, 1, Mode::Standard, &mut Uninterruptible).expect("sent");
    }

    fn receive(&self, source: i32) -> Result<Message, DeviceError> {
        self.receive_up_to(source, 1 << 16)
    }

    fn counted(&self) -> Datagrams {
        self.comm.stats().datagrams.expect("they are counted").sum()
    }

    fn receive_up_to(&self, source: i32, capacity: usize) -> Result<Message, DeviceError> {
        let from = RecvFrom { source: Some(source), tag: Some(1) };
        let deadline = Instant::now() + Duration::from_secs(40);
        let mut wait_control = || Instant::now() < deadline;
        self.comm.recv(from, capacity, None, &mut wait_control).map(|(_, message)| message)
    }
}

fn octets(message: &Message) -> Vec<u8> {
    let mut octets = vec![0; message.logical_len()];
    message.copy_logical(0, &mut octets);
    octets
}

/// Section 5.12, 6 of the notes: every ack is piggybacked on an answer, and no packet is retransmitted. The
/// timers are too long to expire.
#[test]
fn ping_pong_sends_no_packets_but_its_messages() {
    const ROUNDS: u64 = 2000;
    let never = 600 * SECOND;
    let timing = Timing { floor: never, ceiling: never, initial: never, ..Timing::SHARED };
    let path = Path { timing, max_ack_delay: never, ..Path::PRIVATE };
    let ranks = ranks(2, Terms { path, ..Terms::default() }, ProgressThread::Missing);
    scope(|threads| {
        for (at, rank) in ranks.iter().enumerate() {
            threads.spawn(move || {
                let peer = 1 - at as i32;
                let ball = message(1, 1.0);
                for _ in 0..ROUNDS {
                    if at == 0 {
                        rank.send(&ball, peer);
                    }
                    rank.receive(peer).expect("the ball");
                    if at == 1 {
                        rank.send(&ball, peer);
                    }
                }
            });
        }
    });
    for (rank, peer) in [(&ranks[0], 1), (&ranks[1], 0)] {
        let counters = rank.transport.counters(peer).expect("a peer");
        assert_eq!((counters.sent, counters.received), (ROUNDS, ROUNDS), "{counters:?}");
        assert_eq!((counters.pure_acks, counters.retransmitted), (0, 0), "{counters:?}");
        let counted = rank.counted();
        assert_eq!((counted.messages_sent, counted.messages_received), (ROUNDS, ROUNDS), "{counted:?}");
        assert_eq!(counted.send_calls, ROUNDS, "{counted:?}");
    }
}

/// The counters of copies: the kernel copies each octet once, and most of them into the message itself.
#[test]
fn large_messages_are_copied_by_the_kernel_only() {
    const COUNT: u64 = 20;
    let ranks = ranks(2, Terms::default(), ProgressThread::Runs);
    let large = message(1 << 16, 1.0);
    scope(|threads| {
        threads.spawn(|| (0..COUNT).for_each(|_| ranks[0].send(&large, 1)));
        (0..COUNT).for_each(|_| drop(ranks[1].receive_up_to(0, 1 << 20).expect("a message")));
    });
    let (sent, received) = (ranks[0].counted(), ranks[1].counted());
    let octets = COUNT * large.logical_len() as u64;
    assert_eq!((sent.messages_sent, sent.data_sent), (COUNT, octets), "{sent:?}");
    assert_eq!((received.messages_received, received.data_received), (COUNT, octets), "{received:?}");
    // A retransmitted packet is copied again.
    let again = 1.0 + sent.retransmitted as f64 / sent.packets_sent as f64;
    let copies = (sent.copies_sent().expect("some"), received.copies_received().expect("some"));
    assert!(copies.0 >= 1.0 && copies.0 < again + 0.01, "{copies:?}, {sent:?}");
    assert!(copies.1 < 0.5 || received.duplicates > 0, "{copies:?}, {received:?}");
}

/// Only the counters show that datagrams were lost.
#[test]
fn lost_datagrams_are_retransmitted() {
    let impairment = Impairment { loss: Chance::percent(10), ..Impairment::NONE };
    let ranks = ranks_of(impaired(2, impairment, 7), ProgressThread::Runs);
    let (sender, receiver) = (&ranks[0], &ranks[1]);
    scope(|threads| {
        threads.spawn(|| (0..500).for_each(|i| sender.send(&message(1 + i % 4000, i as f64), 1)));
        for i in 0..500 {
            let received = receiver.receive(0).expect("a message");
            assert_eq!(octets(&received), octets(&message(1 + i % 4000, i as f64)), "message {i}");
        }
    });
    let counters = sender.transport.counters(1).expect("a peer");
    assert!(counters.retransmitted > 0, "{counters:?}");
}

/// Section 5.12, 8: all ranks may send at any time, and the kernel drops nothing.
#[test]
fn many_senders_never_fill_a_small_socket() {
    const SENDERS: usize = 6;
    // The default size of a socket buffer.
    let terms = Terms { receive_buffer_len: 106_496, ..Terms::default() };
    let ranks = ranks(SENDERS + 1, terms, ProgressThread::Runs);
    scope(|threads| {
        for (rank, sender) in ranks.iter().enumerate().skip(1) {
            threads.spawn(move || {
                let messages = [message(1, rank as f64), message(1000, rank as f64), message(5000, 0.0)];
                (0..300).for_each(|i| sender.send(&messages[i % 3], 0));
            });
        }
        for _ in 0..300 {
            (1..=SENDERS).for_each(|rank| drop(ranks[0].receive(rank as i32).expect("a message")));
        }
    });
    for rank in &ranks {
        assert_eq!(rank.transport.drops().expect("the system reports it"), 0);
    }
}

/// Datagrams of an unauthenticated client do not count as packets of a peer. One reset answers them, and the
/// ranks continue.
#[test]
fn unauthenticated_datagrams_change_nothing_and_are_answered_rarely() {
    // With two ranks, the system filters datagrams of other senders.
    let ranks = ranks(3, Terms::default(), ProgressThread::Runs);
    let unknown_client = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let begun = Instant::now();
    let to = ranks[0].transport.udp_socket().local_addr().expect("an address");
    let settings = ranks[0].transport.settings(1).expect("a peer");
    // A message with the connection id of rank 1.
    let mut packet = Packet { header: Fixed { len: 8, tag: 1, ..Fixed::default() }, ..Packet::default() };
    packet.number(Some(settings.first_theirs), None);
    packet.extension.connection = settings.ours;
    let mut octets = [0; HEAD_LEN_MAX + 8];
    let len = packet.emit(&[7; 8], &mut octets).expect("a packet");
    for number in 0..100 {
        // First the id of rank 1, then unknown ids.
        packet.extension.connection = settings.ours ^ number;
        packet.emit(&[7; 8], &mut octets).expect("a packet");
        unknown_client.send_to(&octets[..len], to).expect("sent");
        unknown_client.send_to(&octets[..len - 1], to).expect("sent");
        unknown_client.send_to(&[], to).expect("sent");
        unknown_client.send_to(&[0xff; 1000], to).expect("sent");
    }
    ranks[1].send(&message(3, 3.0), 0);
    let received = ranks[0].receive(1).expect("a message");
    assert_eq!(self::octets(&received), self::octets(&message(3, 3.0)));
    unknown_client.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let mut answer = [0; 100];
    let len = unknown_client.recv(&mut answer).expect("an answer");
    unknown_client.set_nonblocking(true).expect("a socket");
    let more = std::iter::from_fn(|| unknown_client.recv(&mut [0; 100]).ok()).count() as u128;
    assert!(more <= begun.elapsed().as_millis() / 100, "{more} more after {:?}", begun.elapsed());
    let (answer, _) = Packet::parse(&answer[..len]).expect("a packet");
    assert!(answer.extension.rst && answer.extension.connection == settings.ours, "{answer:?}");
    let counters = ranks[0].transport.counters(1).expect("a peer");
    assert_eq!((counters.stale, counters.violations), (0, 0), "{counters:?}");
    let counted = ranks[0].counted();
    assert!(counted.malformed > 0 && counted.unknown > 0, "{counted:?}");
}

/// A reset answers the packets to a closed socket.
#[test]
fn rank_that_ends_without_finish_fails_for_its_peers() {
    let mut ranks = ranks(2, Terms::default(), ProgressThread::Runs);
    ranks[1].send(&message(1, 1.0), 0);
    ranks[0].receive(1).expect("a message");
    let begun = Instant::now();
    drop(ranks.pop());
    let error = ranks[0].receive(1).expect_err("the rank has ended");
    assert!(matches!(error, DeviceError::PeerFailed { rank: 1, .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(25), "the receive fails late: {:?}", begun.elapsed());
}

/// Two ranks finish at the same time, and a third one later, with and without losses.
#[test]
fn ranks_finish_without_waiting_for_the_deadline() {
    let impairment = Impairment { loss: Chance::percent(10), ..Impairment::NONE };
    for impairment in [Impairment::NONE, impairment] {
        let ranks = ranks_of(impaired(3, impairment, 3), ProgressThread::Runs);
        let begun = Instant::now();
        scope(|threads| {
            for rank in &ranks[1..] {
                threads.spawn(move || {
                    rank.send(&message(4000, 1.0), 0);
                    assert_eq!(rank.comm.finish(&mut Uninterruptible), Ok(()));
                });
            }
            (1..3).for_each(|rank| drop(ranks[0].receive(rank).expect("a message")));
            for rank in 1..3 {
                let error = ranks[0].receive(rank).expect_err("nothing follows");
                assert_eq!(error, DeviceError::PeerFinished { rank: rank as u32 });
            }
        });
        assert_eq!(ranks[0].comm.finish(&mut Uninterruptible), Ok(()));
        assert!(begun.elapsed() < Duration::from_secs(12), "{impairment:?}: {:?}", begun.elapsed());
    }
}

#[test]
fn lengths_that_no_datagram_can_have_are_refused() {
    let source: Arc<dyn SlabSource> = HeapPool::new(1 << 20);
    for datagram_len_max in [0, 40, 65_508, 1 << 20] {
        let terms = Terms { datagram_len_max, ..Terms::default() };
        let ranks = mpjdev_testing::udp_jobs(2, terms).map_err(|error| error.to_string()).and_then(|jobs| {
            mpjdev_testing::udp(jobs, Config::default(), &source).map_err(|error| error.to_string())
        });
        let refused = ranks.expect_err("no such datagrams");
        assert!(refused.contains(&datagram_len_max.to_string()), "{refused}");
    }
}

/// The socket has room for one packet of each peer, so each window is one packet. Each rank sends short and
/// long messages to all others and receives theirs.
#[test]
fn many_ranks_share_a_socket_with_room_for_a_datagram_of_each() {
    const RANKS: usize = 24;
    let terms = Terms { datagram_len_max: 1472, receive_buffer_len: RANKS * 2048, ..Terms::default() };
    let ranks = ranks(RANKS, terms, ProgressThread::Runs);
    let settings = |rank: &Rank| (0..RANKS as u32).filter_map(|peer| rank.transport.settings(peer)).collect();
    let all: Vec<Vec<Settings>> = ranks.iter().map(settings).collect();
    let windows = all.iter().flatten().map(|settings| settings.receive_window);
    assert!(windows.max() == Some(1), "one packet of each peer");
    let messages = |rank: usize| [1, 400, 3000].map(|count| message(count, rank as f64));
    scope(|threads| {
        for (at, rank) in ranks.iter().enumerate() {
            threads.spawn(move || {
                let messages_of = |rank: usize| messages(rank).map(|message| octets(&message));
                for step in 1..RANKS {
                    let (dest, source) = ((at + step) % RANKS, (at + RANKS - step) % RANKS);
                    messages(at).iter().for_each(|message| rank.send(message, dest as i32));
                    let received = [(); 3].map(|()| rank.receive(source as i32).expect("a message"));
                    assert_eq!(received.map(|message| octets(&message)), messages_of(source));
                }
            });
        }
    });
}
