//! Tests over shared memory: a rank exceeds its credit, ends, or clears the doorbells of another.

use std::sync::Arc;

use mpjdev_buffer::{Encoding, Message, SlabError, SlabSource, Type, WriteBuffer};
use mpjdev_proto::envelope::Selector;
use mpjdev_transport::config::{Config, ENVELOPE_LEN};
use mpjdev_transport::pool::HeapPool;
use mpjdev_transport::shm::{self, Death, SegmentPool, ShmSource, ShmTransport, StatusPage};
use mpjdev_transport::{Header, Incoming, Kind, Outgoing, PacketSource, Transport};

use crate::error::DeviceError;
use crate::operation::{Accept, FastRecv, Mode, StartedRecv};
use crate::packet::engine::PacketEngine;
use crate::packet::posted_recv::ReceiveArgs;
use crate::request::RequestId;

/// A rank without its engine.
pub(super) struct Rank {
    rank: u32,
    transport: Arc<ShmTransport>,
    packet_source: ShmSource,
    pool: Arc<SegmentPool>,
}

/// Octets of a segment's slabs.
const SLABS: usize = 4 << 20;

fn config() -> Config {
    Config { credit: 1 << 16, ..Config::default() }
}

pub(super) fn ranks_and_status_page(count: usize) -> (Vec<Rank>, StatusPage) {
    let config = config();
    let create = |rank| shm::create(rank, count, SLABS, &config, HeapPool::new(1 << 30)).expect("memory");
    let pools: Vec<_> = (0..count as u32).map(create).collect();
    let status_page = StatusPage::create(count).expect("memory");
    let connect = |(rank, pool): (u32, &Arc<SegmentPool>)| {
        let files = pools.iter().map(|pool| pool.share().expect("a descriptor")).collect();
        let job = shm::Job::open(status_page.files(), files).expect("the pages");
        let (transport, packet_source) = shm::connect(rank, &config, pool.clone(), Arc::new(job));
        Rank { rank, transport, packet_source, pool: pool.clone() }
    };
    ((0..).zip(&pools).map(connect).collect(), status_page)
}

fn ranks(count: usize) -> Vec<Rank> {
    ranks_and_status_page(count).0
}

fn message(source: Arc<dyn SlabSource>, octets: usize) -> Message {
    let mut buffer = WriteBuffer::new(source, octets as i64, Encoding::NATIVE).expect("a capacity");
    buffer.stage(Type::Long, (octets - 8) / 8).expect("room");
    buffer.commit();
    buffer.finish().expect("memory").clone()
}

impl Rank {
    fn send(&self, kind: Kind, dest: u32, octets: usize) -> bool {
        let header = Header { kind, ..Header::default() };
        self.transport.try_send(dest, header, Outgoing::Message(&message(self.pool.clone(), octets)))
    }

    /// The rank with its engine.
    pub(super) fn into_endpoint(self, size: u32) -> PacketEngine {
        self.into_endpoint_with(size, config())
    }

    pub(super) fn into_endpoint_with(self, size: u32, config: Config) -> PacketEngine {
        let ends: (Arc<dyn Transport>, Box<dyn PacketSource>) =
            (self.transport, Box::new(self.packet_source));
        PacketEngine::new(self.rank, size, config, ends, self.pool)
    }

    /// Lengths in octets of the received packets.
    fn receive(&mut self) -> Vec<usize> {
        let mut lens = Vec::new();
        self.packet_source.receive(100, &mut |_, _, body| {
            lens.push(match body {
                Incoming::Inline(_, len) => len,
                Incoming::Reference(payload) => payload.len(),
                Incoming::Nothing | Incoming::Lost(_) => 0,
            });
            Ok(())
        });
        lens
    }
}

#[test]
fn peer_that_exceeds_its_credit_is_ignored() {
    let mut ranks = ranks(2);
    let flooder = ranks.pop().expect("two ranks");
    let flooded = ranks.pop().expect("one rank").into_endpoint(2);
    for _ in 0..10_000 {
        flooder.send(Kind::Eager, 0, 64);
        flooded.leftovers();
    }
    let (unexpected, _) = flooded.leftovers();
    // 80 octets and 64 for the packet, and those of a longest record beyond the credit once.
    assert!(((1 << 16) / 144..(1 << 16) / 144 + 20).contains(&unexpected), "{unexpected} messages");
    let why = "the shared memory of rank 1 is damaged: more messages than its credit allows".to_owned();
    assert_eq!(flooded.transport.abort(), Some((0, why)));
}

#[test]
fn peer_with_too_many_unmatched_messages_is_ignored() {
    let config = Config { envelopes: 100 * ENVELOPE_LEN, ..config() };
    let limit = config.unmatched_limit() as usize;
    let mut ranks = ranks(2);
    let flooder = ranks.pop().expect("two ranks");
    let flooded = ranks.pop().expect("one rank").into_endpoint_with(2, config);
    for sent in 1..=limit + 50 {
        flooder.send(Kind::Synchronous, 0, 64);
        assert_eq!(flooded.leftovers().0, sent.min(limit));
    }
    let why = "the shared memory of rank 1 is damaged: more unmatched messages than may wait past its credit";
    assert_eq!(flooded.transport.abort(), Some((0, why.to_owned())));
}

#[test]
fn message_without_room_in_the_segment_is_refused_with_its_length() {
    let mut ranks = ranks(2);
    let pool = ranks[0].pool.clone();
    let sender = ranks.remove(0).into_endpoint(2);
    let foreign = message(HeapPool::new(1 << 20), 5000);
    let send = |mode| sender.isend(1, 0, 1, &foreign, mode);
    let held: Vec<_> = std::iter::from_fn(|| pool.own(5000)).collect();
    for mode in [Mode::Standard, Mode::Synchronous] {
        let error = send(mode).expect_err("there is no place");
        assert!(matches!(error, DeviceError::Memory(SlabError::Shared { asked: 5016.. })), "{error}");
    }
    // A message that needs no memory of the segment is sent.
    assert_eq!(sender.isend(1, 0, 1, &message(HeapPool::new(1 << 20), 64), Mode::Standard), Ok(None));
    drop(held);
    assert_eq!(send(Mode::Standard), Ok(None));
    assert_eq!(ranks[0].receive(), [80, 5016]);
}

/// A rank with more messages for another one than that one's queue holds. The receiver has taken some of
/// them.
fn sender_that_waits_for_room() -> (PacketEngine, Rank, Vec<RequestId>) {
    let mut ranks = ranks(2);
    let mut receiver = ranks.pop().expect("two ranks");
    let sender = ranks.pop().expect("one rank").into_endpoint(2);
    let letter = message(sender.source().clone(), 64);
    let send = || sender.isend(1, 0, 1, &letter, Mode::Standard).expect("it runs");
    let sends = (0..2000).filter_map(|_| send()).collect();
    sender.leftovers();
    assert!(!sender.transport.is_ready(), "there is no room");
    assert_eq!(receiver.receive().len(), 100);
    assert!(sender.transport.is_ready(), "there is room");
    (sender, receiver, sends)
}

#[test]
fn sender_stops_waiting_for_room_at_a_finished_rank() {
    let (sender, mut receiver, _) = sender_that_waits_for_room();
    receiver.transport.finish();
    sender.leftovers();
    receiver.receive();
    assert!(!sender.transport.is_ready(), "it would never stop polling");
}

#[test]
fn sender_stops_waiting_for_room_for_cancelled_messages() {
    let (sender, mut receiver, sends) = sender_that_waits_for_room();
    for id in sends {
        let _ = sender.cancel(id);
    }
    receiver.receive();
    assert!(!sender.transport.is_ready(), "it would never stop polling");
}

/// Three ranks. The last one receives, and the one before it keeps the receiver's doorbells cleared.
struct ClearedDoorbells {
    sender: PacketEngine,
    receiver: PacketEngine,
    hostile: Rank,
    status_page: StatusPage,
}

impl ClearedDoorbells {
    fn new() -> ClearedDoorbells {
        let (mut ranks, status_page) = ranks_and_status_page(3);
        let receiver = ranks.pop().expect("three ranks").into_endpoint(3);
        let hostile = ranks.pop().expect("two ranks");
        let sender = ranks.pop().expect("one rank").into_endpoint(3);
        ClearedDoorbells { sender, receiver, hostile, status_page }
    }

    fn send(&self) {
        let letter = message(self.sender.source().clone(), 64);
        assert_eq!(self.sender.isend(2, 7, 1, &letter, Mode::Standard), Ok(None));
        self.hostile.transport.clear_doorbells(2);
    }

    fn receive(&self, source: Option<u32>) -> RequestId {
        let selector = Selector { context: 7, source, tag: None };
        let members = source.is_none().then(|| vec![0, 1, 2].into());
        let args = ReceiveArgs { selector, capacity: 100, spare: None, members };
        self.receiver.irecv(args).expect("it runs")
    }

    fn source_of(&self, id: RequestId) -> Result<Option<u32>, DeviceError> {
        Ok(self.receiver.test(id)?.and_then(|done| done.envelope).map(|envelope| envelope.source))
    }
}

#[test]
fn receive_posted_before_its_sender_finished_gets_the_message_whose_doorbell_was_cleared() {
    for source in [Some(0), None] {
        let job = ClearedDoorbells::new();
        let id = job.receive(source);
        job.send();
        assert_eq!(job.source_of(id), Ok(None), "the doorbell was cleared");
        job.sender.transport.finish();
        assert_eq!(job.source_of(id), Ok(Some(0)), "from {source:?}");
    }
}

#[test]
fn receive_posted_after_its_sender_finished_gets_the_message_whose_doorbell_was_cleared() {
    for source in [Some(0), None] {
        let job = ClearedDoorbells::new();
        job.send();
        job.sender.transport.finish();
        let id = job.receive(source);
        assert_eq!(job.source_of(id), Ok(Some(0)), "from {source:?}");
    }
}

#[test]
fn receive_gets_the_message_of_a_dead_sender_whose_doorbell_was_cleared() {
    let job = ClearedDoorbells::new();
    job.send();
    job.status_page.record_death(0, Death::Killed(9));
    let id = job.receive(Some(0));
    assert_eq!(job.source_of(id), Ok(Some(0)));
    let id = job.receive(Some(0));
    assert!(
        matches!(job.source_of(id), Err(DeviceError::PeerFailed { rank: 0, .. })),
        "only what it has sent"
    );
}

#[test]
fn probe_finds_the_message_of_a_finished_sender_whose_doorbell_was_cleared() {
    let job = ClearedDoorbells::new();
    job.send();
    job.sender.transport.finish();
    // The epoch on the page that all ranks write is a hint as well.
    job.hostile.transport.clear_epoch();
    let selector = Selector { context: 7, source: Some(0), tag: None };
    let seen = job.receiver.probe_now(&selector, &[]).expect("a message").expect("it has arrived");
    assert_eq!(seen.envelope.source, 0);
}

#[test]
fn synchronous_send_is_done_when_its_receiver_matched_it_and_finished_and_its_doorbell_was_cleared() {
    let job = ClearedDoorbells::new();
    let letter = message(job.receiver.source().clone(), 64);
    let sent = job.receiver.isend(0, 7, 1, &letter, Mode::Synchronous).expect("it runs");
    let selector = Selector { context: 7, source: Some(2), tag: None };
    let args = ReceiveArgs { selector, capacity: 100, spare: None, members: None };
    let got = job.sender.irecv(args).expect("it runs");
    assert!(job.sender.test(got).expect("no error").is_some());
    job.hostile.transport.clear_doorbells(2);
    job.sender.transport.finish();
    let sent = sent.expect("it waits for the match");
    assert!(job.receiver.test(sent).expect("it was matched").is_some());
}

fn any_of(capacity: usize) -> ReceiveArgs {
    let selector = Selector { context: 0, source: Some(1), tag: None };
    ReceiveArgs { selector, capacity, spare: None, members: None }
}

/// Length of the primary payload of a receive that is complete without another poll.
fn received_len(receiver: &PacketEngine, id: RequestId) -> Option<Result<usize, DeviceError>> {
    let outcome = receiver.lock().state.requests.take_outcome(id).expect("a request");
    outcome.map(|outcome| outcome.map(|done| done.message.expect("a message").primary_len()))
}

#[test]
fn irecv_takes_an_arrived_message_and_leaves_those_behind_it() {
    let mut ranks = ranks(2);
    let sender = ranks.pop().expect("two ranks");
    let receiver = ranks.pop().expect("one rank").into_endpoint(2);
    for octets in [64, 72, 80] {
        assert!(sender.send(Kind::Eager, 0, octets));
    }
    let id = receiver.irecv(any_of(1000)).expect("a receive");
    assert_eq!(received_len(&receiver, id), Some(Ok(64)));
    assert_eq!(receiver.lock().state.recv_queue.unexpected_len(), 0);
    let next = receiver.irecv(any_of(1000)).expect("a receive");
    assert_eq!(received_len(&receiver, next), Some(Ok(72)));
}

#[test]
fn irecv_leaves_arrived_messages_to_earlier_receives() {
    let mut ranks = ranks(2);
    let sender = ranks.pop().expect("two ranks");
    let receiver = ranks.pop().expect("one rank").into_endpoint(2);
    let earlier = receiver.irecv(any_of(1000)).expect("a receive");
    assert_eq!(received_len(&receiver, earlier), None);
    assert!(sender.send(Kind::Eager, 0, 64) && sender.send(Kind::Eager, 0, 72));
    let later = receiver.irecv(any_of(1000)).expect("a receive");
    assert_eq!(received_len(&receiver, later), Some(Ok(72)));
    assert_eq!(received_len(&receiver, earlier), Some(Ok(64)));
}

#[test]
fn irecv_of_an_arrived_message_that_is_too_long_fails_when_it_is_waited_for() {
    let mut ranks = ranks(2);
    let sender = ranks.pop().expect("two ranks");
    let receiver = ranks.pop().expect("one rank").into_endpoint(2);
    assert!(sender.send(Kind::Eager, 0, 64));
    let id = receiver.irecv(any_of(8)).expect("a receive");
    assert!(matches!(receiver.test(id), Err(DeviceError::Truncated { needed: 64, capacity: 8, .. })));
    assert!(matches!(receiver.test(id), Err(DeviceError::NoSuchRequest)));
}

/// Once into fresh memory, once into memory that is there, by any source and by a given source and tag.
#[test]
fn irecv_into_receives_an_arrived_message_and_makes_no_request() {
    let mut ranks = ranks(2);
    let sender = ranks.pop().expect("two ranks");
    let receiver = ranks.pop().expect("one rank").into_endpoint(2);
    for octets in [64, 72, 80] {
        assert!(sender.send(Kind::Eager, 0, octets));
    }
    let mut place = None;
    for (octets, tag) in [(64, None), (72, Some(0)), (80, Some(0))] {
        let mut args = any_of(1000);
        args.selector.tag = tag;
        let started = receiver.irecv_into(args, &mut place, &|_| true);
        assert!(matches!(started, Ok(StartedRecv::Received(_))), "{started:?}");
        assert_eq!(place.as_ref().map(Message::primary_len), Some(octets));
    }
    assert_eq!(receiver.lock().state.requests.len(), 0);
}

#[test]
fn irecv_into_leaves_a_refused_message_to_its_request() {
    let mut ranks = ranks(2);
    let sender = ranks.pop().expect("two ranks");
    let receiver = ranks.pop().expect("one rank").into_endpoint(2);
    for (accepts, capacity, expected) in [(false, 1000, Ok(64)), (true, 8, Err(()))] {
        assert!(sender.send(Kind::Eager, 0, 64));
        let started = receiver.irecv_into(any_of(capacity), &mut None, &move |_| accepts);
        let Ok(StartedRecv::Posted(id)) = started else { panic!("{started:?}") };
        assert_eq!(received_len(&receiver, id).map(|len| len.map_err(|_| ())), Some(expected));
    }
}

#[test]
fn irecv_into_posts_a_receive_when_nothing_has_arrived() {
    let mut ranks = ranks(2);
    let sender = ranks.pop().expect("two ranks");
    let receiver = ranks.pop().expect("one rank").into_endpoint(2);
    let started = receiver.irecv_into(any_of(1000), &mut None, &|_| true);
    let Ok(StartedRecv::Posted(id)) = started else { panic!("{started:?}") };
    assert_eq!(received_len(&receiver, id), None);
    assert!(sender.send(Kind::Eager, 0, 64));
    assert!(receiver.test(id).expect("no failure").is_some());
}

#[test]
fn yielding_receive_finds_a_message_that_another_thread_has_left_unexpected() {
    let mut ranks = ranks(2);
    let sender = ranks.pop().expect("two ranks");
    // A long yield does not make the receive post at once.
    let config = Config { long_yields: u32::MAX, ..config() };
    let receiver = ranks.pop().expect("one rank").into_endpoint_with(2, config);
    let other = Selector { tag: Some(7), ..any_of(1000).selector };
    let id = receiver.irecv(ReceiveArgs { selector: other, ..any_of(1000) }).expect("posted");
    assert!(sender.send(Kind::Eager, 0, 64));
    assert!(receiver.test(id).expect("no failure").is_none(), "the message is for another receive");
    let received = receiver.poll_yielding(any_of(1000).selector, 1000, Accept::Packed, &mut None);
    assert!(matches!(received, FastRecv::Done(_)), "{received:?}");
}

#[test]
fn array_is_copied_up_to_the_length_of_a_record() {
    let mut ranks = ranks(2);
    let sender = ranks.pop().expect("two ranks");
    let receiver = ranks.pop().expect("one rank").into_endpoint_with(2, Config::default());
    let pool = sender.pool.clone();
    let sender = sender.into_endpoint_with(2, Config::default());
    // The queue of a rank that was never sent to has no short way.
    assert_eq!(sender.isend(0, 0, 0, &message(pool.clone(), 64), Mode::Standard), Ok(None));
    for (octets, is_copied) in [(64, false), (1088, false), (1096, true), (2624, true), (2632, false)] {
        let message = message(pool.clone(), octets - 16);
        assert_eq!(message.first_len(), octets);
        assert_eq!(sender.try_send_copy(0, 0, 0, &message, Mode::Standard), is_copied, "{octets}");
        assert!(!sender.try_send_copy(0, 0, 0, &message, Mode::Synchronous), "{octets}");
        assert!(message.first_slab().is_exclusive(), "{octets}");
    }
    for octets in [64, 1080, 2608] {
        let id = receiver.irecv(any_of(5000)).expect("posted");
        assert_eq!(received_len(&receiver, id), Some(Ok(octets)));
    }
}

#[test]
fn array_is_not_copied_past_the_credit() {
    let mut ranks = ranks(2);
    let sender = ranks.pop().expect("two ranks");
    let _receiver = ranks.pop().expect("one rank").into_endpoint(2);
    let pool = sender.pool.clone();
    let sender = sender.into_endpoint_with(2, Config { credit: 1 << 10, ..config() });
    assert_eq!(sender.isend(0, 0, 0, &message(pool.clone(), 64), Mode::Standard), Ok(None));
    assert!(!sender.try_send_copy(0, 0, 0, &message(pool.clone(), 2048), Mode::Standard));
}

/// A message that its receive refuses, and one for an earlier receive, stay where they are.
#[test]
fn words_are_taken_by_the_receive_that_matches_first_alone() {
    let mut ranks = ranks(2);
    let sender = ranks.pop().expect("two ranks");
    let receiver = ranks.pop().expect("one rank").into_endpoint(2);
    let given = Selector { tag: Some(0), ..any_of(0).selector };
    let take = |selector, accepts: bool| {
        let mut seen = 0;
        let is_taken = receiver.try_recv_words(selector, &mut 0, &mut |words, len| {
            assert!(8 * words.len() >= len);
            seen = len;
            accepts
        });
        (is_taken, seen)
    };
    // The first message makes the queue of its source known.
    assert!(sender.send(Kind::Eager, 0, 64));
    let first = receiver.irecv(any_of(1000)).expect("a receive");
    assert_eq!(received_len(&receiver, first), Some(Ok(64)));
    assert_eq!(take(given, true), (false, 0), "nothing has arrived");
    assert!(sender.send(Kind::Eager, 0, 64) && sender.send(Kind::Eager, 0, 72));
    assert_eq!(take(given, false), (false, 80));
    assert_eq!(take(Selector { tag: None, ..given }, true), (false, 0), "a wildcard takes another path");
    assert_eq!(take(Selector { tag: Some(1), ..given }, true), (false, 0));
    assert_eq!(take(given, true), (true, 80));
    let posted = receiver.irecv(any_of(8)).expect("a receive that fails");
    assert!(matches!(receiver.test(posted), Err(DeviceError::Truncated { needed: 72, .. })));
    let earlier = receiver.irecv(any_of(1000)).expect("a receive");
    assert!(sender.send(Kind::Eager, 0, 64));
    assert_eq!(take(given, true), (false, 0), "an earlier receive is posted");
    assert!(receiver.test(earlier).expect("no failure").is_some());
}

/// Its buffer offers the memory to the next receive.
#[test]
fn blocking_receive_without_memory_gets_a_slab_without_another_reference() {
    let mut ranks = ranks(2);
    let sender = ranks.pop().expect("two ranks");
    let receiver = ranks.pop().expect("one rank").into_endpoint(2);
    assert!(sender.send(Kind::Eager, 0, 64));
    let mut place = None;
    let taken = receiver.try_recv_polling(any_of(1000).selector, 1000, Accept::Packed, &mut place, 300);
    assert!(matches!(taken, FastRecv::Done(_)), "{taken:?}");
    assert!(place.expect("a message").first_slab().is_exclusive());
}
