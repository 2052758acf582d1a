//! Models of the waiting threads of a rank and their wake-ups, with the packet engine and the local
//! transport.
//!
//! Parks have no timeout here, so loom reports a lost wake-up as a deadlock. No thread polls or yields before
//! it parks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use loom::thread;

use mpjdev_bootstrap::job;
use mpjdev_buffer::{Encoding, Message, PlainSource, SlabSource, WriteBuffer};
use mpjdev_engine::ReceiveArgs;
use mpjdev_engine::{Config, DeviceError, Mode, PacketEngine, RequestId, Uninterruptible};
use mpjdev_proto::envelope::Selector;
use mpjdev_transport::{Header, Outgoing, PacketSource, PeerState, Transport, Unacked, local};

use crate::explore::explore;

// ---- The ranks

/// The local transport, which checks that one thread at most parks on it.
#[derive(Debug)]
struct Watched {
    transport: local::LocalTransport,
    sleepers: AtomicUsize,
}

impl Transport for Watched {
    fn park(&self, most: Duration, ready: &mut dyn FnMut() -> bool) {
        assert_eq!(self.sleepers.fetch_add(1, SeqCst), 0, "two threads of a rank drive");
        self.transport.park(most, ready);
        self.sleepers.fetch_sub(1, SeqCst);
    }

    fn try_send(&self, dest: u32, header: Header, body: Outgoing<'_>) -> bool {
        self.transport.try_send(dest, header, body)
    }

    fn is_ready(&self) -> bool {
        self.transport.is_ready()
    }

    fn wake(&self) {
        self.transport.wake();
    }

    fn epoch(&self) -> u32 {
        self.transport.epoch()
    }

    fn peer(&self, rank: u32) -> PeerState {
        self.transport.peer(rank)
    }

    fn abort(&self) -> Option<(u32, String)> {
        self.transport.abort()
    }

    fn finish(&self) -> Vec<Unacked> {
        self.transport.finish()
    }

    fn fail(&self, why: &str) {
        self.transport.fail(why);
    }

    fn credits_returned_by(&self, dest: u32) -> u64 {
        self.transport.credits_returned_by(dest)
    }

    fn return_credit(&self, source: u32, octets: u64) {
        self.transport.return_credit(source, octets);
    }

    fn heartbeat(&self) {
        self.transport.heartbeat();
    }

    fn heartbeat_of(&self, rank: u32) -> u64 {
        self.transport.heartbeat_of(rank)
    }

    fn name(&self) -> &'static str {
        self.transport.name()
    }
}

fn config() -> Config {
    Config { spins: 0, yields: 0, queue_cells: 2, ..Config::default() }
}

/// Two ranks that do not drive each other's progress.
fn ranks_apart() -> [Arc<PacketEngine>; 2] {
    let mut ends = local::connect(2, &config()).into_iter();
    [0, 1].map(|rank| {
        let (transport, packet_source) = ends.next().expect("an end for each");
        let transport = Watched { transport, sleepers: AtomicUsize::new(0) };
        let ends: (Arc<dyn Transport>, Box<dyn PacketSource>) =
            (Arc::new(transport), Box::new(packet_source));
        Arc::new(PacketEngine::new(rank, 2, config(), ends, Arc::new(PlainSource)))
    })
}

// ---- Actions of their threads

const CONTEXT: u64 = 0;

fn empty_message() -> Message {
    let mut buffer = WriteBuffer::new(Arc::new(PlainSource), 0, Encoding::NATIVE).expect("a capacity");
    buffer.finish().expect("memory").clone()
}

fn from(source: u32, tag: i32) -> Selector {
    Selector { context: CONTEXT, source: Some(source), tag: Some(tag) }
}

fn send(rank: &PacketEngine, dest: u32, tag: i32) {
    rank.send(dest, CONTEXT, tag, &empty_message(), Mode::Standard, &mut Uninterruptible).expect("sent");
}

fn post(rank: &PacketEngine, selector: Selector) -> RequestId {
    rank.irecv(ReceiveArgs { selector, capacity: 0, spare: None, members: None }).expect("posted")
}

fn receive(rank: &PacketEngine, source: u32, tag: i32) {
    let id = post(rank, from(source, tag));
    assert!(rank.wait(id, None, &mut Uninterruptible).expect("received").message.is_some());
}

/// Runs this with the rank on a thread of its own.
fn spawn(rank: &Arc<PacketEngine>, act: impl FnOnce(&Arc<PacketEngine>) + 'static) -> thread::JoinHandle<()> {
    let rank = rank.clone();
    thread::spawn(move || act(&rank))
}

// ---- Messages that wake

#[test]
fn message_wakes_the_only_parked_thread() {
    explore(3, || {
        let [left, right] = ranks_apart();
        let receiver = spawn(&left, |left| receive(left, 1, 1));
        send(&right, 0, 1);
        receiver.join().unwrap();
    });
}

/// The driver receives the message of the other thread, too.
#[test]
fn both_threads_of_a_rank_are_woken_by_their_messages() {
    explore(2, || {
        let [left, right] = ranks_apart();
        let receivers = [1, 2].map(|tag| spawn(&left, move |left| receive(left, 1, tag)));
        send(&right, 0, 1);
        send(&right, 0, 2);
        receivers.into_iter().for_each(|r| r.join().unwrap());
    });
}

/// The second message is sent when the first thread has returned. If that thread was the driver, the other
/// one must have become the driver.
#[test]
fn leaving_driver_hands_over_to_a_waiting_thread() {
    explore(2, || {
        let [left, right] = ranks_apart();
        let [first, second] = [1, 2].map(|tag| spawn(&left, move |left| receive(left, 1, tag)));
        send(&right, 0, 1);
        first.join().unwrap();
        send(&right, 0, 2);
        second.join().unwrap();
    });
}

/// A message for a probing thread completes no request.
#[test]
fn message_received_by_another_thread_wakes_a_probing_one() {
    explore(2, || {
        let [left, right] = ranks_apart();
        let prober = spawn(&left, |left| {
            let seen = left.probe(&from(1, 1), &[], &mut Uninterruptible).expect("seen");
            assert_eq!(seen.envelope.tag, 1);
        });
        let receiver = spawn(&left, |left| receive(left, 1, 2));
        send(&right, 0, 1);
        prober.join().unwrap();
        send(&right, 0, 2);
        receiver.join().unwrap();
    });
}

/// The probing thread does not park. It may receive the message at each step of the other thread's parking.
#[test]
fn sleeping_thread_is_woken_by_a_probing_thread() {
    explore(3, || {
        let [left, right] = ranks_apart();
        let receiver = spawn(&left, |left| receive(left, 1, 1));
        send(&right, 0, 1);
        assert_eq!(left.probe_now(&from(1, 9), &[]), Ok(None));
        receiver.join().unwrap();
    });
}

/// No message arrives: only the cancelling thread can wake the waiting one.
#[test]
fn cancel_by_another_thread_ends_a_wait() {
    explore(3, || {
        let [left, _right] = ranks_apart();
        let id = post(&left, from(1, 1));
        let waiter = spawn(&left, move |left| {
            assert_eq!(left.wait(id, None, &mut Uninterruptible).unwrap_err(), DeviceError::Cancelled);
        });
        assert_eq!(left.cancel(id), Ok(true));
        waiter.join().unwrap();
    });
}

/// The thread that is parked on its futex waits for a request that a third thread cancels.
#[test]
fn cancel_wakes_the_parked_thread_of_its_request() {
    explore(2, || {
        let [left, right] = ranks_apart();
        let id = post(&left, from(1, 1));
        let receiver = spawn(&left, |left| receive(left, 1, 2));
        let waiter = spawn(&left, move |left| {
            assert_eq!(left.wait(id, None, &mut Uninterruptible).unwrap_err(), DeviceError::Cancelled);
        });
        assert_eq!(left.cancel(id), Ok(true));
        waiter.join().unwrap();
        send(&right, 0, 2);
        receiver.join().unwrap();
    });
}

// ---- Ranks that end

#[test]
fn end_of_a_rank_wakes_the_thread_that_waits_for_it() {
    explore(3, || {
        let [left, right] = ranks_apart();
        let id = post(&left, from(1, 1));
        let receiver = spawn(&left, move |left| {
            let error = left.wait(id, None, &mut Uninterruptible).unwrap_err();
            assert_eq!(error, DeviceError::PeerFailed { rank: 1, why: "why".into() });
        });
        right.fail("why");
        receiver.join().unwrap();
    });
}

/// Only the end of the rank can wake the two threads: one probes, and one receives from any source.
#[test]
fn parked_threads_are_woken_by_the_end_of_the_last_rank() {
    explore(2, || {
        let [left, right] = ranks_apart();
        let selector = Selector { context: CONTEXT, source: None, tag: Some(2) };
        let members = Some(Arc::from([0, 1]));
        let args = ReceiveArgs { selector, capacity: 0, spare: None, members };
        let id = left.irecv(args).expect("posted");
        let waiters = [
            spawn(&left, |left| {
                let error = left.probe(&from(1, 1), &[], &mut Uninterruptible).unwrap_err();
                assert_eq!(error, DeviceError::PeerFinished { rank: 1 });
            }),
            spawn(&left, move |left| {
                assert_eq!(left.wait(id, None, &mut Uninterruptible).unwrap_err(), DeviceError::NoSourceLeft);
            }),
        ];
        right.finish(None, &mut Uninterruptible).expect("nothing to deliver");
        waiters.into_iter().for_each(|w| w.join().unwrap());
    });
}

/// The driver waits for a message of its own rank and continues to wait, so it does not hand over.
#[test]
fn parked_thread_is_notified_of_an_end_that_the_driver_ignores() {
    explore(2, || {
        let [left, right] = ranks_apart();
        let id = post(&left, from(0, 9));
        let driver = spawn(&left, move |left| {
            assert_eq!(left.wait(id, None, &mut Uninterruptible).unwrap_err(), DeviceError::Cancelled);
        });
        let prober = spawn(&left, |left| {
            let error = left.probe(&from(1, 1), &[], &mut Uninterruptible).unwrap_err();
            assert_eq!(error, DeviceError::PeerFinished { rank: 1 });
        });
        right.finish(None, &mut Uninterruptible).expect("nothing to deliver");
        prober.join().unwrap();
        assert_eq!(left.cancel(id), Ok(true));
        driver.join().unwrap();
    });
}

/// The finishing thread waits for no request of its own. The other thread of its rank receives the match ack.
#[test]
fn last_completed_send_wakes_a_finishing_thread() {
    explore(1, || {
        let [left, right] = ranks_apart();
        let message = empty_message();
        left.isend(1, CONTEXT, 1, &message, Mode::Synchronous).expect("sent");
        let id = post(&left, from(1, 2));
        let receiver = spawn(&left, move |left| {
            assert_eq!(
                left.wait(id, None, &mut Uninterruptible).unwrap_err(),
                DeviceError::Finished { rank: 0 }
            );
        });
        let finisher = spawn(&left, |left| left.finish(None, &mut Uninterruptible).expect("delivered"));
        receive(&right, 0, 1);
        finisher.join().unwrap();
        receiver.join().unwrap();
    });
}

// ---- Progress for another rank

/// The last message has no room until the receiver has received the first one. The receiver then waits for
/// the last one: it must send it for the sender, or wake the sender.
#[test]
fn receiver_drives_a_sender_without_room() {
    explore(2, || {
        let source: Arc<dyn SlabSource> = Arc::new(PlainSource);
        let comms = job::local(2, config(), &source);
        let [left, right] = [0, 1].map(|rank| comms[rank as usize].packet_engine().expect("packets").clone());
        (0..2).for_each(|_| send(&left, 1, 1));
        let sender = spawn(&left, |left| send(left, 1, 1));
        (0..3).for_each(|_| receive(&right, 0, 1));
        sender.join().unwrap();
    });
}
