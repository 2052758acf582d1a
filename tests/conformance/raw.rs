//! A rank against a bare wire: physical messages as foreign, damaged or malicious senders make them, and packets that
//! arrive at the worst moment.
//!
//! The wire is the local one, since it can be had without a rank; what is tested is the device above it.

use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use mpjdev_buffer::{Message, Slab, SlabSource};
use mpjdev_device::pool::HeapPool;
use mpjdev_device::transport::{Header, Inbox, Incoming, Kind, Outgoing, Payload, PeerState, Wire, local};
use mpjdev_device::{Comm, Config, DeviceError, Endpoint, Mode, Patient};
use mpjdev_proto::context::shadow;
use mpjdev_proto::send_policy::LengthError;

use crate::harness::{ANY, from};
use crate::letter::Letter;

/// Something that happens once, at a chosen moment.
type Hook = Mutex<Option<Box<dyn FnOnce() + Send>>>;

fn happen(hook: &Hook) {
    let action = hook.lock().expect("no panic").take();
    action.into_iter().for_each(|act| act());
}

/// Rank 0 under test, and the bare wires of the other ranks.
struct Bench {
    pool: Arc<HeapPool>,
    comm: Comm,
    wires: Vec<local::LocalWire>,
    inboxes: Vec<local::LocalInbox>,
    /// Happens right after rank 0 has read the epoch for the next time.
    after_epoch: Arc<Hook>,
    /// Happens when rank 0 has just found nothing more in its inbox.
    after_receive: Arc<Hook>,
}

#[derive(Debug)]
struct HookedInbox {
    inner: local::LocalInbox,
    after: Arc<Hooked>,
}

#[derive(Debug)]
struct HookedWire {
    inner: local::LocalWire,
    after: Arc<Hooked>,
}

struct Hooked(Arc<Hook>);

impl std::fmt::Debug for Hooked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hooked")
    }
}

impl Inbox for HookedInbox {
    fn receive(&mut self, most: usize, each: &mut dyn FnMut(u32, Header, Incoming<'_>)) -> usize {
        let received = self.inner.receive(most, each);
        if received == 0 {
            happen(&self.after.0);
        }
        received
    }
}

impl Wire for HookedWire {
    fn try_send(&self, dest: u32, header: Header, body: Outgoing<'_>) -> bool {
        self.inner.try_send(dest, header, body)
    }

    fn is_ready(&self) -> bool {
        self.inner.is_ready()
    }

    fn sleep(&self, most: Duration, ready: &mut dyn FnMut() -> bool) {
        self.inner.sleep(most, ready);
    }

    fn ring(&self) {
        self.inner.ring();
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

    fn finish(&self) {
        self.inner.finish();
    }

    fn fail(&self, why: &str) {
        self.inner.fail(why);
    }

    fn matched_by(&self, dest: u32) -> u64 {
        self.inner.matched_by(dest)
    }

    fn tell_matched(&self, source: u32, octets: u64) {
        self.inner.tell_matched(source, octets);
    }

    fn show_life(&self) {
        self.inner.show_life();
    }

    fn life(&self, rank: u32) -> u64 {
        self.inner.life(rank)
    }
}

impl Bench {
    fn new(ranks: u32, physical: bool) -> Bench {
        let config = Config { message_oriented: physical, ..Config::default() }.bounded();
        let pool = HeapPool::new(1 << 30);
        let source: Arc<dyn SlabSource> = pool.clone();
        let (mut wires, mut inboxes): (Vec<_>, Vec<_>) =
            local::connect(ranks as usize, &config).into_iter().unzip();
        let (after_epoch, after_receive): (Arc<Hook>, Arc<Hook>) = Default::default();
        let wire = HookedWire { inner: wires.remove(0), after: Arc::new(Hooked(after_epoch.clone())) };
        let inbox = HookedInbox { inner: inboxes.remove(0), after: Arc::new(Hooked(after_receive.clone())) };
        let ends: (Box<dyn Wire>, Box<dyn Inbox>) = (Box::new(wire), Box::new(inbox));
        let endpoint = Endpoint::new(0, ranks, config, ends, source);
        Bench { pool, comm: Comm::world(Arc::new(endpoint)), wires, inboxes, after_epoch, after_receive }
    }

    /// Hands a physical message of these octets to rank 0, from rank 1.
    fn put(&self, context: u64, tag: i32, octets: &[u8]) {
        let payload = Payload::Physical(self.slab(octets), octets.len());
        let header = Header { kind: Kind::Eager, context, tag, token: 0 };
        assert!(self.wires[0].try_send(0, header, Outgoing::Payload(&payload)));
    }

    fn slab(&self, octets: &[u8]) -> Slab {
        let slab = self.pool.take(octets.len()).expect("memory");
        mpjdev_buffer::octets::copy_in(slab.words(), 0, octets);
        slab
    }

    /// A blocking receive that is not allowed to block for long.
    fn recv(&self, from: mpjdev_device::From, capacity: usize) -> Result<Message, DeviceError> {
        let id = self.comm.irecv(from, capacity, None)?;
        let done = self.comm.wait(id, Some(soon()), &mut Patient)?;
        Ok(done.message.expect("a receive gives a message"))
    }

    fn message(&self, letter: &Letter) -> Message {
        let source: Arc<dyn SlabSource> = self.pool.clone();
        letter.write(&source)
    }

    /// No message, request or memory is left.
    #[track_caller]
    fn finish_clean(self) {
        assert_eq!(self.comm.endpoint().leftovers(), (0, 0));
        drop((self.comm, self.wires, self.inboxes));
        assert_eq!(self.pool.used(), 0);
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

/// The octets of both halves as a sender without pairing numbers makes them: zero in the unused octets.
fn halves(letter: &Letter) -> (Vec<u8>, Vec<u8>) {
    let source: Arc<dyn SlabSource> = Arc::new(mpjdev_buffer::PlainSource);
    let message = letter.write(&source);
    let mut octets = vec![0; message.logical_len()];
    message.copy_logical(0, &mut octets);
    let second = octets.split_off(message.first_len());
    (octets, second)
}

/// As above, with a pairing number.
fn numbered_halves(letter: &Letter, number: u32) -> (Vec<u8>, Vec<u8>) {
    let (mut first, second) = halves(letter);
    let at = first.len() - 8;
    first[at..at + 4].copy_from_slice(&number.to_ne_bytes());
    (first, second)
}

fn letter(seed: u64) -> Letter {
    Letter::split(seed, 40, 100 + seed as usize)
}

/// The second half comes on the same context under the same tag, from the actual source, right behind the first.
#[test]
fn a_foreign_senders_halves_are_joined_for_exact_and_wildcard_receives() {
    let bench = Bench::new(2, true);
    // Unexpected, several of them.
    for seed in 1..4 {
        let (first, second) = halves(&letter(seed));
        bench.put(0, 7, &first);
        bench.put(0, 7, &second);
    }
    for seed in 1..4 {
        let asked = if seed == 2 { ANY } else { from(1, 7) };
        letter(seed).check(&bench.recv(asked, 40).expect("both halves"));
    }
    // Posted before, with others behind that must not get a half.
    let receives = [ANY, from(1, 7), from(None, 7)].map(|f| bench.comm.irecv(f, 40, None).expect("irecv"));
    for seed in 4..7 {
        let (first, second) = halves(&letter(seed));
        bench.put(0, 7, &first);
        bench.put(0, 7, &second);
    }
    for (seed, id) in (4..7).zip(receives) {
        let done = bench.comm.wait(id, Some(soon()), &mut Patient).expect("both halves");
        letter(seed).check(&done.message.expect("a message"));
    }
    bench.finish_clean();
}

/// Even while other messages of that sender, on other tags, come in between.
#[test]
fn a_foreign_second_half_is_not_taken_from_another_tag() {
    let bench = Bench::new(2, true);
    let (first, second) = halves(&letter(1));
    let (whole, _) = halves(&Letter::plain(9, 40));
    let id = bench.comm.irecv(ANY, 40, None).expect("irecv");
    bench.put(0, 7, &first);
    bench.put(0, 8, &whole);
    assert!(bench.comm.test(id).expect("test").is_none());
    Letter::plain(9, 40).check(&bench.recv(ANY, 40).expect("the whole one"));
    bench.put(0, 7, &second);
    let done = bench.comm.wait(id, Some(soon()), &mut Patient).expect("both halves");
    letter(1).check(&done.message.expect("a message"));
    bench.finish_clean();
}

/// In whatever order the second halves come, before or after their first ones.
#[test]
fn numbered_halves_find_each_other_in_any_order() {
    for order in [[0, 1, 2], [2, 0, 1], [2, 1, 0]] {
        for early in [false, true] {
            let bench = Bench::new(2, true);
            let all: Vec<_> = (1..4).map(|seed| numbered_halves(&letter(seed), seed as u32)).collect();
            let put_seconds = || order.iter().for_each(|i| bench.put(shadow(0), *i as i32 + 1, &all[*i].1));
            let receives: Vec<_> = (0..3).map(|_| bench.comm.irecv(ANY, 40, None).expect("irecv")).collect();
            if early {
                put_seconds();
                assert_eq!(bench.comm.iprobe(ANY), Ok(None), "a second half is no message");
            }
            all.iter().for_each(|(first, _)| bench.put(0, 7, first));
            if !early {
                put_seconds();
            }
            for (seed, id) in (1..4).zip(receives) {
                let done = bench.comm.wait(id, Some(soon()), &mut Patient).expect("both halves");
                letter(seed).check(&done.message.expect("a message"));
            }
            bench.finish_clean();
        }
    }
}

/// A transport may hand over a short second half inside its packet.
#[test]
fn a_second_half_that_comes_inline_is_joined() {
    let bench = Bench::new(2, true);
    // Sixteen octets that happen to be an empty message, which the wire copies into its queue.
    let (first, _) = halves(&Letter::split(1, 40, 16));
    let inline = bench.message(&Letter::plain(0, 0));
    let id = bench.comm.irecv(ANY, 40, None).expect("irecv");
    bench.put(0, 7, &first);
    let header = Header { kind: Kind::Eager, context: 0, tag: 7, token: 0 };
    assert!(bench.wires[0].try_send(0, header, Outgoing::Message(&inline)));
    let message = bench.comm.wait(id, Some(soon()), &mut Patient).expect("both halves").message;
    let mut secondary = [0xff; 16];
    assert_eq!(message.expect("a message").copy_secondary(0, &mut secondary), 16);
    assert_eq!(
        secondary[..8],
        inline.first_words()[0].load(std::sync::atomic::Ordering::Relaxed).to_ne_bytes()
    );
    drop(inline);
    bench.finish_clean();
}

/// The error has both lengths; the next message is whole, whether the half comes before or after the receive.
#[test]
fn a_second_half_of_another_length_is_an_error_with_the_numbers() {
    for posted in [false, true] {
        for wrong in [0, 1, 100, 102, 5000] {
            let bench = Bench::new(2, true);
            let (first, _) = numbered_halves(&letter(1), 5);
            let posted = posted.then(|| bench.comm.irecv(ANY, 40, None).expect("irecv"));
            bench.put(0, 7, &first);
            bench.put(shadow(0), 5, &vec![0; wrong]);
            let (next, _) = halves(&Letter::plain(2, 40));
            bench.put(0, 7, &next);
            let error = match posted {
                Some(id) => bench.comm.wait(id, Some(soon()), &mut Patient).unwrap_err(),
                None => bench.recv(ANY, 40).unwrap_err(),
            };
            let lengths = LengthError::SecondLength { expected: 101, actual: wrong };
            assert_eq!(error, DeviceError::Lengths { error: lengths, source_rank: 1, tag: 7 });
            Letter::plain(2, 40).check(&bench.recv(ANY, 40).expect("the next message"));
            bench.finish_clean();
        }
    }
}

/// Every truncation of a message, and octets behind its end: an error or, as a first half, an open receive; never a panic,
/// and the next message is whole.
#[test]
fn physical_lengths_that_contradict_the_headers_are_errors() {
    for split in [false, true] {
        let whole = if split { Letter::split(1, 40, 24) } else { Letter::appended(1, 40, 24) };
        let (first, second) = halves(&whole);
        let right = first.len();
        let first: Vec<u8> = first.into_iter().chain(second).chain([0; 9]).collect();
        for len in (0..first.len()).filter(|len| *len != right && *len != 56 && *len != 80) {
            let bench = Bench::new(2, true);
            bench.put(0, 7, &first[..len]);
            let (next, _) = halves(&Letter::plain(2, 40));
            bench.put(0, 7, &next);
            let error = bench.recv(ANY, 1000).unwrap_err();
            assert!(
                matches!(error, DeviceError::Damaged { .. } | DeviceError::Lengths { .. }),
                "{len} octets: {error}"
            );
            assert!(error.to_string().contains("rank 1") && error.to_string().contains("tag 7"), "{error}");
            Letter::plain(2, 40).check(&bench.recv(ANY, 40).expect("the next message"));
            bench.finish_clean();
        }
    }
}

/// Every bit of both headers turned: the message or an error, or a receive that waits for a second half; and never an
/// allocation from a length that the peer made up.
#[test]
fn a_header_with_any_bit_turned_does_no_harm() {
    let (good, _) = halves(&Letter::appended(1, 40, 24));
    let header_bits = (0..64).chain(48 * 8..56 * 8);
    for bit in header_bits {
        let bench = Bench::new(2, true);
        let mut octets = good.clone();
        octets[bit / 8] ^= 1 << (bit % 8);
        let before = bench.pool.used();
        bench.put(0, 7, &octets);
        let id = bench.comm.irecv(ANY, 1000, None).expect("irecv");
        match bench.comm.test(id) {
            Ok(_) | Err(DeviceError::Damaged { .. } | DeviceError::Lengths { .. }) => {}
            Err(error) => panic!("bit {bit}: {error}"),
        }
        assert!(bench.pool.used() <= before + 4096, "bit {bit}: {} octets in use", bench.pool.used());
        // A receive that still waits for a second half ends with its sender.
        let id = bench.comm.irecv(ANY, 1000, None).expect("irecv");
        bench.wires[0].finish();
        assert!(bench.comm.wait(id, Some(soon()), &mut Patient).is_err());
    }
}

/// A half that can no longer come: the receive fails with the rank that it would have come from.
#[test]
fn a_receive_whose_second_half_never_comes_ends_with_its_sender() {
    let bench = Bench::new(3, true);
    let (first, _) = numbered_halves(&letter(1), 5);
    bench.put(0, 7, &first);
    let id = bench.comm.irecv(ANY, 40, None).expect("irecv");
    assert!(bench.comm.test(id).expect("test").is_none());
    assert_eq!(bench.comm.endpoint().cancel(id), Ok(false), "it is matched");
    bench.wires[0].finish();
    let error = bench.comm.wait(id, Some(soon()), &mut Patient).unwrap_err();
    assert_eq!(error, DeviceError::PeerFinished { rank: 1 });
    bench.finish_clean();
}

/// Answers to requests that are not there, forged ones too, change nothing.
#[test]
fn a_forged_answer_completes_no_request() {
    for token in [0, 1, u64::MAX, 1 << 32, 1 << 63] {
        let bench = Bench::new(2, false);
        let header = Header { kind: Kind::Matched, context: 0, tag: 0, token };
        assert!(bench.wires[0].try_send(0, header, Outgoing::Nothing));
        assert_eq!(bench.comm.iprobe(ANY), Ok(None));
        let id = bench.comm.irecv(ANY, 40, None).expect("irecv");
        let (whole, _) = halves(&Letter::plain(1, 40));
        bench.put(0, 7, &whole);
        let done = bench.comm.wait(id, Some(soon()), &mut Patient).expect("the message");
        Letter::plain(1, 40).check(&done.message.expect("a message"));
        bench.finish_clean();
    }
}

/// The message and the finish come when the receiver has just looked into its inbox.
#[test]
fn a_message_sent_right_before_a_finish_is_received_whenever_both_come() {
    for probes in [false, true] {
        let mut bench = Bench::new(2, false);
        let wire = Arc::new(bench.wires.remove(0));
        let message = bench.message(&Letter::plain(1, 40));
        let late = wire.clone();
        *bench.after_receive.lock().expect("no panic") = Some(Box::new(move || {
            let header = Header { kind: Kind::Eager, context: 0, tag: 7, token: 0 };
            assert!(late.try_send(0, header, Outgoing::Message(&message)));
            late.finish();
        }));
        if probes {
            assert!(bench.comm.iprobe(from(1, 7)).expect("the message is here, or nothing is").is_some());
        }
        Letter::plain(1, 40).check(&bench.recv(from(1, 7), 40).expect("it was sent before the finish"));
        assert_eq!(bench.recv(from(1, 7), 40).unwrap_err(), DeviceError::PeerFinished { rank: 1 });
        drop(wire);
        bench.finish_clean();
    }
}

/// The answer and the finish come when the sender, that looks because somebody else has finished, has just looked.
#[test]
fn an_answer_sent_right_before_a_finish_completes_its_send_whenever_both_come() {
    let mut bench = Bench::new(3, false);
    let message = bench.message(&Letter::plain(1, 40));
    let id = bench.comm.isend(&message, 1, 7, Mode::Synchronous).expect("isend").expect("pending");
    drop(message);
    let mut token = 0;
    bench.inboxes[0].receive(1, &mut |_, header, _| token = header.token);
    let wire = Arc::new(bench.wires.remove(0));
    let late = wire.clone();
    *bench.after_receive.lock().expect("no panic") = Some(Box::new(move || {
        let header = Header { kind: Kind::Matched, context: 0, tag: 0, token };
        assert!(late.try_send(0, header, Outgoing::Nothing));
        late.finish();
    }));
    bench.wires[0].finish();
    assert!(bench.comm.wait(id, Some(soon()), &mut Patient).is_ok());
    drop(wire);
    bench.finish_clean();
}

/// The destination finishes, and another thread takes note of it, between the look at the destination and the send.
#[test]
fn a_send_whose_destination_finishes_meanwhile_does_not_wait_for_ever() {
    for physical in [false, true] {
        for (split, mode) in [(false, Mode::Synchronous), (true, Mode::Standard), (true, Mode::Synchronous)] {
            let bench = Bench::new(2, physical);
            let endpoint: Arc<OnceLock<Weak<Endpoint>>> = Arc::default();
            endpoint.set(Arc::downgrade(bench.comm.endpoint())).expect("set once");
            let form = if split { letter(1) } else { Letter::plain(1, 40) };
            let message = bench.message(&form);
            let Bench { comm, wires, inboxes, pool, after_epoch, .. } = bench;
            let wire = Arc::new(wires);
            let late = wire.clone();
            *after_epoch.lock().expect("no panic") = Some(Box::new(move || {
                late[0].finish();
                let other_thread = endpoint.get().and_then(Weak::upgrade).expect("alive");
                other_thread.leftovers();
            }));
            if let Some(id) = comm.isend(&message, 1, 7, mode).expect("it was alive") {
                let error = comm.wait(id, Some(soon()), &mut Patient).unwrap_err();
                assert_eq!(error, DeviceError::PeerFinished { rank: 1 });
            }
            assert_eq!(comm.endpoint().leftovers(), (0, 0));
            drop((comm, wire, inboxes, message));
            assert_eq!(pool.used(), 0);
        }
    }
}

/// Rank 0 goes on until it can tell everybody.
#[test]
fn a_damaged_request_is_told_to_all_ranks() {
    let mut bench = Bench::new(3, false);
    let mut split = bench.comm.start_split(0, 0);
    assert!(split.advance().expect("nothing has come").is_none());
    let source: Arc<dyn SlabSource> = bench.pool.clone();
    for (wire, len) in bench.wires.iter().zip([3, 8]) {
        let mut buffer = mpjdev_buffer::WriteBuffer::new(source.clone(), 16, mpjdev_buffer::Encoding::NATIVE)
            .expect("a capacity");
        buffer.write(&vec![0i8; len]).expect("room");
        let header = Header { kind: Kind::Eager, context: 1, tag: 67, token: 0 };
        assert!(wire.try_send(0, header, Outgoing::Message(buffer.finish().expect("memory"))));
    }
    assert!(split.advance().is_err());
    for inbox in &mut bench.inboxes {
        assert_eq!(
            inbox.receive(9, &mut |_, header, _| assert_eq!(header.tag, 68)),
            1,
            "a verdict for each rank"
        );
    }
}

/// An answer names a request of its receiver: it must be a send, and one to the rank that answers.
#[test]
fn a_forged_answer_completes_no_pending_request() {
    let bench = Bench::new(3, false);
    let receive = bench.comm.irecv(ANY, 40, None).expect("irecv");
    let message = bench.message(&Letter::plain(2, 40));
    let send = bench.comm.isend(&message, 2, 7, Mode::Synchronous).expect("isend").expect("pending");
    drop(message);
    for token in 0..3 {
        let header = Header { kind: Kind::Matched, context: 0, tag: 0, token };
        assert!(bench.wires[0].try_send(0, header, Outgoing::Nothing));
    }
    assert!(bench.comm.test(send).expect("still there").is_none(), "rank 1 has answered for rank 2");
    let (whole, _) = halves(&Letter::plain(1, 40));
    bench.put(0, 7, &whole);
    let done = bench.comm.wait(receive, Some(soon()), &mut Patient).expect("the message");
    Letter::plain(1, 40).check(&done.message.expect("an answer is no message"));
}

/// The second half may never come while its sender lives; the thread that waits for it can be interrupted all the same.
#[test]
fn a_receive_that_has_only_its_first_half_can_be_interrupted() {
    let bench = Bench::new(2, true);
    let (first, second) = numbered_halves(&letter(1), 5);
    bench.put(0, 7, &first);
    let (done, over) = std::sync::mpsc::channel();
    let comm = bench.comm.clone();
    let thread = std::thread::spawn(move || {
        let ended = comm.recv(ANY, 40, None, &mut || false).map(drop);
        let _ = done.send(());
        ended
    });
    let in_time = over.recv_timeout(Duration::from_secs(2)).is_ok();
    bench.put(shadow(0), 5, &second);
    let ended = thread.join().expect("no panic");
    assert!(in_time, "it went on until the second half was there: {ended:?}");
    assert_eq!(ended, Err(DeviceError::Interrupted));
    bench.finish_clean();
}

/// Cleaners run while a rank waits for memory to be freed; what they free is a request of that very rank.
#[test]
fn nobody_holds_a_ranks_lock_while_memory_is_reclaimed() {
    static RANK: Mutex<Option<Comm>> = Mutex::new(None);
    static BLOCKED: OnceLock<bool> = OnceLock::new();
    let bench = Bench::new(2, false);
    let message = bench.message(&Letter::plain(1, 40));
    let header = Header { kind: Kind::Eager, context: 0, tag: 7, token: 0 };
    assert!(bench.wires[0].try_send(0, header, Outgoing::Message(&message)));
    *RANK.lock().expect("no panic") = Some(bench.comm.clone());
    bench.pool.set_reclaim(|| {
        let (done, over) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let comm = RANK.lock().expect("no panic").take().expect("asked once");
            comm.endpoint().leftovers();
            let _ = done.send(());
        });
        let _ = BLOCKED.set(over.recv_timeout(Duration::from_secs(1)).is_err());
    });
    bench.pool.set_limit(0);
    let _ = bench.comm.iprobe(ANY);
    assert_ne!(BLOCKED.get(), Some(&true), "another thread of this rank had to wait");
}

/// Its sender has finished and nobody empties its queue any more.
#[test]
fn answers_to_a_rank_that_has_finished_do_not_stay_behind() {
    let bench = Bench::new(2, false);
    let message = bench.message(&Letter::plain(1, 40));
    for token in 0..100 {
        let header = Header { kind: Kind::Synchronous, context: 0, tag: 7, token };
        while !bench.wires[0].try_send(0, header, Outgoing::Message(&message)) {
            assert!(bench.comm.iprobe(ANY).expect("iprobe").is_some());
        }
    }
    drop(message);
    bench.wires[0].finish();
    assert!(bench.comm.iprobe(ANY).expect("iprobe").is_some());
    for _ in 0..100 {
        Letter::plain(1, 40).check(&bench.recv(from(1, 7), 40).expect("it was sent before the finish"));
    }
    let begun = Instant::now();
    assert_eq!(bench.comm.endpoint().finish(&mut Patient), Ok(()));
    assert!(begun.elapsed() < Duration::from_secs(2), "finish took {:?}", begun.elapsed());
    bench.finish_clean();
}

/// A half of a rank that has finished, while others are alive that a wildcard receive could get a message from.
#[test]
fn a_half_of_a_rank_that_is_known_to_have_finished_is_not_waited_for() {
    for taken in [false, true] {
        let bench = Bench::new(3, true);
        let (first, _) = numbered_halves(&letter(1), 5);
        bench.put(0, 7, &first);
        bench.wires[0].finish();
        // Rank 0 takes note of both, before anything is posted.
        assert!(bench.comm.iprobe(ANY).expect("iprobe").is_some());
        let id = if taken {
            let (_, message) = bench.comm.improbe(ANY).expect("improbe").expect("the first half");
            bench.comm.imrecv(message, 40)
        } else {
            bench.comm.irecv(ANY, 40, None).expect("irecv")
        };
        let deadline = Some(Instant::now() + Duration::from_secs(2));
        let ended = bench.comm.wait(id, deadline, &mut Patient).map(drop);
        assert_eq!(ended, Err(DeviceError::PeerFinished { rank: 1 }), "taken: {taken}");
        bench.finish_clean();
    }
}
