//! Tests of long messages over TCP and UDP, packed after they were sent and read before they have arrived.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mpjdev_buffer::{BufferError, Encoding, Message, Packer, SectionHeader, Type, WriteBuffer};
use mpjdev_proto::envelope::Selector;
use mpjdev_proto::impi::Dialect;
use mpjdev_transport::config::Config;
use mpjdev_transport::pool::HeapPool;
use mpjdev_transport::wait::Uninterruptible;
use mpjdev_transport::{PacketSource, PeerState, Transport, tcp, udp};

use crate::error::DeviceError;
use crate::operation::{Accept, FastRecv, Mode};
use crate::packet::engine::PacketEngine;
use crate::packet::posted_recv::ReceiveArgs;
use crate::request::RequestId;

const CONTEXT: u64 = 7;
/// Elements of a message, and its octets: several packets.
const COUNT: usize = 32 << 10;
const OCTETS: usize = 24 + 8 * COUNT;
/// Octets of a packet.
const PACKET: u32 = 4096;
/// Octets that may have arrived and are not reported yet: over UDP many datagrams are reported together.
const UNREPORTED: usize = (32 << 10) + PACKET as usize;
/// The offset of the elements.
const DATA: usize = 16;
/// A deadline that no step reaches.
const LONG: Duration = Duration::from_secs(60);

/// The transport of a job.
#[derive(Clone, Copy, Debug)]
enum Net {
    Tcp,
    /// TCP with packets that have room for an eager message of 4 MiB.
    OneSite,
    Udp,
}

const NETS: [Net; 2] = [Net::Tcp, Net::Udp];

type Ends = (Arc<dyn Transport>, Box<dyn PacketSource>);

impl Net {
    /// Both ends of two ranks.
    fn connect(self, config: &Config, pool: &Arc<HeapPool>) -> Vec<Ends> {
        match self {
            Net::Tcp => connect_tcp(tcp::Terms { maxdatalen: PACKET, ..tcp::Terms::default() }, config, pool),
            Net::OneSite => connect_tcp(tcp::Terms::of_one_site(Dialect::Final), config, pool),
            Net::Udp => {
                let (datagram_len_max, eager_max) = (PACKET as usize, PACKET);
                let terms = udp::Terms { datagram_len_max, eager_max, ..udp::Terms::default() };
                let jobs = udp::in_process::jobs(2, terms).expect("sockets").into_iter();
                jobs.map(|job| {
                    let (transport, source) = udp::connect(job, config, pool.clone()).expect("a transport");
                    (transport as _, Box::new(source) as _)
                })
                .collect()
            }
        }
    }
}

fn connect_tcp(terms: tcp::Terms, config: &Config, pool: &Arc<HeapPool>) -> Vec<Ends> {
    let jobs = tcp::in_process::jobs(2, terms).expect("connections").into_iter();
    jobs.map(|job| {
        let (transport, source) = tcp::connect(job, config, pool.clone()).expect("a transport");
        (transport as _, Box::new(source) as _)
    })
    .collect()
}

struct Job {
    sender: PacketEngine,
    receiver: PacketEngine,
}

impl Job {
    fn new(net: Net) -> Job {
        Job::with(net, Config::default())
    }

    fn with(net: Net, config: Config) -> Job {
        let pool = HeapPool::new(1 << 30);
        let ends = net.connect(&config, &pool);
        let mut ranks = (0..)
            .zip(ends)
            .map(|(rank, ends)| PacketEngine::new(rank, 2, config.clone(), ends, pool.clone()));
        let (sender, receiver) = (ranks.next().expect("two ranks"), ranks.next().expect("two ranks"));
        Job { sender, receiver }
    }

    /// Sends a message of the numbers from 0 on, with nothing packed.
    fn send_ahead(&self) -> Sent {
        let mut message = Message::from_empty_slab(self.sender.source().take(OCTETS).expect("memory"));
        message.write_headers_of(SectionHeader { element: Type::Long, count: COUNT });
        let sent = self.sender.send_ahead(1, CONTEXT, 1, &message, Mode::Standard).expect("no error");
        Sent { message, packer: sent.expect("it is long").packer }
    }

    /// Runs a step of the receiver in another thread, while this one sends what is packed.
    fn while_sending<R: Send>(&self, step: impl FnOnce(&PacketEngine) -> R + Send) -> R {
        std::thread::scope(|scope| {
            let receiver = scope.spawn(|| step(&self.receiver));
            let begun = Instant::now();
            while !receiver.is_finished() {
                assert!(begun.elapsed() < LONG, "the receiver still waits");
                self.sender.send_packed(1);
                std::thread::yield_now();
            }
            receiver.join().expect("no panic")
        })
    }

    /// A message whose receive returns before all octets have arrived.
    fn recv_begun(&self) -> Message {
        let message = self.while_sending(|receiver| recv(receiver, Accept::Packing)).expect("a message");
        assert!(message.is_packing(), "it has not arrived in full");
        message
    }

    fn await_packed(&self, message: &mut Message, octets: usize) -> Result<usize, DeviceError> {
        self.while_sending(|receiver| receiver.await_packed(0, message, octets, &mut Uninterruptible))
    }

    /// Waits until the receiver has consumed what was sent. Over UDP a later message may be received first.
    fn settle(&self) {
        let begun = Instant::now();
        while self.receiver.leftovers() != Default::default() {
            assert!(begun.elapsed() < LONG, "{:?} are left", self.receiver.leftovers());
            self.sender.send_packed(1);
        }
    }

    fn irecv(&self, capacity: usize) -> RequestId {
        self.receiver.irecv(args(capacity)).expect("it runs")
    }
}

fn selector() -> Selector {
    Selector { context: CONTEXT, source: Some(0), tag: Some(1) }
}

fn args(capacity: usize) -> ReceiveArgs {
    ReceiveArgs { selector: selector(), capacity, spare: None, members: None }
}

fn recv(receiver: &PacketEngine, accept: Accept) -> Result<Message, DeviceError> {
    let received = receiver.recv_posted(&FastRecv::Unavailable, args(OCTETS), accept, &mut Uninterruptible);
    received.map(|(_, message)| message)
}

struct Sent {
    message: Message,
    packer: Packer,
}

impl Sent {
    /// Packs the elements up to this one.
    fn pack(&self, end: usize) {
        let (_, place) = self.message.sole_section(Type::Long, COUNT).expect("its headers are there");
        place.put(Encoding::NATIVE, 0..end as i64);
        self.packer.publish(DATA + 8 * end);
    }

    fn finish(self) {
        self.pack(COUNT);
        self.packer.finish();
    }
}

/// The first `n` elements of a received message.
fn elements(message: &Message, n: usize) -> Vec<i64> {
    let mut elements = elements_of(message, COUNT);
    elements.truncate(n);
    elements
}

/// All elements of a message of `count`.
fn elements_of(message: &Message, count: usize) -> Vec<i64> {
    let (_, place) = message.sole_section(Type::Long, count).expect("one section");
    let mut elements = Vec::new();
    place.get(Encoding::NATIVE, |element: i64| elements.push(element));
    elements
}

fn numbers(n: usize) -> Vec<i64> {
    (0..n as i64).collect()
}

/// A message of longs and `objects` octets of objects, which the buffer may send in two physical ones.
fn with_objects(objects: usize) -> Message {
    let capacity = (OCTETS - 16) as i64;
    let mut buffer = WriteBuffer::new(HeapPool::new(1 << 30), capacity, Encoding::NATIVE).expect("a buffer");
    buffer.write(&numbers(COUNT)).expect("room");
    if objects > 0 {
        buffer.stage_secondary(objects).expect("memory").put_octets(&vec![7; objects]);
        buffer.grow_secondary(objects);
    }
    buffer.finish().expect("memory").clone()
}

#[test]
fn receive_reads_octets_that_were_packed_while_others_were_not() {
    for (net, is_late) in NETS.into_iter().flat_map(|net| [(net, false), (net, true)]) {
        let job = Job::new(net);
        let sent = job.send_ahead();
        if is_late {
            job.while_sending(|receiver| receiver.probe(&selector(), &[], &mut Uninterruptible))
                .expect("it has arrived");
        }
        sent.pack(COUNT / 2);
        let mut message = job.recv_begun();
        assert_eq!(message.sole_section(Type::Long, COUNT).expect("the headers are there").0, COUNT);
        let wanted = COUNT / 2 - UNREPORTED / 8;
        let there = job.await_packed(&mut message, DATA + 8 * wanted).expect("they were packed");
        assert!((DATA + 8 * wanted..=DATA + 4 * COUNT).contains(&there), "{there} octets");
        assert_eq!(elements(&message, wanted), numbers(wanted));
        sent.finish();
        assert_eq!(job.await_packed(&mut message, OCTETS), Ok(OCTETS));
        assert_eq!((message.is_packing(), elements(&message, COUNT)), (false, numbers(COUNT)));
        assert_eq!(message.check_sole_end(Type::Long), Ok(()));
        assert_eq!((job.sender.leftovers(), job.receiver.leftovers()), Default::default());
    }
}

#[test]
fn unpacked_message_within_the_eager_limit_is_a_rendezvous() {
    const COUNT: usize = 256 << 10;
    const OCTETS: usize = 24 + 8 * COUNT;
    let job = Job::new(Net::OneSite);
    let mut message = Message::from_empty_slab(job.sender.source().take(OCTETS).expect("memory"));
    message.write_headers_of(SectionHeader { element: Type::Long, count: COUNT });
    let sent = job.sender.send_ahead(1, CONTEXT, 1, &message, Mode::Standard).expect("no error");
    let packer = sent.expect("it is long").packer;
    let (_, place) = message.sole_section(Type::Long, COUNT).expect("its headers are there");
    place.put(Encoding::NATIVE, 0..COUNT as i64 / 2);
    packer.publish(DATA + 4 * COUNT);
    let mut received = job
        .while_sending(|receiver| {
            receiver.recv_posted(&FastRecv::Unavailable, args(OCTETS), Accept::Packing, &mut Uninterruptible)
        })
        .expect("a message")
        .1;
    assert!(received.packed_len().is_some_and(|len| len <= DATA + 4 * COUNT), "{:?}", received.packed_len());
    place.put(Encoding::NATIVE, 0..COUNT as i64);
    packer.finish();
    assert_eq!(job.await_packed(&mut received, OCTETS), Ok(OCTETS));
    assert_eq!(elements_of(&received, COUNT), numbers(COUNT));
}

#[test]
fn receive_of_all_octets_is_pending_until_the_last_one_is_packed() {
    for net in NETS {
        let job = Job::new(net);
        let (id, sent) = (job.irecv(OCTETS), job.send_ahead());
        sent.pack(COUNT - 1);
        let soon = Instant::now() + Duration::from_millis(20);
        let result = job.while_sending(|receiver| receiver.wait(id, Some(soon), &mut Uninterruptible));
        assert!(matches!(result, Err(DeviceError::TimedOut { .. })), "{result:?}");
        assert!(!job.receiver.is_done(id));
        sent.finish();
        let done = job.while_sending(|receiver| receiver.wait(id, None, &mut Uninterruptible));
        let message = done.expect("no error").message.expect("a receive");
        assert_eq!((message.is_packing(), elements(&message, COUNT)), (false, numbers(COUNT)));
    }
}

#[test]
fn probe_sees_length_type_and_count_of_a_message_that_is_not_packed() {
    for net in NETS {
        let job = Job::new(net);
        let sent = job.send_ahead();
        let seen = job.while_sending(|receiver| receiver.probe(&selector(), &[], &mut Uninterruptible));
        let seen = seen.expect("it has arrived");
        let section = SectionHeader { element: Type::Long, count: COUNT };
        assert_eq!((seen.size, seen.first), (OCTETS - 16, Some(section)));
        sent.finish();
    }
}

#[test]
fn too_long_message_is_truncated() {
    for net in NETS {
        let job = Job::new(net);
        let (id, sent) = (job.irecv(100), job.send_ahead());
        sent.finish();
        let result = job.while_sending(|receiver| receiver.wait(id, None, &mut Uninterruptible));
        assert!(
            matches!(result, Err(DeviceError::Truncated { needed, .. }) if needed == OCTETS - 16),
            "{result:?}"
        );
    }
}

#[test]
fn receives_fail_when_the_sender_ends_before_it_has_packed_the_message() {
    for net in NETS {
        let job = Job::new(net);
        let sent = job.send_ahead();
        sent.pack(COUNT / 2);
        let mut message = job.recv_begun();
        let pending = job.irecv(OCTETS);
        let Job { sender, receiver } = job;
        drop(sender);
        for result in [
            receiver.await_packed(0, &mut message, OCTETS, &mut Uninterruptible).map(|_| ()),
            receiver.wait(pending, None, &mut Uninterruptible).map(|_| ()),
        ] {
            assert!(matches!(result, Err(DeviceError::PeerFailed { rank: 0, .. })), "{result:?}");
        }
        assert_eq!(receiver.leftovers(), Default::default());
    }
}

#[test]
fn receive_fails_when_the_sender_stops_packing() {
    for net in NETS {
        let job = Job::new(net);
        let sent = job.send_ahead();
        sent.pack(COUNT / 2);
        let mut message = job.recv_begun();
        drop(sent);
        let result = job.await_packed(&mut message, OCTETS);
        assert!(matches!(result, Err(DeviceError::PeerFailed { rank: 0, .. })), "{result:?}");
        assert!(matches!(job.sender.transport.peer(1), PeerState::Failed(why) if why.contains("pack")));
    }
}

#[test]
fn interrupted_wait_for_the_rest_ends_after_its_patience_and_the_rest_is_consumed() {
    for net in NETS {
        let job = Job::new(net);
        let sent = job.send_ahead();
        sent.pack(COUNT / 2);
        let mut message = job.recv_begun();
        let result = job.receiver.await_packed(0, &mut message, OCTETS, &mut || false);
        assert_eq!(result, Err(DeviceError::Interrupted));
        drop(message);
        sent.finish();
        job.send_ahead().finish();
        let next = job.while_sending(|receiver| recv(receiver, Accept::Packed)).expect("the next message");
        assert_eq!(elements(&next, COUNT), numbers(COUNT));
        job.settle();
    }
}

/// The receive returns before it can know of the second half, which is consumed all the same.
#[test]
fn message_in_two_halves_is_named_at_its_end_and_consumed() {
    for net in NETS {
        let job = Job::new(net);
        let objects = 3 * OCTETS;
        let message = with_objects(objects);
        assert!(message.is_split());
        job.sender.isend(1, CONTEXT, 1, &message, Mode::Standard).expect("no error");
        let mut message = job.while_sending(|receiver| recv(receiver, Accept::Packing)).expect("a message");
        if message.is_packing() {
            assert_eq!(job.await_packed(&mut message, OCTETS), Ok(OCTETS));
            let expected =
                BufferError::NotSole { wanted: Type::Long, sections: 1, secondary: objects as u64 };
            assert_eq!(message.check_sole_end(Type::Long), Err(expected));
        }
        let next = with_objects(0);
        job.sender.isend(1, CONTEXT, 1, &next, Mode::Standard).expect("no error");
        let next = job.while_sending(|receiver| recv(receiver, Accept::Packed)).expect("the next message");
        assert_eq!(elements(&next, COUNT), numbers(COUNT));
        job.settle();
    }
}

/// A thread that reads a message sleeps on a futex of its own while another one sleeps on the transport.
#[test]
fn reader_is_woken_while_another_thread_of_its_rank_sleeps_on_the_transport() {
    for net in NETS {
        let job = Job::with(net, Config { spins: 0, yields: 0, slice: 2 * LONG, ..Config::default() });
        let never = job
            .receiver
            .irecv(ReceiveArgs { selector: Selector { tag: Some(2), ..selector() }, ..args(OCTETS) });
        let never = never.expect("it runs");
        std::thread::scope(|scope| {
            let other = scope.spawn(|| job.receiver.wait(never, None, &mut Uninterruptible));
            for _ in 0..10 {
                let sent = job.send_ahead();
                sent.pack(COUNT / 2);
                let mut message = job.recv_begun();
                sent.finish();
                assert_eq!(job.await_packed(&mut message, OCTETS), Ok(OCTETS));
            }
            assert!(!other.is_finished());
            assert_eq!(job.receiver.cancel(never), Ok(true));
            assert_eq!(other.join().expect("no panic").map(|_| ()), Err(DeviceError::Cancelled));
        });
    }
}
