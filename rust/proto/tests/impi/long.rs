//! Messages above maxdatalen, the order of packets, the flow of a whole pair, and the loss of a channel.

use mpjdev_proto::impi::message_tx::Body;
use mpjdev_proto::impi::packet::PacketType;
use mpjdev_proto::impi::pair::{Abandoned, Arrival, Event, Pair, Settings, Transmit};
use mpjdev_proto::impi::pair_error::NoSuchArrival;

use crate::script::*;

/// Proves the lengths of all packets around M, and that the drqid is echoed unchanged (IMPI 8.3).
#[test]
fn long_message_continues_when_it_is_matched() {
    let full = format!("Data 7 {} 10/", u64::MAX);
    let last = |len: u64| format!("Data 7 {} {len}/{} 7@10 last", u64::MAX, 10 + len);
    for (msglen, parts) in [
        (11, vec![last(1)]),
        (19, vec![last(9)]),
        (20, vec![last(10)]),
        (21, vec![format!("{full}21 7@10"), format!("Data 7 {} 1/21 7@20 last", u64::MAX)]),
        (30, vec![format!("{full}30 7@10"), format!("Data 7 {} 10/30 7@20 last", u64::MAX)]),
    ] {
        let mut pair = pair();
        pair.send(standard(7, msglen)).unwrap();
        assert_eq!(sent(&mut pair), [format!("DataSync 7 0 10/{msglen} 7@0")]);
        assert_eq!(give(&mut pair, syncack(7, u64::MAX)), Ok(Event::Matched { token: 7 }));
        assert_eq!(sent(&mut pair), parts);
        pair.finish();
        assert!(pair.is_done());
    }
}

/// Proves that a rest waits for its octets, that a packet has those that are there, and that first packets
/// are sent meanwhile.
#[test]
fn rest_waits_for_its_octets() {
    let mut pair = pair();
    pair.send(standard(7, 25)).unwrap();
    assert_eq!(sent(&mut pair).len(), 1);
    assert_eq!(give(&mut pair, syncack(7, 9)), Ok(Event::Matched { token: 7 }));
    pair.send(standard(8, 3)).unwrap();
    let body = |transmit: Option<Transmit>| {
        transmit.map(|t| t.body.map(|body| (body.token, body.offset, body.len, body.last)))
    };
    for (there, next) in [
        (10, Some((8, 0, 3, true))),
        (10, None),
        (14, Some((7, 10, 4, false))),
        (14, None),
        (25, Some((7, 14, 10, false))),
        (25, Some((7, 24, 1, true))),
    ] {
        let of = |body: &Body| (there - body.offset) as u32;
        assert_eq!(body(pair.poll_transmit_there(of)), next.map(Some), "{there} octets are there");
        pair.check_invariants();
    }
    assert!(!pair.wants_to_send());
}

/// Proves that packets of one octet are sent, and that lengths beyond 32 bits are counted.
#[test]
fn extreme_lengths_are_divided_into_packets() {
    let mut one = Pair::new(Settings { maxdatalen: 1, ..SETTINGS }).unwrap();
    one.send(synchronous(7, 3)).unwrap();
    assert_eq!(sent(&mut one), ["DataSync 7 0 1/3 7@0"]);
    assert_eq!(give(&mut one, syncack(7, 8)), Ok(Event::Matched { token: 7 }));
    assert_eq!(sent(&mut one), ["Data 7 8 1/3 7@1", "Data 7 8 1/3 7@2 last"]);

    let msglen = 2 * u64::from(u32::MAX) + 5;
    let mut one = Pair::new(Settings { maxdatalen: u32::MAX, ..SETTINGS }).unwrap();
    one.send(standard(7, msglen)).unwrap();
    assert_eq!(sent(&mut one), [format!("DataSync 7 0 4294967295/{msglen} 7@0")]);
    assert_eq!(give(&mut one, syncack(7, 8)), Ok(Event::Matched { token: 7 }));
    assert_eq!(
        sent(&mut one),
        [
            format!("Data 7 8 4294967295/{msglen} 7@4294967295"),
            format!("Data 7 8 5/{msglen} 7@8589934590 last")
        ]
    );
}

/// Proves the receiver: offsets, the end, and that the id is invalid afterwards.
#[test]
fn rest_of_a_matched_long_message_is_appended() {
    let mut pair = pair();
    let id = match give(&mut pair, datasync(5, 10, 25)) {
        Ok(Event::Arrived(
            arrival @ Arrival { id: Some(id), len: 10, msglen: 25, synchronous: true, .. },
        )) => {
            assert!(arrival.is_long());
            id
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(sent(&mut pair), [""; 0]);
    pair.matched(id).unwrap();
    assert_eq!(pair.matched(id), Err(NoSuchArrival(id)), "matched once");
    assert_eq!(sent(&mut pair), [format!("SyncAck 5 {}", id.drqid())]);
    pair.finish();
    assert!(!pair.is_done());
    let part = |offset, len, last| Ok(Event::Continued { arrival: id, offset, len, last });
    assert_eq!(give(&mut pair, rest(id.drqid(), 10, 25)), part(10, 10, false));
    assert_eq!(give(&mut pair, rest(id.drqid(), 5, 25)), part(20, 5, true));
    assert!(pair.is_done());
}

/// Proves that short parts are accepted if the sum is right: a choice of ours, LAM warns (IMPI 8.3).
#[test]
fn short_parts_are_accepted() {
    let mut pair = pair();
    let id = arrive(&mut pair, datasync(5, 0, 4));
    pair.matched(id).unwrap();
    assert_eq!(sent(&mut pair).len(), 1);
    for (offset, len, last) in [(0, 1, false), (1, 2, false), (3, 1, true)] {
        let event = Event::Continued { arrival: id, offset, len, last };
        assert_eq!(give(&mut pair, rest(id.drqid(), len, 4)), Ok(event));
    }
}

/// Proves that discarded octets are drained, also if the message is discarded in the middle (IMPI 17:
/// truncation).
#[test]
fn discarded_long_message_is_drained() {
    for steps in 0..3 {
        let mut pair = pair();
        let id = arrive(&mut pair, datasync(5, 10, 25));
        if steps == 0 {
            pair.discard(id).unwrap();
        } else {
            pair.matched(id).unwrap();
        }
        assert_eq!(sent(&mut pair), [format!("SyncAck 5 {}", id.drqid())]);
        if steps == 1 {
            pair.discard(id).unwrap();
        }
        let event = give(&mut pair, rest(id.drqid(), 10, 25));
        assert_eq!(event == Ok(Event::Nothing), steps < 2);
        if steps == 2 {
            pair.discard(id).unwrap();
        }
        assert_eq!(pair.discard(id), Err(NoSuchArrival(id)));
        assert_eq!(give(&mut pair, rest(id.drqid(), 5, 25)), Ok(Event::Nothing));
        pair.finish();
        assert!(pair.is_done());
    }
}

/// Proves that discarded messages hold no ProtoAcks: the peer could never send their rests.
#[test]
fn discarded_long_messages_hold_no_protoacks() {
    let mut pair =
        Pair::new(Settings { ackmark: 1, hiwater: 1, arrivals_max: 4, ..SETTINGS }).expect("good settings");
    let ids = [1, 2, 3, 4].map(|srqid| {
        let id = arrive(&mut pair, datasync(srqid, 10, 25));
        pair.discard(id).unwrap();
        assert_eq!(sent(&mut pair), ["ProtoAck".to_owned(), format!("SyncAck {srqid} {}", id.drqid())]);
        assert_eq!(give(&mut pair, theirs(PacketType::ProtoAck)), Ok(Event::Nothing));
        id
    });
    assert!(!pair.is_holding_acks());
    for (id, len) in ids.iter().flat_map(|id| [(id, 10), (id, 5)]) {
        assert_eq!(give(&mut pair, rest(id.drqid(), len, 25)), Ok(Event::Nothing));
        assert_eq!(sent(&mut pair), ["ProtoAck"]);
    }
}

/// Proves that two long messages may arrive at once without mixing their parts.
#[test]
fn alternating_long_messages_are_distinguished() {
    let mut pair = pair();
    let a = arrive(&mut pair, datasync(1, 10, 20));
    let b = arrive(&mut pair, datasync(2, 10, 30));
    pair.matched(b).unwrap();
    pair.matched(a).unwrap();
    assert_eq!(sent(&mut pair), [format!("SyncAck 2 {}", b.drqid()), format!("SyncAck 1 {}", a.drqid())]);
    let part = |arrival, offset, last| Ok(Event::Continued { arrival, offset, len: 10, last });
    assert_eq!(give(&mut pair, rest(b.drqid(), 10, 30)), part(b, 10, false));
    assert_eq!(give(&mut pair, rest(a.drqid(), 10, 20)), part(a, 10, true));
    assert_eq!(give(&mut pair, rest(b.drqid(), 10, 30)), part(b, 20, true));
}

/// Proves the order of packets: short messages are sent in turn with the rest of a long one, and no first
/// packet overtakes another (IMPI 8.4).
#[test]
fn rest_of_a_long_message_delays_no_other_message() {
    let mut pair = pair();
    for (token, msglen) in [(1, 40), (2, 1)] {
        pair.send(standard(token, msglen)).unwrap();
    }
    assert_eq!(sent(&mut pair), ["DataSync 1 0 10/40 1@0", "Data 0 0 1/1 2@0 last"]);
    assert_eq!(give(&mut pair, syncack(1, 9)), Ok(Event::Matched { token: 1 }));
    for token in 3..5 {
        pair.send(standard(token, 1)).unwrap();
    }
    assert_eq!(
        sent(&mut pair),
        [
            "Data 1 9 10/40 1@10",
            "Data 0 0 1/1 3@0 last",
            "Data 1 9 10/40 1@20",
            "Data 0 0 1/1 4@0 last",
            "Data 1 9 10/40 1@30 last",
        ]
    );
}

/// Proves that ProtoAcks are sent first, also through a closed flow, and that answers are sent before
/// messages but wait for the flow (IMPI 9).
#[test]
fn protoacks_are_sent_first_and_answers_before_messages() {
    let mut pair = pair_with(1, 1);
    pair.send(standard(1, 0)).unwrap();
    pair.send(standard(2, 0)).unwrap();
    assert_eq!(sent(&mut pair), ["Data 0 0 0/0 1@0 last"]);
    let id = arrive(&mut pair, datasync(5, 0, 0));
    pair.matched(id).unwrap();
    assert_eq!(sent(&mut pair), ["ProtoAck"]);
    assert_eq!(give(&mut pair, theirs(PacketType::ProtoAck)), Ok(Event::Nothing));
    assert_eq!(sent(&mut pair), ["SyncAck 5 0"]);
    assert_eq!(give(&mut pair, theirs(PacketType::ProtoAck)), Ok(Event::Nothing));
    assert_eq!(sent(&mut pair), ["Data 0 0 0/0 2@0 last"]);
}

/// Proves that a long message arrives with marks of 1 and 1, one packet for each ProtoAck.
#[test]
fn long_message_passes_with_marks_of_one() {
    let mut pair = pair_with(1, 1);
    pair.send(standard(1, 25)).unwrap();
    assert_eq!(sent(&mut pair), ["DataSync 1 0 10/25 1@0"]);
    assert_eq!(give(&mut pair, syncack(1, 3)), Ok(Event::Matched { token: 1 }));
    assert_eq!(sent(&mut pair), ["ProtoAck"]);
    assert_eq!(give(&mut pair, theirs(PacketType::ProtoAck)), Ok(Event::Nothing));
    assert_eq!(sent(&mut pair), ["Data 1 3 10/25 1@10"]);
    assert_eq!(give(&mut pair, theirs(PacketType::ProtoAck)), Ok(Event::Nothing));
    assert_eq!(sent(&mut pair), ["Data 1 3 5/25 1@20 last"]);
}

/// Proves that a driver whose memory is full stops its peer, and later sends all ProtoAcks that are due.
#[test]
fn protoacks_that_the_driver_holds_are_released_together() {
    let mut pair = pair_with(2, 6);
    pair.hold_acks(true);
    for _ in 0..6 {
        assert!(matches!(give(&mut pair, data(0, 1, 1)), Ok(Event::Arrived(_))));
        assert!(!pair.wants_to_send());
    }
    pair.hold_acks(false);
    assert_eq!(sent(&mut pair), ["ProtoAck"; 3]);
}

/// Proves that unmatched messages are bounded: the peer is stopped at the limit, and continues when some are
/// matched.
#[test]
fn too_many_unmatched_messages_stop_the_peer() {
    let settings = Settings { ackmark: 1, hiwater: 2, arrivals_max: 8, ..SETTINGS };
    let mut pair = Pair::new(settings).unwrap();
    let mut ids = Vec::new();
    for srqid in 0..6 {
        ids.push(arrive(&mut pair, datasync(srqid, 0, 0)));
        assert_eq!(sent(&mut pair), ["ProtoAck"]);
    }
    assert!(!pair.is_holding_acks());
    ids.push(arrive(&mut pair, datasync(6, 0, 0)));
    assert!(pair.is_holding_acks());
    ids.push(arrive(&mut pair, datasync(7, 0, 0)));
    assert_eq!(sent(&mut pair), [""; 0]);
    assert!(give(&mut pair, datasync(8, 0, 0)).is_err(), "hiwater is reached");
    pair.matched(ids[0]).unwrap();
    assert!(pair.is_holding_acks());
    pair.matched(ids[1]).unwrap();
    assert_eq!(sent(&mut pair), ["ProtoAck", "ProtoAck", "SyncAck 0 0", "SyncAck 1 0"]);
}

/// Proves that queued answers are bounded too, at twice the limit of unmatched messages.
#[test]
fn too_many_queued_answers_stop_the_peer() {
    let settings = Settings { ackmark: 1, hiwater: 1, arrivals_max: 4, ..SETTINGS };
    let mut pair = Pair::new(settings).unwrap();
    let mut count = 0;
    while !pair.is_holding_acks() {
        let id = arrive(&mut pair, datasync(count, 0, 0));
        pair.matched(id).unwrap();
        pair.check_invariants();
        sent(&mut pair);
        count += 1;
    }
    // The first is sent, and waits for its ProtoAck.
    assert_eq!(count, 1 + 8);
    for _ in 0..8 {
        assert_eq!(give(&mut pair, theirs(PacketType::ProtoAck)), Ok(Event::Nothing));
        assert!(sent(&mut pair).iter().any(|line| line.starts_with("SyncAck")));
    }
    assert!(!pair.is_holding_acks());
}

/// Proves that two ends at their limits of unmatched messages acknowledge each other once all are matched,
/// and continue.
#[test]
fn two_full_ends_answer_all_messages_when_matched() {
    const COUNT: u64 = 100;
    for (ackmark, hiwater) in [(1, 1), (1, 2), (2, 4), (5, 10), (7, 7)] {
        let settings = Settings { ackmark, hiwater, arrivals_max: 4 * hiwater as usize, ..SETTINGS };
        let theirs = Settings { ours: settings.theirs, theirs: settings.ours, ..settings };
        let mut ends = [settings, theirs].map(|settings| Pair::new(settings).unwrap());
        for end in &mut ends {
            (1..=COUNT).for_each(|token| end.send(synchronous(token, 3)).unwrap());
        }
        let (mut unmatched, mut answered) = ([Vec::new(), Vec::new()], [0, 0]);
        for _ in 0..COUNT {
            while let Some(from) = (0..2).find(|end| ends[*end].wants_to_send()) {
                let to = 1 - from;
                let packet = ends[from].poll_transmit().expect("it wants to").packet;
                match ends[to].handle_packet(&packet).expect("an honest peer") {
                    Event::Arrived(arrival) => unmatched[to].extend(arrival.id),
                    Event::Matched { .. } => answered[to] += 1,
                    _ => {}
                }
                ends.iter().for_each(Pair::check_invariants);
            }
            for (end, unmatched) in ends.iter_mut().zip(&mut unmatched) {
                unmatched.drain(..).for_each(|id| end.matched(id).unwrap());
            }
        }
        assert_eq!(answered, [COUNT; 2], "{ackmark} and {hiwater}");
    }
}

/// Proves that only unmatched long messages count against the limit: the peer must send the rests of matched
/// and of discarded ones.
#[test]
fn matched_and_discarded_long_messages_do_not_stop_the_peer() {
    for is_wanted in [true, false] {
        let settings = Settings { ackmark: 1, hiwater: 1, arrivals_max: 4, ..SETTINGS };
        let mut pair = Pair::new(settings).unwrap();
        for srqid in 0..4 {
            let id = arrive(&mut pair, datasync(srqid, 10, 11));
            if is_wanted {
                pair.matched(id).unwrap()
            } else {
                pair.discard(id).unwrap()
            }
            let mut lines = sent(&mut pair);
            if lines.last().is_some_and(|line| line.starts_with("SyncAck")) {
                assert_eq!(give(&mut pair, theirs(PacketType::ProtoAck)), Ok(Event::Nothing));
                lines.extend(sent(&mut pair));
            }
            assert!(lines.contains(&"ProtoAck".to_owned()), "{srqid}: {lines:?}");
        }
        assert!(!pair.is_holding_acks());
    }
}

/// Proves that a process is not done while its peer waits for an answer or for the rest of a message.
#[test]
fn process_is_done_when_its_answers_are_sent() {
    let mut pair = pair();
    pair.finish();
    assert!(pair.is_done());
    let id = arrive(&mut pair, datasync(1, 1, 1));
    pair.matched(id).unwrap();
    assert!(!pair.is_done());
    assert_eq!(sent(&mut pair), ["SyncAck 1 0"]);
    assert!(pair.is_done());
}

/// Proves that the loss of a channel reports all pending messages and no others: a sent standard message is
/// complete.
#[test]
fn lost_channel_reports_all_pending_requests() {
    let mut pair = pair_with(4, 8);
    for send in [standard(9, 1), synchronous(6, 1), standard(5, 15)] {
        pair.send(send).unwrap();
    }
    assert_eq!(sent(&mut pair).len(), 3);
    pair.send(standard(4, 15)).unwrap();
    assert_eq!(sent(&mut pair).len(), 1);
    assert_eq!(give(&mut pair, syncack(4, 1)), Ok(Event::Matched { token: 4 }));
    let unmatched = arrive(&mut pair, data(1, 1, 1));
    let done = arrive(&mut pair, datasync(2, 1, 1));
    let going_on = arrive(&mut pair, datasync(3, 10, 11));
    let discarded = arrive(&mut pair, datasync(3, 10, 11));
    pair.matched(done).unwrap();
    pair.matched(going_on).unwrap();
    pair.discard(discarded).unwrap();
    pair.send(standard(3, 1)).unwrap();
    pair.send(standard(2, 1)).unwrap();
    let lost = Abandoned { sends: vec![2, 3, 4, 5, 6], receives: vec![going_on], unmatched: vec![unmatched] };
    assert_eq!(pair.abandon(), lost);
    pair.check_invariants();
    assert_eq!(sent(&mut pair).len(), 1, "a ProtoAck at most");
    assert_eq!(pair.abandon(), Abandoned::default());
}
