//! Connections that are cut at every step of a running job, between ranks 0 and 1 of three.
//!
//! A message that has arrived in full is received. Any other fails with the rank at the other end, on both
//! sides and within a bounded time. Each rank continues with rank 2.

mod relay;

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mpjdev_bootstrap::job;
use mpjdev_buffer::SlabSource;
use mpjdev_engine::pool::HeapPool;
use mpjdev_engine::{Comm, Config, DeviceError, Mode, RecvFrom};
use mpjdev_proto::impi::{Dialect, Proc};
use mpjdev_transport::tcp::{self, Member, Terms};

use crate::test_message::TestMessage;
use relay::{Cut, How, Place, Relay, Seen, Step, Way};

/// Deadline of every expected event.
const SOON: Duration = Duration::from_secs(20);

/// Messages that rank 0 sends to rank 1 and gets back, one after the other.
const MESSAGES: [(TestMessage, Mode); 6] = [
    (TestMessage { seed: 1, primary: 64, secondary: 0, room: 0 }, Mode::Standard),
    (TestMessage { seed: 2, primary: 200, secondary: 0, room: 0 }, Mode::Synchronous),
    (TestMessage { seed: 3, primary: 0, secondary: 0, room: 0 }, Mode::Standard),
    (TestMessage { seed: 4, primary: 3000, secondary: 0, room: 0 }, Mode::Standard),
    (TestMessage { seed: 5, primary: 64, secondary: 1000, room: 0 }, Mode::Standard),
    (TestMessage { seed: 6, primary: 1000, secondary: 0, room: 0 }, Mode::Synchronous),
];
/// Messages exchanged with rank 2 after the connection has ended.
const AFTER: [TestMessage; 2] = [
    TestMessage { seed: 7, primary: 64, secondary: 0, room: 0 },
    TestMessage { seed: 8, primary: 5000, secondary: 300, room: 0 },
];

fn terms(dialect: Dialect) -> Terms {
    Terms { dialect, maxdatalen: 256, ackmark: 4, hiwater: 8 }
}

fn config() -> Config {
    // No rank waits for a packet that cannot arrive, so no test depends on the patience.
    Config { credit: 500, finish_timeout: 3 * SOON, ..Config::default() }.for_ranks(3).bounded()
}

/// Progress of rank 0 or rank 1 with the other.
#[derive(Debug)]
struct Report {
    sent: Vec<Result<(), DeviceError>>,
    received: Vec<Result<(), DeviceError>>,
    /// Result of a receive without a matching send, if one was posted.
    last: Option<DeviceError>,
}

/// One rank, whose operations end in time.
struct Rank {
    comm: Comm,
    pool: Arc<dyn SlabSource>,
}

impl Rank {
    fn send(&self, test_message: &TestMessage, mode: Mode, dest: u32) -> Result<(), DeviceError> {
        match self.comm.isend(&test_message.write(&self.pool), dest as i32, 1, mode)? {
            Some(id) => self.wait(id).map(drop),
            None => Ok(()),
        }
    }

    fn receive(&self, test_message: &TestMessage, source: u32) -> Result<(), DeviceError> {
        let from = RecvFrom { source: Some(source as i32), tag: Some(1) };
        let id = self.comm.irecv(from, test_message.needs(), None)?;
        let message = self.wait(id)?.message.expect("a message");
        test_message.check(&message);
        Ok(())
    }

    fn wait(&self, id: mpjdev_engine::RequestId) -> Result<mpjdev_engine::Done, DeviceError> {
        let result = self.comm.wait(id, Some(Instant::now() + SOON), &mut mpjdev_engine::Uninterruptible);
        assert!(!matches!(result, Err(DeviceError::TimedOut { .. })), "it waits without end");
        result
    }

    fn finish(&self) -> Result<(), DeviceError> {
        let begun = Instant::now();
        let result = self.comm.finish(&mut || begun.elapsed() < SOON);
        assert_ne!(result, Err(DeviceError::Interrupted), "its finish does not end");
        result
    }

    /// Ranks 0 and 1 with each other, and with rank 2.
    fn exchange(&self, ends_first: bool) -> Report {
        let (own, other) = (self.comm.rank(), 1 - self.comm.rank());
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        for (test_message, mode) in &MESSAGES {
            let back = TestMessage { seed: test_message.seed + 100, ..*test_message };
            if own == 0 {
                sent.push(self.send(test_message, *mode, other));
                received.push(self.receive(&back, other));
            } else {
                received.push(self.receive(test_message, other));
                sent.push(self.send(&back, *mode, other));
            }
        }
        self.continue_with_rank_2();
        let none = TestMessage::plain(0, 0);
        let last = (!ends_first).then(|| self.receive(&none, other).expect_err("no rank sends"));
        Report { sent, received, last }
    }

    fn continue_with_rank_2(&self) {
        for test_message in AFTER {
            assert_eq!(self.send(&test_message, Mode::Standard, 2), Ok(()));
            assert_eq!(self.receive(&test_message, 2), Ok(()));
        }
    }

    /// Neither of them waits for the other.
    fn answer_others(&self) {
        std::thread::scope(|scope| {
            for source in [0, 1] {
                scope.spawn(move || {
                    for test_message in AFTER {
                        assert_eq!(self.receive(&test_message, source), Ok(()));
                        assert_eq!(self.send(&test_message, Mode::Synchronous, source), Ok(()));
                    }
                });
            }
        });
    }
}

/// Two ends of a connection.
fn connection(listener: &TcpListener) -> [TcpStream; 2] {
    let there = TcpStream::connect(listener.local_addr().expect("bound")).expect("a connection");
    let (here, _) = listener.accept().expect("a connection");
    [here, there].map(|socket| {
        socket.set_nodelay(true).expect("a socket");
        socket
    })
}

/// Three ranks, and the relay's ends of the connection between the first two.
fn ranks(terms: Terms, config: &Config, pool: &Arc<HeapPool>) -> ([Rank; 3], [TcpStream; 2]) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let ends = [(); 4].map(|()| connection(&listener));
    let [[zero, relay_zero], [one, relay_one], [zero_two, two_zero], [one_two, two_one]] = ends;
    let sockets = [
        [None, Some(zero), Some(zero_two)],
        [Some(one), None, Some(one_two)],
        [Some(two_zero), Some(two_one), None],
    ];
    let member = |host: u32| Member {
        proc: Proc { host_id: Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets(), pid: i64::from(host) + 1 },
        host,
        is_ours: true,
    };
    let members: Vec<Member> = (0..3).map(member).collect();
    let source: Arc<dyn SlabSource> = pool.clone();
    let mut number = 0;
    let ranks = sockets.map(|sockets| {
        let sockets = sockets.into_iter().map(|socket| socket.map(OwnedFd::from)).collect();
        let job = tcp::Job { rank: number, members: members.clone(), site_of: Vec::new(), terms, sockets };
        number += 1;
        let comm = job::tcp_rank(job, None, config.clone(), &source, None).expect("a rank");
        Rank { comm, pool: source.clone() }
    });
    (ranks, [relay_zero, relay_one])
}

/// Runs the job with this cut. Returns the record of the relay and the reports of ranks 0 and 1.
fn run(dialect: Dialect, cut: Option<Cut>) -> (Seen, Report, Report) {
    let pool = HeapPool::new(1 << 30);
    let ([zero, one, two], relays) = ranks(terms(dialect), &config(), &pool);
    let relay = Relay::new(relays, dialect, cut);
    let seen = std::thread::spawn(move || relay.run());
    // A rank that has received everything gets the end of the connection, or else that of the rank that it
    // waits for.
    let ends = cut.is_none_or(|cut| cut.step == Step::Fini).then(|| cut.map_or(Way::Forth, |cut| cut.way));
    // Each rank ends with its thread, as it would with its process.
    let third = std::thread::spawn(move || {
        two.answer_others();
        assert_eq!(two.finish(), Ok(()));
    });
    let play = |rank: Rank, ends_first: bool| {
        std::thread::spawn(move || {
            let report = rank.exchange(ends_first);
            // Its peer may have ended before it had received everything.
            let _ = rank.finish();
            report
        })
    };
    let [first, second] = [play(zero, ends == Some(Way::Forth)), play(one, ends == Some(Way::Back))];
    let [first, second] = [first, second].map(|rank| rank.join().expect("a rank"));
    third.join().expect("rank 2 continues");
    let seen = seen.join().expect("the relay");
    all_memory_returns(&pool);
    (seen, first, second)
}

fn all_memory_returns(pool: &HeapPool) {
    let begun = Instant::now();
    while pool.used() > 0 {
        assert!(begun.elapsed() < SOON, "{} octets are in use", pool.used());
        std::thread::yield_now();
    }
}

fn is_failure(error: &DeviceError, rank: u32) -> bool {
    matches!(error, DeviceError::PeerFailed { rank: failed, .. } if *failed == rank)
}

fn is_end(error: &DeviceError, rank: u32) -> bool {
    matches!(error, DeviceError::PeerFinished { rank: finished } if *finished == rank)
}

/// Checks what one rank reports of the other, after `messages` complete messages.
fn check(dialect: Dialect, cut: &Cut, report: &Report, (own, messages): (u32, usize)) {
    let other = 1 - own;
    // A split message is two.
    let mut parts = 0;
    let whole = MESSAGES.iter().filter(|(test_message, _)| {
        parts += if test_message.is_split() { 2 } else { 1 };
        parts <= messages
    });
    let received = report.received.iter().filter(|result| result.is_ok()).count();
    assert_eq!(received, whole.count(), "rank {own} has received what arrived whole");
    // In the draft an end between two packets may be that of a rank that has finished, unless it has not sent
    // all of a message that a receive has matched.
    let is_receiver = cut.way.begins_at(other as usize);
    let is_told = is_receiver && (cut.step == Step::Rest || cut.len.is_inside());
    let cannot_tell = dialect == Dialect::Draft && !is_told;
    for operations in [&report.received, &report.sent] {
        let mut failures = operations.iter().skip_while(|result| result.is_ok());
        let fails = |result: &Result<(), DeviceError>| {
            let error = result.as_ref().expect_err("nothing works when an operation has failed");
            is_failure(error, other) || (cannot_tell && is_end(error, other))
        };
        assert!(failures.all(fails), "rank {own}: {operations:?}");
    }
    let has_heard_fini = cut.step == Step::Fini && cut.len == Place::Behind;
    match &report.last {
        None => {}
        Some(error) if has_heard_fini => assert!(is_end(error, other), "rank {own}: {error}"),
        Some(error) => {
            assert!(is_failure(error, other) || (cannot_tell && is_end(error, other)), "rank {own}: {error}");
        }
    }
}

/// Cuts in packets of this kind, the first and a later one, in every way.
fn cuts(step: Step, nth: [usize; 2]) -> Vec<Cut> {
    let header = [0, 1, 64, 127].map(Place::Header);
    let data: &[Place] = match step {
        Step::Short | Step::Begun | Step::Rest | Step::Aside => {
            &[Place::Header(128), Place::Middle, Place::Last]
        }
        Step::Answer | Step::Ack | Step::Fini => &[],
    };
    let places: Vec<Place> = header.into_iter().chain(data.iter().copied()).chain([Place::Behind]).collect();
    let mut cuts = Vec::new();
    for way in [Way::Forth, Way::Back] {
        for how in [How::Closed, How::HalfClosed, How::Reset] {
            let at = nth.iter().flat_map(|nth| places.iter().map(move |len| (*nth, *len)));
            cuts.extend(at.map(|(nth, len)| Cut { way, step, nth, len, how }));
        }
    }
    cuts.dedup();
    cuts
}

fn run_all(step: Step, nth: [usize; 2], dialects: &[Dialect]) {
    for dialect in dialects {
        for cut in cuts(step, nth) {
            let checked = std::panic::catch_unwind(|| {
                let (seen, zero, one) = run(*dialect, Some(cut));
                assert!(seen.is_cut, "it has not come to that: {seen:?}");
                check(*dialect, &cut, &zero, (0, seen.back.messages));
                check(*dialect, &cut, &one, (1, seen.forth.messages));
            });
            assert!(checked.is_ok(), "in {dialect:?}, {cut:?}");
        }
    }
}

const BOTH: [Dialect; 2] = [Dialect::Final, Dialect::Draft];

/// Proves that without a cut all packets arrive, and that packets of each kind occur.
#[test]
fn a_relay_changes_nothing() {
    for dialect in BOTH {
        let (seen, zero, one) = run(dialect, None);
        let all_well = |report: &Report| report.sent.iter().chain(&report.received).all(Result::is_ok);
        assert!(all_well(&zero) && all_well(&one), "{zero:?} {one:?}");
        assert!(one.last.is_some_and(|error| is_end(&error, 0)));
        for carried in [&seen.forth, &seen.back] {
            assert_eq!(carried.messages, MESSAGES.len() + 1, "one is split");
            let count = |step| carried.steps.iter().filter(|other| **other == step).count();
            let all = [Step::Short, Step::Begun, Step::Rest, Step::Answer, Step::Ack].map(count);
            assert!(all.iter().zip([2, 4, 10, 4, 3]).all(|(count, least)| *count >= least), "{seen:?}");
            assert_eq!(count(Step::Fini), usize::from(dialect == Dialect::Final));
        }
        println!("{seen:?}");
    }
}

#[test]
fn cut_connection_in_short_messages_fails_receive() {
    run_all(Step::Short, [0, 1], &BOTH);
}

#[test]
fn cut_connection_where_messages_begin_fails_receive() {
    run_all(Step::Begun, [0, 1], &BOTH);
}

#[test]
fn cut_connection_in_long_messages_fails_receive() {
    run_all(Step::Rest, [0, 7], &BOTH);
}

#[test]
fn cut_connection_in_match_acks_fails_sends() {
    run_all(Step::Answer, [0, 2], &BOTH);
}

#[test]
fn cut_connection_in_protoacks_fails_operations() {
    run_all(Step::Ack, [0, 2], &BOTH);
}

#[test]
fn cut_connection_in_control_messages_fails_operations() {
    run_all(Step::Aside, [0, 0], &BOTH);
}

#[test]
fn cut_connection_at_finish_fails_operations() {
    run_all(Step::Fini, [0, 0], &[Dialect::Final]);
}

/// Rank 0 sends, finishes and ends before rank 1 has received a packet. No rank receives the answers of
/// rank 1.
#[test]
fn messages_sent_before_the_end_are_received_without_match_acks() {
    const COUNT: u64 = 150;
    for how in [How::Closed, How::Reset] {
        let pool = HeapPool::new(1 << 30);
        let terms = Terms { dialect: Dialect::Final, maxdatalen: 256, ackmark: 1, hiwater: 1000 };
        let ([zero, one, two], relays) = ranks(terms, &Config::default().for_ranks(3).bounded(), &pool);
        let cut = Cut { way: Way::Forth, step: Step::Fini, nth: 0, len: Place::Behind, how };
        let relay = Relay::new(relays, Dialect::Final, Some(cut)).holding();
        let seen = std::thread::spawn(move || relay.run());
        let test_message = |i| TestMessage::plain(i, 200);
        for i in 0..COUNT {
            assert_eq!(zero.send(&test_message(i), Mode::Standard, 1), Ok(()));
        }
        assert_eq!(zero.finish(), Ok(()));
        drop(zero);
        for i in 0..COUNT {
            assert_eq!(one.receive(&test_message(i), 0), Ok(()), "message {i}, {how:?}");
        }
        let error = one.receive(&test_message(COUNT), 0).expect_err("no rank sends");
        assert!(is_end(&error, 0), "{error}");
        drop([one, two]);
        assert!(seen.join().expect("the relay").is_cut);
        all_memory_returns(&pool);
    }
}
