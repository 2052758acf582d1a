//! Messages of one packet in both directions.

use mpjdev_proto::impi::message_tx::{Body, Send};
use mpjdev_proto::impi::packet::{Packet, PacketType};
use mpjdev_proto::impi::pair::{Arrival, Event, Pair, Settings, Transmit};
use mpjdev_proto::impi::pair_error::{NoSuchArrival, SendError, SettingsError};

use crate::script::*;

/// Proves every field of a short message, and that a message of M octets is still short (IMPI 8.2).
#[test]
fn short_message_is_one_data_packet_without_an_id() {
    for msglen in [0, 1, u64::from(M) - 1, u64::from(M)] {
        let mut pair = pair();
        pair.send(Send { cid: 6, lsrank: -7, tag: 8, msglen, token: 99, ..Send::default() }).unwrap();
        let packet = Packet {
            len: msglen as u32,
            msglen,
            lsrank: -7,
            tag: 8,
            cid: 6,
            seqnum: 1,
            ..Packet::new(PacketType::Data, OURS, THEIRS)
        };
        let body = Some(Body { token: 99, offset: 0, len: msglen as u32, last: true });
        assert_eq!(pair.poll_transmit(), Some(Transmit { packet, body }));
        assert_eq!(sent(&mut pair), [""; 0]);
    }
}

/// Proves that a packet sent at once equals one sent through the queue.
#[test]
fn send_now_emits_the_packet_of_send() {
    let (mut now, mut queued) = (pair(), pair());
    for (token, msglen) in [(1, 0), (2, 7), (3, u64::from(M))] {
        let send = standard(token, msglen);
        queued.send(send).unwrap();
        assert_eq!(now.try_send_now(&send), queued.poll_transmit().map(|transmit| transmit.packet));
        now.check_invariants();
        assert_eq!(now.flow().sent(), queued.flow().sent());
    }
}

/// Proves that a message is not sent at once if it would overtake, if the flow is closed, or if it must be
/// stored.
#[test]
fn send_now_refuses_messages_that_wait_or_are_kept() {
    let short = standard(1, 1);
    let mut one = pair();
    for send in [synchronous(1, 1), standard(1, u64::from(M) + 1)] {
        assert_eq!(one.try_send_now(&send), None);
    }
    one.send(short).unwrap();
    assert_eq!(one.try_send_now(&short), None, "a message is before it");
    assert_eq!(sent(&mut one), ["Data 0 0 1/1 1@0 last"]);
    assert!(one.try_send_now(&short).is_some());

    let id = arrive(&mut one, datasync(9, 1, 1));
    one.matched(id).unwrap();
    assert_eq!(one.try_send_now(&short), None, "a SyncAck is before it");
    assert_eq!(sent(&mut one), ["SyncAck 9 0"]);

    let mut one = pair_with(1, 1);
    assert!(one.try_send_now(&short).is_some());
    assert_eq!(one.try_send_now(&short), None, "the flow is closed");
    assert_eq!(give(&mut one, theirs(PacketType::ProtoAck)), Ok(Event::Nothing));
    assert!(matches!(give(&mut one, data(0, 1, 1)), Ok(Event::Arrived(_))));
    assert_eq!(one.try_send_now(&short), None, "a ProtoAck is before it");
    assert_eq!(sent(&mut one), ["ProtoAck"]);
    assert!(one.try_send_now(&short).is_some());

    let mut one = pair();
    one.finish();
    assert_eq!(one.try_send_now(&short), None);
}

/// Proves that a synchronous send completes with the SyncAck and not before, whatever its other fields (IMPI
/// 8.2).
#[test]
fn short_synchronous_message_completes_with_its_syncack() {
    for msglen in [0, 3, u64::from(M)] {
        let mut pair = pair();
        pair.send(synchronous(7, msglen)).unwrap();
        assert_eq!(sent(&mut pair), [format!("DataSync 7 0 {msglen}/{msglen} 7@0 last")]);
        pair.finish();
        assert!(!pair.is_done());
        assert_eq!(give(&mut pair, syncack(7, 0xdead)), Ok(Event::Matched { token: 7 }));
        assert_eq!(sent(&mut pair), [""; 0]);
        assert!(pair.is_done());
    }
}

/// Proves the event of a short message, and that the driver calls nothing afterwards.
#[test]
fn short_message_without_an_id_stores_nothing() {
    let mut pair = pair();
    for len in [0, M] {
        let packet = Packet { lsrank: 2, tag: -3, cid: 5, seqnum: 77, ..data(0, len, u64::from(len)) };
        let arrival =
            Arrival { id: None, cid: 5, lsrank: 2, tag: -3, msglen: u64::from(len), len, synchronous: false };
        assert_eq!(give(&mut pair, packet), Ok(Event::Arrived(arrival)));
        assert!(!arrival.is_long());
    }
    assert_eq!(sent(&mut pair), [""; 0]);
}

/// Proves that the SyncAck is sent once, when the message is matched, with its srqid (IMPI 8.2).
#[test]
fn match_sends_a_syncack() {
    let mut pair = pair();
    let first = arrive(&mut pair, datasync(7, 3, 3));
    let second = arrive(&mut pair, datasync(u64::MAX, 0, 0));
    assert_eq!(sent(&mut pair), [""; 0]);
    pair.matched(second).unwrap();
    assert_eq!(sent(&mut pair), [format!("SyncAck {} 0", u64::MAX)]);
    pair.matched(first).unwrap();
    assert_eq!(sent(&mut pair), ["SyncAck 7 0"]);
    assert_eq!(pair.matched(first), Err(NoSuchArrival(first)));
    assert_eq!(sent(&mut pair), [""; 0]);
}

/// Proves that a standard message with an id can be named until it is matched, and that its match sends no
/// packet.
#[test]
fn match_of_a_standard_message_sends_nothing() {
    let mut pair = pair();
    let id = arrive(&mut pair, data(7, 3, 3));
    pair.matched(id).unwrap();
    assert_eq!(sent(&mut pair), [""; 0]);
    assert_eq!(pair.matched(id), Err(NoSuchArrival(id)));
    assert_eq!(pair.discard(id), Err(NoSuchArrival(id)));
}

/// Proves that the sender of a discarded message gets a SyncAck as for a match.
#[test]
fn discarded_message_gets_its_syncack() {
    let mut pair = pair();
    let id = arrive(&mut pair, datasync(7, 3, 3));
    pair.discard(id).unwrap();
    assert_eq!(sent(&mut pair), ["SyncAck 7 0"]);
    assert_eq!(pair.discard(id), Err(NoSuchArrival(id)));
}

/// Proves that consecutive messages have different ids, also in the same slot.
#[test]
fn id_of_a_completed_message_is_unknown() {
    let mut pair = pair();
    let mut ids = Vec::new();
    for _ in 0..10 {
        let id = arrive(&mut pair, datasync(1, 0, 0));
        assert!(ids.iter().all(|old| *old != id));
        for old in &ids {
            assert_eq!(pair.matched(*old), Err(NoSuchArrival(*old)));
        }
        pair.matched(id).unwrap();
        ids.push(id);
    }
}

/// Proves that messages are numbered in the order of sending, all packets of a message with the same number;
/// LAM's numbers differ, and no implementation uses them (IMPI 7.3).
#[test]
fn messages_are_numbered_in_order() {
    let mut pair = pair();
    for (token, msglen) in [(1, 1), (2, 25), (3, 1)] {
        pair.send(standard(token, msglen)).unwrap();
    }
    let mut numbers = Vec::new();
    while let Some(transmit) = pair.poll_transmit() {
        numbers.push(transmit.packet.seqnum);
    }
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(give(&mut pair, syncack(2, 9)), Ok(Event::Matched { token: 2 }));
    assert_eq!(pair.poll_transmit().unwrap().packet.seqnum, 2);
    assert_eq!(pair.try_send_now(&standard(4, 0)), None);
    assert_eq!(pair.poll_transmit().unwrap().packet.seqnum, 2);
    assert_eq!(pair.try_send_now(&standard(4, 0)).unwrap().seqnum, 4);
}

/// Proves that queued and active sends are bounded together, and that a complete one makes room.
#[test]
fn send_beyond_the_limit_is_refused() {
    let mut pair = Pair::new(Settings { sends_max: 2, ..SETTINGS }).unwrap();
    pair.send(synchronous(1, 0)).unwrap();
    assert_eq!(sent(&mut pair), ["DataSync 1 0 0/0 1@0 last"]);
    pair.send(standard(2, 0)).unwrap();
    assert_eq!(pair.send(standard(3, 0)), Err(SendError::Full { sends_max: 2 }));
    assert_eq!(sent(&mut pair), ["Data 0 0 0/0 2@0 last"]);
    pair.send(synchronous(3, 0)).unwrap();
    assert_eq!(sent(&mut pair), ["DataSync 3 0 0/0 3@0 last"]);
    assert_eq!(pair.send(standard(4, 0)), Err(SendError::Full { sends_max: 2 }));
    assert_eq!(give(&mut pair, syncack(3, 0)), Ok(Event::Matched { token: 3 }));
    assert_eq!(pair.send(standard(4, 0)), Ok(()));
    pair.finish();
    assert_eq!(pair.send(standard(5, 0)), Err(SendError::Finished));
}

/// Proves that contradictory settings are refused with their names.
#[test]
fn impossible_settings_are_refused() {
    let refused = |settings: Settings| Pair::new(settings).unwrap_err();
    assert_eq!(refused(Settings { maxdatalen: 0, ..SETTINGS }), SettingsError::Maxdatalen);
    assert_eq!(refused(Settings { sends_max: 0, ..SETTINGS }), SettingsError::SendsMax);
    assert!(matches!(refused(Settings { ackmark: 0, ..SETTINGS }), SettingsError::Marks(_)));
    assert!(matches!(refused(Settings { ackmark: 201, ..SETTINGS }), SettingsError::Marks(_)));
    let few = Settings { arrivals_max: 799, ..SETTINGS };
    assert_eq!(refused(few), SettingsError::ArrivalsMax { arrivals_max: 799, hiwater: 200 });
}
