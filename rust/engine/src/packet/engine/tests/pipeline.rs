//! Tests of messages that are packed after they were sent, over shared memory.

use std::time::Duration;

use mpjdev_buffer::{Encoding, Message, Packer, SectionHeader, Type};
use mpjdev_proto::envelope::Selector;
use mpjdev_transport::config::Config;
use mpjdev_transport::shm::{Death, StatusPage};
use mpjdev_transport::wait::Uninterruptible;

use super::shm::ranks_and_status_page;
use crate::error::DeviceError;
use crate::operation::{Accept, FastRecv, Mode, SentAhead};
use crate::packet::engine::PacketEngine;
use crate::packet::posted_recv::ReceiveArgs;
use crate::request::RequestId;

const CONTEXT: u64 = 7;
/// Elements of a message, and its octets.
const COUNT: usize = 4096;
const OCTETS: usize = 24 + 8 * COUNT;
/// The offset of the elements.
const DATA: usize = 16;

struct Job {
    sender: PacketEngine,
    receiver: PacketEngine,
    status_page: StatusPage,
}

impl Job {
    fn new() -> Job {
        let (mut ranks, status_page) = ranks_and_status_page(2);
        let receiver = ranks.pop().expect("two ranks").into_endpoint(2);
        Job { sender: ranks.pop().expect("one rank").into_endpoint(2), receiver, status_page }
    }

    /// A message of the numbers from 0 on that is sent, with nothing packed.
    fn send_ahead(&self) -> Sent {
        self.send_ahead_in(Mode::Standard).0
    }

    /// As [`send_ahead`](Self::send_ahead), with the send unless it is complete.
    fn send_ahead_in(&self, mode: Mode) -> (Sent, Option<RequestId>) {
        let mut message = Message::from_empty_slab(self.sender.source().take(OCTETS).expect("memory"));
        message.write_headers_of(SectionHeader { element: Type::Long, count: COUNT });
        let sent = self.sender.send_ahead(1, CONTEXT, 1, &message, mode).expect("no error");
        let SentAhead { packer, request, .. } = sent.expect("there is room and credit");
        (Sent { message, packer }, request)
    }

    fn irecv(&self, capacity: usize) -> RequestId {
        let args = ReceiveArgs { selector: selector(), capacity, spare: None, members: None };
        self.receiver.irecv(args).expect("it runs")
    }

    /// Receives without a posted receive.
    fn recv_fast(&self, accept: Accept) -> (FastRecv, Option<Message>) {
        let mut place = None;
        let fast = self.receiver.try_recv_polling(selector(), OCTETS, accept, &mut place, 300);
        (fast, place)
    }

    fn recv_posted(&self, accept: Accept) -> Result<Message, DeviceError> {
        let args = ReceiveArgs { selector: selector(), capacity: OCTETS, spare: None, members: None };
        let received = self.receiver.recv_posted(&FastRecv::Unavailable, args, accept, &mut Uninterruptible);
        received.map(|(_, message)| message)
    }

    fn await_packed(&self, message: &mut Message, octets: usize) -> Result<usize, DeviceError> {
        self.receiver.await_packed(0, message, octets, &mut Uninterruptible)
    }
}

fn selector() -> Selector {
    Selector { context: CONTEXT, source: Some(0), tag: Some(1) }
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

/// The elements of a received message.
fn elements(message: &Message) -> Vec<i64> {
    let (_, place) = message.sole_section(Type::Long, COUNT).expect("one section");
    let mut elements = Vec::new();
    place.get(Encoding::NATIVE, |element: i64| elements.push(element));
    elements
}

fn numbers() -> Vec<i64> {
    (0..COUNT as i64).collect()
}

#[test]
fn posted_receive_is_pending_until_the_message_is_packed() {
    for is_late in [false, true] {
        let job = Job::new();
        let early = (!is_late).then(|| job.irecv(OCTETS));
        let sent = job.send_ahead();
        let id = early.unwrap_or_else(|| job.irecv(OCTETS));
        sent.pack(COUNT - 1);
        assert!(job.receiver.test(id).expect("no error").is_none() && !job.receiver.is_done(id));
        sent.finish();
        assert!(job.receiver.is_done(id));
        let done = job.receiver.test(id).expect("no error").expect("it is packed");
        assert_eq!(elements(&done.message.expect("a receive")), numbers());
    }
}

#[test]
fn synchronous_send_is_complete_when_its_message_is_matched() {
    for is_late in [false, true] {
        let job = Job::new();
        let early = (!is_late).then(|| job.irecv(OCTETS));
        let (sent, send) = job.send_ahead_in(Mode::Synchronous);
        let send = send.expect("it is not matched yet");
        if is_late {
            job.receiver.leftovers();
            assert!(job.sender.test(send).expect("no error").is_none());
        }
        let id = early.unwrap_or_else(|| job.irecv(OCTETS));
        sent.pack(COUNT - 1);
        assert!(job.receiver.test(id).expect("no error").is_none(), "it is not packed");
        assert!(job.sender.test(send).expect("no error").is_some(), "it is matched");
        sent.finish();
        let done = job.receiver.test(id).expect("no error").expect("it is packed");
        assert_eq!(elements(&done.message.expect("a receive")), numbers());
    }
}

#[test]
fn accepting_receive_takes_a_synchronous_message_while_it_is_packed() {
    for takes_unexpected in [false, true] {
        let job = Job::new();
        let (sent, send) = job.send_ahead_in(Mode::Synchronous);
        if takes_unexpected {
            job.receiver.leftovers();
        }
        let (fast, place) = job.recv_fast(Accept::Packing);
        assert!(matches!(fast, FastRecv::Done(_)), "{fast:?}");
        let mut message = place.expect("received");
        sent.pack(10);
        assert_eq!(job.await_packed(&mut message, DATA + 1), Ok(DATA + 80));
        assert!(job.sender.test(send.expect("a request")).expect("no error").is_some(), "it is matched");
        sent.finish();
        assert_eq!(job.await_packed(&mut message, OCTETS), Ok(OCTETS));
        assert_eq!((message.is_packing(), elements(&message)), (false, numbers()));
    }
}

#[test]
fn synchronous_message_that_waits_for_room_is_packed_meanwhile() {
    let job = Job::new();
    let mut short = Message::from_empty_slab(job.sender.source().take(64).expect("memory"));
    short.write_headers_of(SectionHeader { element: Type::Long, count: 1 });
    while job.sender.queued_count.get() == 0 {
        job.sender.isend(1, CONTEXT, 2, &short, Mode::Standard).expect("no error");
    }
    let (sent, send) = job.send_ahead_in(Mode::Synchronous);
    let (id, send) = (job.irecv(OCTETS), send.expect("it is not matched yet"));
    sent.pack(COUNT / 2);
    assert!(job.receiver.test(id).expect("no error").is_none());
    while job.sender.test(send).expect("no error").is_none() {
        assert!(job.receiver.test(id).expect("no error").is_none(), "it is not packed");
    }
    sent.finish();
    let done = job.receiver.test(id).expect("no error").expect("it is packed");
    assert_eq!(elements(&done.message.expect("a receive")), numbers());
}

#[test]
fn wait_ends_when_another_thread_has_packed_the_message() {
    let job = Job::new();
    let (id, sent) = (job.irecv(OCTETS), job.send_ahead());
    let done = std::thread::scope(|scope| {
        let waits = scope.spawn(|| job.receiver.wait(id, None, &mut Uninterruptible));
        sent.finish();
        waits.join().expect("no panic").expect("no error")
    });
    assert_eq!(elements(&done.message.expect("a receive")), numbers());
}

#[test]
fn wait_times_out_while_the_message_is_not_packed_and_the_request_stays() {
    let job = Job::new();
    let (id, sent) = (job.irecv(OCTETS), job.send_ahead());
    let soon = std::time::Instant::now() + Duration::from_millis(2);
    let result = job.receiver.wait(id, Some(soon), &mut Uninterruptible);
    assert!(matches!(result, Err(DeviceError::TimedOut { .. })), "{result:?}");
    sent.finish();
    assert!(job.receiver.wait(id, None, &mut Uninterruptible).is_ok());
}

#[test]
fn accepting_receive_takes_a_message_while_it_is_packed() {
    for takes_unexpected in [false, true] {
        let job = Job::new();
        let sent = job.send_ahead();
        if takes_unexpected {
            job.receiver.leftovers();
        }
        let (fast, place) = job.recv_fast(Accept::Packing);
        assert!(matches!(fast, FastRecv::Done(_)), "{fast:?}");
        let mut message = place.expect("received");
        assert_eq!(message.sole_section(Type::Long, COUNT).expect("the headers are there").0, COUNT);
        assert_eq!(job.await_packed(&mut message, DATA), Ok(DATA), "no element yet");
        sent.pack(10);
        assert_eq!(job.await_packed(&mut message, DATA + 1), Ok(DATA + 80));
        assert_eq!(elements(&message)[..10], numbers()[..10]);
        assert!(message.is_packing());
        sent.finish();
        assert_eq!(job.await_packed(&mut message, OCTETS), Ok(OCTETS));
        assert_eq!((message.is_packing(), elements(&message)), (false, numbers()));
    }
}

#[test]
fn receive_of_packed_messages_leaves_the_fast_path_until_all_is_packed() {
    for takes_unexpected in [false, true] {
        let job = Job::new();
        let sent = job.send_ahead();
        if takes_unexpected {
            job.receiver.leftovers();
        }
        assert!(matches!(job.recv_fast(Accept::Packed), (FastRecv::Unavailable, None)));
        sent.finish();
        let message = job.recv_posted(Accept::Packed).expect("it is packed");
        assert_eq!((message.is_packing(), elements(&message)), (false, numbers()));
    }
}

#[test]
fn packed_message_is_taken_on_the_fast_path() {
    let job = Job::new();
    job.send_ahead().finish();
    let (fast, place) = job.recv_fast(Accept::Packed);
    assert!(matches!(fast, FastRecv::Done(_)), "{fast:?}");
    assert_eq!(elements(&place.expect("received")), numbers());
}

#[test]
fn blocking_posted_receive_accepts_a_message_that_is_being_packed() {
    let job = Job::new();
    let sent = job.send_ahead();
    sent.pack(1);
    let mut message = job.recv_posted(Accept::Packing).expect("its headers are there");
    assert_eq!(job.await_packed(&mut message, DATA + 8), Ok(DATA + 8));
    sent.finish();
    assert_eq!(job.await_packed(&mut message, OCTETS), Ok(OCTETS));
}

#[test]
fn probe_sees_length_type_and_count_of_a_message_that_is_being_packed() {
    for mode in [Mode::Standard, Mode::Synchronous] {
        let job = Job::new();
        let (sent, _) = job.send_ahead_in(mode);
        let seen = job.receiver.probe_now(&selector(), &[]).expect("no error").expect("it has arrived");
        let section = SectionHeader { element: Type::Long, count: COUNT };
        assert_eq!((seen.size, seen.first), (OCTETS - 16, Some(section)));
        sent.finish();
    }
}

#[test]
fn too_long_message_is_truncated_before_it_is_packed() {
    for mode in [Mode::Standard, Mode::Synchronous] {
        let job = Job::new();
        let (id, (sent, send)) = (job.irecv(100), job.send_ahead_in(mode));
        let result = job.receiver.test(id);
        assert!(
            matches!(result, Err(DeviceError::Truncated { needed, .. }) if needed == OCTETS - 16),
            "{result:?}"
        );
        assert!(send.is_none_or(|send| job.sender.is_done(send)), "it is matched");
        sent.finish();
    }
}

#[test]
fn receive_fails_when_the_sender_dies_before_it_has_packed_the_message() {
    let failed = |result: &Result<_, _>| matches!(result, Err(DeviceError::PeerFailed { rank: 0, .. }));
    for mode in [Mode::Standard, Mode::Synchronous] {
        let job = Job::new();
        let (id, sent) = (job.irecv(OCTETS), job.send_ahead_in(mode));
        assert!(job.receiver.test(id).expect("no error").is_none());
        job.status_page.record_death(0, Death::Killed(9));
        let result = job.receiver.wait(id, None, &mut Uninterruptible).map(|_| ());
        assert!(failed(&result), "{result:?}");
        std::mem::forget(sent);

        let job = Job::new();
        let sent = job.send_ahead_in(mode);
        let (_, place) = job.recv_fast(Accept::Packing);
        let mut message = place.expect("its headers are there");
        job.status_page.record_death(0, Death::Killed(9));
        let result = job.await_packed(&mut message, OCTETS).map(|_| ());
        assert!(failed(&result), "{result:?}");
        std::mem::forget(sent);
    }
}

#[test]
fn message_of_a_sender_that_dies_after_packing_is_received() {
    let job = Job::new();
    let id = job.irecv(OCTETS);
    job.send_ahead().finish();
    job.status_page.record_death(0, Death::Killed(9));
    assert!(job.receiver.wait(id, None, &mut Uninterruptible).is_ok());
}

#[test]
fn receive_fails_when_the_sender_stops_packing() {
    let job = Job::new();
    let id = job.irecv(OCTETS);
    drop(job.send_ahead());
    let result = job.receiver.test(id);
    assert!(
        matches!(&result, Err(DeviceError::PeerFailed { rank: 0, why }) if why.contains("pack")),
        "{result:?}"
    );
    drop(job.send_ahead());
    let (_, place) = job.recv_fast(Accept::Packing);
    let result = job.await_packed(&mut place.expect("its headers are there"), OCTETS);
    assert!(matches!(result, Err(DeviceError::PeerFailed { rank: 0, .. })), "{result:?}");
}

#[test]
fn interrupted_wait_for_the_rest_ends_after_its_patience() {
    let job = Job::new();
    let sent = job.send_ahead();
    let (_, place) = job.recv_fast(Accept::Packing);
    let result = job.receiver.await_packed(0, &mut place.expect("received"), OCTETS, &mut || false);
    assert_eq!(result, Err(DeviceError::Interrupted));
    sent.finish();
}

#[test]
fn hostile_count_is_bounded_by_the_message() {
    let job = Job::new();
    let sent = job.send_ahead();
    sent.packer.publish(usize::MAX - 1);
    let (_, place) = job.recv_fast(Accept::Packing);
    assert_eq!(job.await_packed(&mut place.expect("received"), OCTETS), Ok(OCTETS));
    sent.finish();
}

#[test]
fn message_past_the_credit_is_not_sent_ahead_and_its_charge_is_returned() {
    let job = Job::new();
    let mut held = Vec::new();
    let mut message = Message::from_empty_slab(job.sender.source().take(OCTETS).expect("memory"));
    message.write_headers_of(SectionHeader { element: Type::Long, count: COUNT });
    while let Ok(Some(SentAhead { packer, .. })) =
        job.sender.send_ahead(1, CONTEXT, 1, &message, Mode::Standard)
    {
        packer.finish();
        held.push(message);
        message = Message::from_empty_slab(job.sender.source().take(OCTETS).expect("memory"));
        message.write_headers_of(SectionHeader { element: Type::Long, count: COUNT });
    }
    assert!((1..100).contains(&held.len()), "{} messages within 64 KiB of credit", held.len());
    for _ in &held {
        assert!(job.recv_posted(Accept::Packed).is_ok());
    }
    assert!(
        matches!(job.sender.send_ahead(1, CONTEXT, 1, &message, Mode::Standard), Ok(Some(_))),
        "the credit is back"
    );
}

#[test]
fn message_taken_packed_is_like_any_other() {
    let job = Job::new();
    job.send_ahead().finish();
    let (_, place) = job.recv_fast(Accept::Packed);
    assert!(!place.expect("received").is_packing());
}

#[test]
fn wait_polls_the_counter_between_yields() {
    let (mut ranks, status_page) = ranks_and_status_page(2);
    let config = Config { yields: u32::MAX, yield_max: Duration::from_secs(60), ..Config::default() };
    let receiver = ranks.pop().expect("two ranks").into_endpoint_with(2, config);
    let job = Job { sender: ranks.pop().expect("one rank").into_endpoint(2), receiver, status_page };
    let (id, sent) = (job.irecv(OCTETS), job.send_ahead());
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| job.receiver.wait(id, None, &mut Uninterruptible));
        for end in 0..COUNT {
            sent.pack(end);
            std::thread::yield_now();
        }
        sent.finish();
        assert!(waits.join().expect("no panic").is_ok());
    });
}
