//! Tests of datagrams that a relay damages, truncates, forges, repeats or drops.

use std::sync::{Mutex, mpsc};

use mpjdev_sim::Random;
use mpjdev_transport::PeerState;

use super::deaths::add_liveness;
use super::relay::{Relay, Tamper};
use super::*;

/// Octets of the messages in turn, less 8: in one datagram, in several, by rendezvous.
const COUNTS: [usize; 4] = [1, 100, 3000, 12_000];

/// Exchanges messages in both directions at once, and checks their contents.
fn exchange(ranks: &[Rank], count: usize) {
    scope(|threads| {
        for (at, rank) in ranks.iter().enumerate() {
            let other = 1 - at as i32;
            let send = move |i: usize| rank.send(&message(COUNTS[i % 4], i as f64), other);
            threads.spawn(move || (0..count).for_each(send));
            threads.spawn(move || {
                for i in 0..count {
                    let received = rank.receive_up_to(other, 1 << 20).expect("a message");
                    assert_eq!(octets(&received), octets(&message(COUNTS[i % 4], i as f64)), "message {i}");
                }
            });
        }
    });
}

fn unchanged() -> Tamper {
    Box::new(|_, octets| vec![octets])
}

/// Two ranks, and the relay between them.
fn pair(terms: Terms, tamper: Tamper) -> (Vec<Rank>, Relay) {
    let mut jobs = mpjdev_testing::udp_jobs(2, terms).expect("sockets");
    let relay = Relay::between(&mut jobs, tamper);
    (ranks_of(jobs, ProgressThread::Runs), relay)
}

/// Datagrams have checksums. One bit of every eighth datagram is flipped.
#[test]
fn damaged_datagrams_are_dropped_counted_and_retransmitted() {
    let mut random = Random::new(11);
    let tamper: Tamper = Box::new(move |_, mut octets| {
        if random.up_to(7) == 0 && !octets.is_empty() {
            let bit = random.up_to(octets.len() as u64 * 8 - 1) as usize;
            octets[bit / 8] ^= 1 << (bit % 8);
        }
        vec![octets]
    });
    let (ranks, relay) = pair(Terms { is_checked: true, ..Terms::default() }, tamper);
    exchange(&ranks, 200);
    for (at, rank) in ranks.iter().enumerate() {
        let (counted, counters) = (rank.counted(), rank.transport.counters(1 - at as u32).expect("a peer"));
        assert!(counted.bad_checksums > 0, "{counted:?}");
        assert!(counters.retransmitted > 0, "{counters:?}");
        assert_eq!((counters.violations, counters.stale), (0, 0), "{counters:?}");
    }
    relay.tamper(unchanged());
    ranks.iter().for_each(|rank| assert_eq!(rank.transport.peer(0), PeerState::Alive));
}

/// Beside each datagram arrive the variants that a bad network or an attacker could make of it.
#[test]
fn cut_forged_and_repeated_datagrams_are_counted_and_ignored() {
    let mut old: [Vec<Vec<u8>>; 2] = [Vec::new(), Vec::new()];
    let mut number = 0;
    let tamper: Tamper = Box::new(move |from, octets| {
        let (packet, data) = Packet::parse(&octets).expect("what ranks send");
        if packet.extension.rst {
            // The reset that answers a forged packet: flipped again, its id would be valid.
            return vec![octets];
        }
        let emit = |packet: &Packet| {
            let mut octets = vec![0; HEAD_LEN_MAX + data.len()];
            let len = packet.emit(data, &mut octets).expect("a packet");
            octets.truncate(len);
            octets
        };
        number += 1;
        let mut all = vec![octets.clone()];
        match number % 8 {
            0 => all.push(octets[..octets.len() - 1].to_vec()),
            1 => all.extend([Vec::new(), octets[..octets.len().min(15)].to_vec()]),
            2 => all.push([&octets[..], &[0]].concat()),
            3 => {
                // A packet of an earlier job on the same ports, or a guessed id.
                let mut stale = packet;
                stale.extension.connection ^= 1 << 20;
                all.push(emit(&stale));
            }
            4 if packet.header.numbers.seq.is_some() => {
                // A sequence number beyond every window.
                let mut beyond = packet;
                let seq = packet.seq().map(|seq| FullSequence::of(u64::from(seq.bits()) + 12_000));
                beyond.number(seq, packet.ack());
                all.push(emit(&beyond));
            }
            5 if packet.header.numbers.ack.is_some() => {
                let mut ahead = packet;
                let ack = packet.ack().map(|ack| FullSequence::of(u64::from(ack.bits()) + 9000));
                ahead.number(packet.seq(), ack);
                all.push(emit(&ahead));
            }
            _ => {}
        }
        old[from].push(octets);
        if old[from].len() > 30 {
            all.push(old[from].remove(0));
        }
        all
    });
    let (ranks, _relay) = pair(Terms::default(), tamper);
    exchange(&ranks, 300);
    for (at, rank) in ranks.iter().enumerate() {
        let (counted, counters) = (rank.counted(), rank.transport.counters(1 - at as u32).expect("a peer"));
        assert!(counted.malformed > 0 && counted.unknown > 0, "{counted:?}");
        assert!(counters.duplicates > 0 && counters.beyond_window > 0, "{counters:?}");
        assert!(counters.bad_acks > 0, "{counters:?}");
    }
    for rank in &ranks {
        assert_eq!(rank.comm.finish(&mut Uninterruptible), Ok(()));
    }
}

/// The sender of a datagram, and its octets.
type Recorded = (usize, Vec<u8>);

/// Section 5.12, 9 of the notes.
#[test]
fn datagrams_of_an_earlier_run_are_dropped() {
    let recorded: Arc<Mutex<Vec<Recorded>>> = Arc::default();
    let record = {
        let recorded = recorded.clone();
        let record: Tamper = Box::new(move |from, octets| {
            recorded.lock().expect("no panic").push((from, octets.clone()));
            vec![octets]
        });
        record
    };
    let (ranks, relay) = pair(Terms::default(), record);
    exchange(&ranks, 20);
    drop(ranks);
    relay.tamper(unchanged());
    let mut jobs = mpjdev_testing::udp_jobs(2, Terms::default()).expect("sockets");
    relay.connect_to(&mut jobs);
    let ranks = ranks_of(jobs, ProgressThread::Runs);
    let recorded = std::mem::take(&mut *recorded.lock().expect("no panic"));
    scope(|threads| {
        threads.spawn(|| recorded.iter().for_each(|(from, octets)| relay.send(1 - from, octets)));
        exchange(&ranks, 100);
    });
    for (at, rank) in ranks.iter().enumerate() {
        assert_eq!(rank.transport.peer(1 - at as u32), PeerState::Alive);
        let sent = recorded.iter().filter(|(from, _)| *from != at).count() as u64;
        let begun = Instant::now();
        // The progress thread receives the datagrams that are still in the socket.
        while rank.counted().unknown < sent {
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?} of {sent}", rank.counted());
            std::thread::yield_now();
        }
    }
}

/// A rank of another job has the port of a killed rank. Its reset notifies the peers of the killed rank at
/// once.
#[test]
fn peer_is_notified_when_another_job_has_the_port() {
    let mut old = mpjdev_testing::udp_jobs(3, Terms::default()).expect("sockets");
    let killed = old.remove(1);
    let address = killed.socket.local_addr().expect("bound");
    let old = ranks_of(old, ProgressThread::Runs);
    drop(killed);
    let mut new = mpjdev_testing::udp_jobs(3, Terms::default()).expect("sockets");
    new[1].socket = UdpSocket::bind(address).expect("the port is free");
    prepare(new[1].socket.as_fd(), 2, &Terms::default()).expect("buffers");
    for rank in [0, 2] {
        new[rank].members[1].as_mut().expect("a peer").address = address;
    }
    let new = ranks_of(new, ProgressThread::Runs);
    let begun = Instant::now();
    old[0].send(&message(1, 1.0), 1);
    let error = old[0].receive(1).expect_err("another rank has the port");
    let DeviceError::PeerFailed { rank: 1, why } = error else { panic!("{error}") };
    assert!(why.contains("the peer knows no such connection"), "{why}");
    assert!(begun.elapsed() < Duration::from_secs(30), "the peer timeout was needed: {why}");
    // The new ranks drop the packets of the old ones.
    assert!(new[1].counted().unknown > 0, "{:?}", new[1].counted());
    new[0].send(&message(5, 5.0), 1);
    assert_eq!(octets(&new[1].receive(0).expect("a message")), octets(&message(5, 5.0)));
}

/// Drops the first answers to the last packet of rank 1.
fn loses_answers_to_the_last(count: usize) -> Tamper {
    let (mut has_fin, mut lost) = (false, 0);
    Box::new(move |from, octets| {
        let (packet, _) = Packet::parse(&octets).expect("what ranks send");
        has_fin |= from == 1 && packet.extension.fin;
        if from == 0 && has_fin && lost < count {
            lost += 1;
            return Vec::new();
        }
        vec![octets]
    })
}

/// The last ack is lost once or several times. The packet is retransmitted, and both ranks finish.
#[test]
fn finish_completes_when_the_last_ack_is_lost() {
    for count in [1, 3] {
        let (ranks, _relay) = pair(Terms::default(), loses_answers_to_the_last(count));
        ranks[1].send(&message(100, 1.0), 0);
        ranks[0].receive(1).expect("a message");
        let begun = Instant::now();
        assert_eq!(ranks[1].comm.finish(&mut Uninterruptible), Ok(()));
        assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
        assert_eq!(ranks[0].transport.peer(1), PeerState::Finished);
        let counters = ranks[1].transport.counters(0).expect("a peer");
        assert!(counters.retransmitted > 0, "{counters:?}");
        assert_eq!(ranks[0].comm.finish(&mut Uninterruptible), Ok(()));
    }
}

/// All acks of the last packet are lost. The end of the liveness connection shows that their sender has
/// ended.
#[test]
fn finish_ends_when_the_last_ack_is_lost_and_the_peer_has_ended() {
    let mut jobs = mpjdev_testing::udp_jobs(2, Terms::default()).expect("sockets");
    add_liveness(&mut jobs);
    let _relay = Relay::between(&mut jobs, loses_answers_to_the_last(usize::MAX));
    let mut ranks = ranks_of(jobs, ProgressThread::Runs);
    let last = ranks.pop().expect("two ranks");
    let gone = ranks.pop().expect("two ranks");
    last.send(&message(100, 1.0), 0);
    gone.receive(1).expect("a message");
    let begun = Instant::now();
    scope(|threads| {
        threads.spawn(move || {
            let error = gone.receive(1).expect_err("it finishes");
            assert_eq!(error, DeviceError::PeerFinished { rank: 1 });
            assert_eq!(gone.comm.finish(&mut Uninterruptible), Ok(()));
        });
        assert_eq!(last.comm.finish(&mut Uninterruptible), Ok(()));
    });
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    assert!(!matches!(last.transport.peer(0), PeerState::Failed(_)), "{:?}", last.transport.peer(0));
}

/// Ranks of one process have no liveness connections. If every ack of the end is lost, finish waits until its
/// deadline, and names messages whose acks were lost with it, although they have arrived.
#[test]
fn finish_without_liveness_connections_ends_at_its_deadline_when_all_acks_of_the_end_are_lost() {
    for is_message_acked in [true, false] {
        let mut jobs = mpjdev_testing::udp_jobs(2, Terms::default()).expect("sockets");
        let relay = Relay::between(&mut jobs, unchanged());
        let config = Config { finish_timeout: Duration::from_millis(500), ..Config::default() };
        let ranks = ranks_with(jobs, ProgressThread::Runs, config);
        if !is_message_acked {
            relay.tamper(loses_all_of_rank_0());
        }
        ranks[1].send(&message(1, 1.0), 0);
        ranks[0].receive(1).expect("a message");
        let begun = Instant::now();
        while is_message_acked && ranks[1].transport.tx_pending().is_some() {
            assert!(begun.elapsed() < Duration::from_secs(40), "the message is not acknowledged");
            for rank in &ranks {
                rank.comm.leftovers();
            }
        }
        relay.tamper(loses_all_of_rank_0());
        let octets = message(1, 1.0).first_len() as u64;
        let unacked = DeviceError::Unacked { rank: 0, ranks: 1, messages: Some(1), octets };
        let expected = if is_message_acked { Ok(()) } else { Err(unacked) };
        assert_eq!(ranks[1].comm.finish(&mut Uninterruptible), expected);
        let error = ranks[0].receive(1).expect_err("it has finished");
        assert_eq!(error, DeviceError::PeerFinished { rank: 1 });
        assert_eq!(ranks[0].comm.finish(&mut Uninterruptible), Ok(()));
    }
}

fn loses_all_of_rank_0() -> Tamper {
    Box::new(|from, octets| if from == 0 { Vec::new() } else { vec![octets] })
}

/// Every ack of the last packet is lost until its sender has closed. Then a reset answers the packet and acks
/// it, so that a peer that ignores other resets can close.
#[test]
fn reset_of_a_closed_peer_acks_the_last_packet() {
    let mut jobs = mpjdev_testing::udp_jobs(2, Terms::default()).expect("sockets");
    add_liveness(&mut jobs);
    let (sender, resets) = mpsc::channel();
    let mut last = None;
    let tamper: Tamper = Box::new(move |from, octets| {
        let (packet, _) = Packet::parse(&octets).expect("what ranks send");
        if from == 1 && packet.extension.fin {
            last = packet.seq();
        }
        match last {
            Some(last) if from == 0 && packet.extension.rst => {
                // The test may have ended.
                let _ = sender.send((packet, last));
                vec![octets]
            }
            Some(_) if from == 0 => Vec::new(),
            _ => vec![octets],
        }
    });
    let _relay = Relay::between(&mut jobs, tamper);
    let ranks = ranks_of(jobs, ProgressThread::Runs);
    ranks.iter().for_each(|rank| assert_eq!(rank.comm.finish(&mut Uninterruptible), Ok(())));
    let begun = Instant::now();
    let (reset, last) = loop {
        // The ranks have finished, so only this thread drives them.
        for rank in &ranks {
            let _ = rank.comm.leftovers();
        }
        match resets.try_recv() {
            Ok(found) => break found,
            Err(_) => assert!(begun.elapsed() < Duration::from_secs(14), "rank 0 answers"),
        }
        std::thread::yield_now();
    };
    assert!(reset.extension.duplicate, "{reset:?}");
    assert_eq!(reset.ack().map(FullSequence::bits), Some(last.bits().wrapping_add(1) & 0x7fff_ffff));
}

/// The last messages are lost. The sender's finish names the messages without an ack.
#[test]
fn finish_names_messages_that_are_not_acknowledged() {
    let mut jobs = mpjdev_testing::udp_jobs(2, Terms::default()).expect("sockets");
    let relay = Relay::between(&mut jobs, Box::new(|_, octets| vec![octets]));
    let config = Config { finish_timeout: Duration::from_millis(500), ..Config::default() };
    let ranks = ranks_with(jobs, ProgressThread::Runs, config);
    ranks[0].send(&message(1, 1.0), 1);
    assert!(ranks[1].receive(0).is_ok());
    let begun = Instant::now();
    while ranks[0].transport.tx_pending().is_some() {
        assert!(begun.elapsed() < Duration::from_secs(40), "the first message is not acknowledged");
        for rank in &ranks {
            rank.comm.leftovers();
        }
    }
    relay.tamper(Box::new(|_, _| Vec::new()));
    ranks[0].send(&message(1, 2.0), 1);
    ranks[0].send(&message(1, 3.0), 1);
    let lost = 2 * message(1, 2.0).first_len() as u64;
    let error = ranks[0].comm.finish(&mut Uninterruptible).expect_err("two messages are lost");
    assert_eq!(error, DeviceError::Unacked { rank: 1, ranks: 1, messages: Some(2), octets: lost });
}

/// The path becomes narrower in the middle of the job, and no router says so: the reason of the failure names
/// the length and the option.
#[test]
fn silently_narrowed_path_fails_the_peer_with_the_length_and_the_option() {
    const LEN: usize = 1472;
    let terms = Terms { datagram_len_max: LEN, dead_after: 10 * SECOND, ..Terms::default() };
    let (ranks, relay) = pair(terms, unchanged());
    exchange(&ranks, 8);
    relay.tamper(Box::new(|_, octets| if octets.len() > 1300 { Vec::new() } else { vec![octets] }));
    ranks[0].send(&message(1, 1.0), 1);
    ranks[1].receive(0).expect("short messages arrive");
    ranks[0].send(&message(1000, 2.0), 1);
    let error = ranks[0].receive(1).expect_err("the long message is not acknowledged");
    let DeviceError::PeerFailed { rank: 1, why } = error else { panic!("{error}") };
    let advice = format!(
        "; if short messages arrive, a router on the path drops datagrams of {LEN} octets silently: \
         --datagram-len 1200 makes them shorter"
    );
    assert!(why.starts_with("the peer is silent, 1 messages without an acknowledgment"), "{why}");
    assert!(why.ends_with(&advice), "{why}");
}
