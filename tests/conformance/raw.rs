//! A rank against a bare transport: physical messages of foreign, damaged or malicious senders, and packets
//! that arrive at the worst moment.
//!
//! The transport is the local one, because it needs no rank. The tests are of the engine above it.

use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use mpjdev_buffer::{Message, Slab, SlabSource};
use mpjdev_engine::pool::HeapPool;
use mpjdev_engine::{Comm, Config, DeviceError, Mode, PacketEngine, Uninterruptible};
use mpjdev_proto::context::shadow;
use mpjdev_proto::send_policy::LengthError;
use mpjdev_transport::{
    Header, Kind, Outgoing, PacketHandler, PacketSource, Payload, PeerState, Transport, local,
};

use crate::test_message::TestMessage;

mod ends;
mod halves;

/// An action that runs once, at a chosen moment.
type Hook = Mutex<Option<Box<dyn FnOnce() + Send>>>;

fn happen(hook: &Hook) {
    let action = hook.lock().expect("no panic").take();
    action.into_iter().for_each(|act| act());
}

/// Rank 0 under test, and the bare transports of the other ranks.
struct Bench {
    pool: Arc<HeapPool>,
    comm: Comm,
    transports: Vec<local::LocalTransport>,
    packet_sources: Vec<local::LocalSource>,
    /// Runs right after rank 0 has read the epoch for the next time.
    after_epoch: Arc<Hook>,
    /// Runs when rank 0 has just found its queue empty.
    after_receive: Arc<Hook>,
}

#[derive(Debug)]
struct HookedSource {
    inner: local::LocalSource,
    after: Arc<Hooked>,
}

#[derive(Debug)]
struct HookedTransport {
    inner: local::LocalTransport,
    after: Arc<Hooked>,
}

struct Hooked(Arc<Hook>);

impl std::fmt::Debug for Hooked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hooked")
    }
}

impl PacketSource for HookedSource {
    fn receive(&mut self, most: usize, each: &mut PacketHandler<'_>) -> usize {
        let received = self.inner.receive(most, each);
        if received == 0 {
            happen(&self.after.0);
        }
        received
    }
}

impl Transport for HookedTransport {
    fn try_send(&self, dest: u32, header: Header, body: Outgoing<'_>) -> bool {
        self.inner.try_send(dest, header, body)
    }

    fn is_ready(&self) -> bool {
        self.inner.is_ready()
    }

    fn park(&self, most: Duration, ready: &mut dyn FnMut() -> bool) {
        self.inner.park(most, ready);
    }

    fn wake(&self) {
        self.inner.wake();
    }

    fn epoch(&self) -> u32 {
        let epoch = self.inner.epoch();
        happen(&self.after.0);
        epoch
    }

    fn peer(&self, rank: u32) -> PeerState {
        self.inner.peer(rank)
    }

    fn abort(&self) -> Option<(u32, String)> {
        self.inner.abort()
    }

    fn finish(&self) -> Vec<mpjdev_transport::Unacked> {
        self.inner.finish()
    }

    fn fail(&self, why: &str) {
        self.inner.fail(why);
    }

    fn credits_returned_by(&self, dest: u32) -> u64 {
        self.inner.credits_returned_by(dest)
    }

    fn return_credit(&self, source: u32, octets: u64) {
        self.inner.return_credit(source, octets);
    }

    fn heartbeat(&self) {
        self.inner.heartbeat();
    }

    fn heartbeat_of(&self, rank: u32) -> u64 {
        self.inner.heartbeat_of(rank)
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }
}

impl Bench {
    fn new(ranks: u32, physical: bool) -> Bench {
        // No test depends on this time: a finish that waits for a packet that cannot arrive fails at its own
        // limit.
        let finish_timeout = Duration::from_secs(60);
        let config = Config { message_oriented: physical, finish_timeout, ..Config::default() }.bounded();
        let pool = HeapPool::new(1 << 30);
        let source: Arc<dyn SlabSource> = pool.clone();
        let (mut transports, mut packet_sources): (Vec<_>, Vec<_>) =
            local::connect(ranks as usize, &config).into_iter().unzip();
        let (after_epoch, after_receive): (Arc<Hook>, Arc<Hook>) = Default::default();
        let transport =
            HookedTransport { inner: transports.remove(0), after: Arc::new(Hooked(after_epoch.clone())) };
        let packet_source =
            HookedSource { inner: packet_sources.remove(0), after: Arc::new(Hooked(after_receive.clone())) };
        let ends: (Arc<dyn Transport>, Box<dyn PacketSource>) =
            (Arc::new(transport), Box::new(packet_source));
        let endpoint = PacketEngine::new(0, ranks, config, ends, source);
        Bench {
            pool,
            comm: Comm::world(Arc::new(endpoint)),
            transports,
            packet_sources,
            after_epoch,
            after_receive,
        }
    }

    /// Sends a physical message of these octets to rank 0, from rank 1.
    fn put(&self, context: u64, tag: i32, octets: &[u8]) {
        let payload = Payload::Physical(self.slab(octets), octets.len());
        let header = Header { kind: Kind::Eager, context, tag, token: 0 };
        assert!(self.transports[0].try_send(0, header, Outgoing::Payload(&payload)));
    }

    fn slab(&self, octets: &[u8]) -> Slab {
        let slab = self.pool.take(octets.len()).expect("memory");
        mpjdev_buffer::octets::copy_in(slab.words(), 0, octets);
        slab
    }

    /// A blocking receive with a deadline.
    fn recv(&self, from: mpjdev_engine::RecvFrom, capacity: usize) -> Result<Message, DeviceError> {
        let id = self.comm.irecv(from, capacity, None)?;
        let done = self.comm.wait(id, Some(soon()), &mut Uninterruptible)?;
        Ok(done.message.expect("a receive gives a message"))
    }

    fn message(&self, test_message: &TestMessage) -> Message {
        let source: Arc<dyn SlabSource> = self.pool.clone();
        test_message.write(&source)
    }

    /// Checks that no message, request or memory is left.
    #[track_caller]
    fn finish_clean(self) {
        assert_eq!(self.comm.leftovers(), (0, 0));
        drop((self.comm, self.transports, self.packet_sources));
        assert_eq!(self.pool.used(), 0);
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

/// The octets of both halves as a sender without pairing numbers makes them: zero in the unused octets.
fn halves(test_message: &TestMessage) -> (Vec<u8>, Vec<u8>) {
    let source: Arc<dyn SlabSource> = Arc::new(mpjdev_buffer::PlainSource);
    let message = test_message.write(&source);
    let mut octets = vec![0; message.logical_len()];
    message.copy_logical(0, &mut octets);
    let second = octets.split_off(message.first_len());
    (octets, second)
}

/// As above, with a pairing number.
fn numbered_halves(test_message: &TestMessage, number: u32) -> (Vec<u8>, Vec<u8>) {
    let (mut first, second) = halves(test_message);
    let at = first.len() - 8;
    first[at..at + 4].copy_from_slice(&number.to_ne_bytes());
    (first, second)
}

fn test_message(seed: u64) -> TestMessage {
    TestMessage::split(seed, 40, 100 + seed as usize)
}
