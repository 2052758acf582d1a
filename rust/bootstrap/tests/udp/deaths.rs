//! Tests of ranks that finish, fail or are killed, which their liveness connections show.

use std::net::{TcpListener, TcpStream};

use mpjdev_proto::datagram::extension::Extension;
use mpjdev_transport::PeerState;

use super::*;

/// Jobs of ranks with liveness connections between them.
fn jobs_with_liveness(count: usize, terms: Terms) -> Vec<Job> {
    let mut jobs = mpjdev_testing::udp_jobs(count, terms).expect("sockets");
    add_liveness(&mut jobs);
    jobs
}

/// Adds liveness connections between all ranks.
pub(super) fn add_liveness(jobs: &mut [Job]) {
    let count = jobs.len();
    jobs.iter_mut().for_each(|job| job.liveness = (0..count).map(|_| None).collect());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    for (low, high) in (0..count).flat_map(|high| (0..high).map(move |low| (low, high))) {
        let one = TcpStream::connect(listener.local_addr().expect("bound")).expect("a connection");
        let (other, _) = listener.accept().expect("it has connected");
        (jobs[low].liveness[high], jobs[high].liveness[low]) = (Some(one.into()), Some(other.into()));
    }
}

const ENDED: &str = "its connection has ended before it had finished";

/// Ends a rank as a kill does: its descriptors are closed without a packet. Datagrams that it has sent stay
/// in the peer's socket.
fn die(job: Job) {
    drop(job);
}

#[test]
fn messages_of_a_killed_rank_are_received_before_its_failure() {
    const COUNT: usize = 40;
    let mut jobs = jobs_with_liveness(2, Terms::default());
    let dying = jobs.pop().expect("two ranks");
    let ranks = ranks_of(jobs, ProgressThread::Runs);
    let to = dying.members[0].expect("a peer");
    // The datagrams of a rank that is killed before the first acknowledgment.
    for i in 0..COUNT {
        let message = octets(&message(1, i as f64));
        let mut packet = Packet {
            header: Fixed { len: message.len() as u32, tag: 1, ..Fixed::default() },
            ..Packet::default()
        };
        packet.number(Some(FullSequence::of(u64::from(to.first_ours.bits()) + i as u64)), None);
        packet.extension.connection = to.theirs;
        let mut datagram = vec![0; HEAD_LEN_MAX + message.len()];
        let len = packet.emit(&message, &mut datagram).expect("a packet");
        dying.socket.send_to(&datagram[..len], to.address).expect("sent");
    }
    die(dying);
    for i in 0..COUNT {
        let received = ranks[0].receive(1).expect("a message before the failure");
        assert_eq!(octets(&received), octets(&message(1, i as f64)));
    }
    let error = ranks[0].receive(1).expect_err("the rank is killed");
    assert_eq!(error, DeviceError::PeerFailed { rank: 1, why: ENDED.to_owned() });
}

/// There is no progress thread, and the thread parks for an hour at a time.
#[test]
fn parked_thread_wakes_when_a_liveness_connection_ends() {
    let mut jobs = jobs_with_liveness(2, Terms::default());
    let dying = jobs.pop().expect("two ranks");
    let config = Config { slice: Duration::from_secs(3600), ..Config::default() };
    let ranks = ranks_with(jobs, ProgressThread::Missing, config);
    scope(|threads| {
        let waits = threads.spawn(|| ranks[0].receive(1).expect_err("the rank is killed"));
        let begun = Instant::now();
        while !ranks[0].transport.is_asleep() {
            assert!(begun.elapsed() < Duration::from_secs(20), "the thread does not park");
            std::thread::yield_now();
        }
        die(dying);
        let error = waits.join().expect("no panic");
        assert_eq!(error, DeviceError::PeerFailed { rank: 1, why: ENDED.to_owned() });
    });
}

/// One rank makes no call, and another polls all the time without parking.
#[test]
fn progress_thread_detects_ended_liveness_connections() {
    let mut jobs = jobs_with_liveness(3, Terms::default());
    let dying = jobs.pop().expect("three ranks");
    let ranks = ranks_of(jobs, ProgressThread::Runs);
    die(dying);
    let failed = PeerState::Failed(ENDED.to_owned());
    let begun = Instant::now();
    while ranks[0].transport.peer(2) != failed || ranks[1].transport.peer(2) != failed {
        assert!(begun.elapsed() < Duration::from_secs(20), "the end is not detected");
        // Rank 0 computes, and rank 1 polls.
        ranks[1].transport.heartbeat();
        assert!(ranks[1].comm.leftovers() == (0, 0));
    }
}

/// All ranks finish and close at the same time, with and without losses. No rank counts as failed, and none
/// waits until the deadline.
#[test]
fn simultaneous_finishes_count_as_finished() {
    let impairment = Impairment { loss: Chance::percent(10), ..Impairment::NONE };
    for (rounds, impairment) in [(60, None), (12, Some(impairment))] {
        for round in 0..rounds {
            let mut jobs = jobs_with_liveness(3, Terms::default());
            impairment
                .into_iter()
                .for_each(|impairment| mpjdev_testing::impair(&mut jobs, impairment, round));
            let ranks = ranks_of(jobs, ProgressThread::Runs);
            let begun = Instant::now();
            scope(|threads| {
                for (at, rank) in ranks.into_iter().enumerate() {
                    threads.spawn(move || {
                        let others = [(at + 1) % 3, (at + 2) % 3];
                        others.iter().for_each(|other| rank.send(&message(10, 1.0), *other as i32));
                        for other in others {
                            rank.receive(other as i32).expect("a message");
                        }
                        assert_eq!(rank.comm.finish(&mut Uninterruptible), Ok(()), "round {round}");
                        for other in others {
                            let state = rank.transport.peer(other as u32);
                            assert!(!matches!(state, PeerState::Failed(_)), "round {round}: {state:?}");
                        }
                    });
                }
            });
            assert!(begun.elapsed() < Duration::from_secs(12), "round {round}: {:?}", begun.elapsed());
        }
    }
}

/// A program that sees the packets of a connection can forge a reset. It is counted and ignored while the
/// liveness connection is open. A reset with a wrong id is dropped as unknown.
#[test]
fn forged_reset_is_ignored_while_the_liveness_connection_is_open() {
    let ranks = ranks_of(jobs_with_liveness(3, Terms::default()), ProgressThread::Runs);
    let settings = ranks[0].transport.settings(1).expect("a peer");
    let to = ranks[0].transport.udp_socket().local_addr().expect("an address");
    let forge = |connection: u64, has_seq: bool| {
        let extension = Extension { rst: !has_seq, ..Extension::new(connection, 9) };
        let mut packet = Packet { extension, ..Packet::default() };
        packet.number(has_seq.then_some(settings.first_theirs), Some(settings.first_ours));
        let mut octets = [0; HEAD_LEN_MAX];
        let len = packet.emit(&[], &mut octets).expect("a packet");
        // From the port of rank 1, which a program on the network can forge.
        ranks[1].transport.udp_socket().send_to(&octets[..len], to).expect("sent");
    };
    for bit in [0, 12, 31, 32, 63] {
        forge(settings.theirs ^ 1 << bit, false);
        forge(settings.ours ^ 1 << bit, true);
    }
    forge(settings.theirs, false);
    let begun = Instant::now();
    while ranks[0].counted().unknown < 11 {
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", ranks[0].counted());
        std::thread::yield_now();
    }
    let counters = ranks[0].transport.counters(1).expect("a peer");
    assert_eq!((counters.ignored_resets, counters.received, counters.violations), (1, 0, 0), "{counters:?}");
    ranks[1].send(&message(3, 3.0), 0);
    let received = ranks[0].receive(1).expect("a message");
    assert_eq!(octets(&received), octets(&message(3, 3.0)));
}

/// A rank that disconnects a peer closes the liveness connection, since the peer ignores resets.
#[test]
fn disconnected_peer_sees_the_end_of_its_liveness_connection() {
    let ranks = ranks_of(jobs_with_liveness(3, Terms::default()), ProgressThread::Runs);
    ranks[0].transport.close_peer(1, "a test closes it");
    let error = ranks[1].receive(0).expect_err("the rank is killed");
    assert_eq!(error, DeviceError::PeerFailed { rank: 0, why: ENDED.to_owned() });
}
