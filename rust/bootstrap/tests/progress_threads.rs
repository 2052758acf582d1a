//! Tests of progress while the program computes: a send or a receive wakes the progress thread for the
//! remaining work. The progress threads here have no timer, so a missing wake-up reaches the deadline.
#![cfg(not(loom))]
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::thread::scope;
use std::time::{Duration, Instant};

use mpjdev_buffer::{Encoding, Message, SectionHeader, SlabSource, Type, WriteBuffer};
use mpjdev_engine::pool::HeapPool;
use mpjdev_engine::{Comm, Config, Mode, PacketEngine, RecvFrom, WaitControl};
use mpjdev_proto::datagram::reliable::rtt::Timing;
use mpjdev_proto::datagram::reliable::settings::Path;
use mpjdev_proto::datagram::reliable::time::SECOND;
use mpjdev_transport::net::progress_thread::{self, ProgressShared, ProgressTarget, Ticks};
use mpjdev_transport::{PacketSource, Progress, Transport, hybrid, tcp, udp};

/// A deadline that no test reaches.
const LONG: Duration = Duration::from_secs(60);
/// Tags of the tested messages, and of messages that only wake a thread.
const TAG: i32 = 1;
const NOTE: i32 = 2;

/// A rank, and its progress thread's state.
struct Rank {
    comm: Comm,
    progress: Arc<ProgressShared>,
}

fn wait_control() -> impl WaitControl {
    let deadline = Instant::now() + LONG;
    move || Instant::now() < deadline
}

fn message(len: usize) -> Message {
    let mut buffer =
        WriteBuffer::new(HeapPool::new(1 << 30), len as i64, Encoding::NATIVE).expect("a capacity");
    buffer.stage(Type::Byte, len - 8).expect("room");
    buffer.commit();
    buffer.finish().expect("memory").clone()
}

/// One of `ranks` ranks with its transport; the first has a progress thread.
fn rank(
    (number, size): (u32, usize),
    ends: (Arc<dyn Transport>, Box<dyn PacketSource>),
    target: &Arc<impl ProgressTarget>,
    source: Arc<dyn SlabSource>,
) -> Rank {
    let endpoint = Arc::new(PacketEngine::new(number, size as u32, config(size), ends, source));
    if number == 0 {
        progress_thread::start_with(Ticks::NEVER, "test", &endpoint, target).expect("a thread");
    }
    Rank { comm: Comm::world(endpoint), progress: target.progress().clone() }
}

fn config(ranks: usize) -> Config {
    Config::default().for_ranks(ranks).bounded()
}

fn over_tcp() -> Vec<Rank> {
    let source: Arc<dyn SlabSource> = HeapPool::new(1 << 30);
    let jobs = tcp::in_process::jobs(2, tcp::Terms::default()).expect("connections");
    let ranks = jobs.into_iter().map(|job| {
        let number = job.rank;
        let (transport, packet_source) = tcp::connect(job, &config(2), source.clone()).expect("a wire");
        rank((number, 2), (transport.clone(), Box::new(packet_source)), &transport, source.clone())
    });
    ranks.collect()
}

fn over_udp() -> Vec<Rank> {
    over_udp_with(udp::Terms::default()).into_iter().map(|(rank, _)| rank).collect()
}

fn over_udp_with(terms: udp::Terms) -> Vec<(Rank, Arc<udp::UdpTransport>)> {
    let source: Arc<dyn SlabSource> = HeapPool::new(1 << 30);
    let jobs = mpjdev_testing::udp_jobs(2, terms).expect("sockets");
    let ranks = jobs.into_iter().map(|job| {
        let number = job.rank;
        let (transport, packet_source) = udp::connect(job, &config(2), source.clone()).expect("a wire");
        let ends = (transport.clone() as Arc<dyn Transport>, Box::new(packet_source) as _);
        (rank((number, 2), ends, &transport, source.clone()), transport)
    });
    ranks.collect()
}

/// Two sites of two ranks each.
fn between_sites() -> Vec<Rank> {
    let private = HeapPool::new(1 << 30);
    let jobs = hybrid::in_process::jobs(4, 2, &config(4), tcp::Terms::default(), 4 << 20, &private);
    let ranks = jobs.expect("shared memory and connections").into_iter().map(|(job, pool)| {
        let number = job.inter.rank;
        let (transport, packet_source, inter) =
            hybrid::connect(job, &config(4), pool.clone()).expect("a wire");
        rank((number, 4), (transport, Box::new(packet_source)), &inter, pool)
    });
    ranks.collect()
}

impl Rank {
    fn number(&self) -> i32 {
        self.comm.rank() as i32
    }

    fn note(&self, dest: &Rank) {
        self.comm.send(&message(16), dest.number(), NOTE, Mode::Standard, &mut wait_control()).expect("sent");
        // The packet is sent behind earlier ones.
        self.look();
    }

    fn look(&self) {
        self.comm.iprobe(RecvFrom { source: None, tag: Some(NOTE) }).expect("no failure");
    }

    fn look_until(&self, is_over: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_over() {
            assert!(begun.elapsed() < LONG, "no thread makes progress");
            self.look();
        }
    }

    fn receive_note(&self) {
        let from = RecvFrom { source: None, tag: Some(NOTE) };
        self.comm.recv(from, 16, None, &mut wait_control()).expect("a note");
    }

    fn receive(&self, source: &Rank, len: usize) {
        let from = RecvFrom { source: Some(source.number()), tag: Some(TAG) };
        self.comm.recv(from, len, None, &mut wait_control()).expect("the message in time");
    }

    /// Polls until the progress thread rests: it has seen the program's calls, and no work is left.
    fn rest(&self, other: &Rank) {
        let begun = Instant::now();
        while !self.progress.is_resting() {
            assert!(begun.elapsed() < LONG, "the progress thread does not rest");
            if self.progress.is_waiting() {
                // It wakes only when octets arrive. More octets would keep an ack pending all the time.
                other.note(self);
                self.receive_note();
            } else {
                self.look();
            }
        }
    }
}

/// A case: one rank acts while its progress thread rests, and then computes. The other rank waits for the
/// effect.
type Case = fn(&Rank, &Rank);

fn send_leaves_without_the_sender(sender: &Rank, receiver: &Rank) {
    const LEN: usize = 3 << 20;
    sender.rest(receiver);
    sender
        .comm
        .send(&message(LEN), receiver.number(), TAG, Mode::Standard, &mut wait_control())
        .expect("sent");
    receiver.receive(sender, LEN);
}

fn isend_leaves_without_the_sender(sender: &Rank, receiver: &Rank) {
    const LEN: usize = 3 << 20;
    sender.rest(receiver);
    let sent = sender.comm.isend(&message(LEN), receiver.number(), TAG, Mode::Synchronous);
    receiver.receive(sender, LEN);
    if let Some(id) = sent.expect("begun") {
        sender.comm.wait(id, None, &mut wait_control()).expect("matched");
    }
}

fn receive_is_matched_without_the_receiver(receiver: &Rank, sender: &Rank) {
    const LEN: usize = 1000;
    receiver.rest(sender);
    let from = RecvFrom { source: Some(sender.number()), tag: Some(TAG) };
    let id = receiver.comm.irecv(from, LEN, None).expect("posted");
    sender
        .comm
        .send(&message(LEN), receiver.number(), TAG, Mode::Synchronous, &mut wait_control())
        .expect("matched in time");
    receiver.comm.wait(id, None, &mut wait_control()).expect("a message");
}

/// The octets have not arrived when the receive is posted, since the sender has no progress thread.
fn announced_message_is_read_without_the_receiver(receiver: &Rank, sender: &Rank) {
    const LEN: usize = 3 << 20;
    let sent = sender.comm.isend(&message(LEN), receiver.number(), TAG, Mode::Standard).expect("begun");
    let from = RecvFrom { source: Some(sender.number()), tag: Some(TAG) };
    receiver.comm.probe(from, &mut wait_control()).expect("an RTS");
    receiver.rest(sender);
    let id = receiver.comm.irecv(from, LEN, None).expect("posted");
    assert!(!receiver.progress.is_resting(), "no thread reads the message");
    sender.look_until(|| receiver.comm.packet_engine().is_some_and(|endpoint| !endpoint.has_pending()));
    receiver.comm.wait(id, None, &mut wait_control()).expect("a message");
    if let Some(id) = sent {
        sender.comm.wait(id, None, &mut wait_control()).expect("sent");
    }
}

/// Meanwhile a thread was parked for another receive.
fn receive_is_matched_after_a_sleep(receiver: &Rank, sender: &Rank) {
    const LEN: usize = 1000;
    receiver.rest(sender);
    let from = RecvFrom { source: Some(sender.number()), tag: Some(TAG) };
    let id = receiver.comm.irecv(from, LEN, None).expect("posted");
    scope(|threads| {
        threads.spawn(|| receiver.receive_note());
        let begun = Instant::now();
        while !(receiver.progress.is_resting() && receiver.progress.is_asleep()) {
            assert!(begun.elapsed() < LONG, "it does not sleep");
            std::thread::yield_now();
        }
        sender.note(receiver);
    });
    sender
        .comm
        .send(&message(LEN), receiver.number(), TAG, Mode::Synchronous, &mut wait_control())
        .expect("matched in time");
    receiver.comm.wait(id, None, &mut wait_control()).expect("a message");
}

/// An array of 16 MiB that is packed while it leaves, as a direct send of Java packs it. The last octets are
/// packed when the first packet has just left.
#[test]
fn directly_sent_array_leaves_while_the_sender_computes_over_tcp() {
    const COUNT: usize = 2 << 20;
    let ranks = over_tcp();
    let [sender, receiver] = &ranks[..] else { panic!("two ranks") };
    let mut message = Message::from_empty_slab(sender.comm.source().take(24 + 8 * COUNT).expect("memory"));
    message.write_headers_of(SectionHeader { element: Type::Long, count: COUNT });
    sender.rest(receiver);
    let sent = sender.comm.send_ahead(&message, receiver.number(), TAG, Mode::Standard).expect("begun");
    let sent = sent.expect("it is long");
    let (_, place) = message.sole_section(Type::Long, COUNT).expect("its headers are there");
    place.put(Encoding::NATIVE, 0..COUNT as i64);
    sent.packer.finish();
    sender.comm.send_packed(receiver.number());
    receiver.receive(sender, 8 + 8 * COUNT);
    if let Some(id) = sent.request {
        sender.comm.wait(id, None, &mut wait_control()).expect("matched");
    }
}

/// A thread of the receiver slept until the message arrived, and the program computes then. No timer of the
/// sender asks for the ack.
#[test]
fn ack_leaves_while_the_receiver_computes_over_udp() {
    let never = 600 * SECOND;
    let timing = Timing { floor: never, ceiling: never, initial: never, ..Timing::NO_PROGRESS };
    let path = Path { timing, ..udp::LOOPBACK };
    let ranks = over_udp_with(udp::Terms { path, ..udp::Terms::default() });
    let [(receiver, _), (sender, transport)] = &ranks[..] else { panic!("two ranks") };
    let has_acks = || transport.unacknowledged(0) == Some(0);
    receiver.rest(sender);
    scope(|threads| {
        threads.spawn(|| receiver.receive_note());
        sender.look_until(|| receiver.progress.is_resting() && receiver.progress.is_asleep() && has_acks());
        sender.note(receiver);
    });
    sender.look_until(has_acks);
    let counters = transport.counters(0).expect("a peer");
    assert_eq!((counters.probes, counters.retransmitted), (0, 0), "{counters:?}");
}

/// The cases of the transport whose first and last rank these are.
fn run(ranks: impl Fn() -> Vec<Rank>) {
    let cases: [Case; 5] = [
        send_leaves_without_the_sender,
        isend_leaves_without_the_sender,
        receive_is_matched_without_the_receiver,
        announced_message_is_read_without_the_receiver,
        receive_is_matched_after_a_sleep,
    ];
    for case in cases {
        let ranks = ranks();
        case(&ranks[0], ranks.last().expect("two ranks"));
    }
}

#[test]
fn progress_continues_while_the_program_computes_over_tcp() {
    run(over_tcp);
}

#[test]
fn progress_continues_while_the_program_computes_over_udp() {
    run(over_udp);
}

#[test]
fn progress_continues_while_the_program_computes_between_sites() {
    run(between_sites);
}
