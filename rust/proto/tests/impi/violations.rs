//! Violations of the protocol (IMPI 17).

use mpjdev_proto::impi::flow::FlowError;
use mpjdev_proto::impi::message_rx::ArrivalId;
use mpjdev_proto::impi::packet::{Packet, PacketType};
use mpjdev_proto::impi::pair::{Event, Pair, Settings};
use mpjdev_proto::impi::pair_error::ProtocolError;
use mpjdev_proto::impi::{Dialect, Proc};

use crate::script::*;

/// A machine that has received 10 of 25 octets of a long message.
fn receiving() -> (Pair, ArrivalId) {
    let mut pair = pair();
    let id = arrive(&mut pair, datasync(5, 10, 25));
    pair.matched(id).unwrap();
    assert_eq!(sent(&mut pair).len(), 1);
    (pair, id)
}

/// Proves that a packet from or to another process is refused, whatever its type.
#[test]
fn packet_of_other_processes_is_refused() {
    let other = Proc { pid: 23, ..THEIRS };
    let other_host = Proc { host_id: [0xff; 16], ..THEIRS };
    for kind in [0, 1, 2, 3, 4, 5, 6].map(|code| PacketType::from_code(code, Dialect::Draft).unwrap()) {
        for src in [other, other_host, OURS] {
            let packet = Packet { src, ..theirs(kind) };
            assert_eq!(give(&mut pair(), packet), Err(ProtocolError::Src { found: src, expected: THEIRS }));
        }
        for dest in [other, other_host, THEIRS] {
            let packet = Packet { dest, ..theirs(kind) };
            assert_eq!(give(&mut pair(), packet), Err(ProtocolError::Dest { found: dest, expected: OURS }));
        }
    }
}

/// Proves that lengths above maxdatalen or above msglen are refused in every kind of data packet.
#[test]
fn lengths_that_contradict_are_refused() {
    for packet in
        [data(0, 11, 11), data(1, 11, 11), datasync(1, 11, 11), datasync(1, 11, 30), data(1, 11, 30)]
    {
        assert_eq!(give(&mut pair(), packet), Err(ProtocolError::Len { len: 11, maxdatalen: M }));
    }
    for packet in [data(0, 3, 2), data(1, 3, 2), datasync(1, 3, 2)] {
        assert_eq!(give(&mut pair(), packet), Err(ProtocolError::LenAboveMsglen { len: 3, msglen: 2 }));
    }
    let most = Packet { len: u32::MAX, msglen: u64::MAX, ..datasync(1, 0, 0) };
    assert_eq!(give(&mut pair(), most), Err(ProtocolError::Len { len: u32::MAX, maxdatalen: M }));
}

/// Proves that data with an unknown drqid are refused: of no message, a short, withdrawn or complete one, or
/// one whose SyncAck is not sent.
#[test]
fn data_without_a_message_are_refused() {
    let refused = |pair: &mut Pair, drqid: u64| {
        let found = give(pair, rest(drqid, 1, 25));
        assert_eq!(found, Err(ProtocolError::Drqid { drqid }));
    };
    for drqid in [0, 1, 1 << 32, (1 << 32) + 1, u64::MAX] {
        refused(&mut pair(), drqid);
    }
    let (mut one, id) = receiving();
    for drqid in [id.drqid() + 1, id.drqid() + (1 << 32), id.drqid() | 1 << 63] {
        refused(&mut one, drqid);
    }
    assert!(give(&mut one, rest(id.drqid(), 10, 25)).is_ok());
    assert!(give(&mut one, rest(id.drqid(), 5, 25)).is_ok());
    refused(&mut one, id.drqid());

    let mut one = pair();
    let id = arrive(&mut one, datasync(5, 10, 25));
    refused(&mut one, id.drqid());
    one.matched(id).unwrap();
    refused(&mut one, id.drqid());
    assert_eq!(sent(&mut one).len(), 1);
    assert!(give(&mut one, rest(id.drqid(), 10, 25)).is_ok());

    let mut one = pair();
    let short = arrive(&mut one, datasync(5, 0, 0));
    refused(&mut one, short.drqid());
}

/// Proves that the parts of a message must have its length in sum, and all the same msglen.
#[test]
fn parts_with_a_wrong_sum_are_refused() {
    let (mut pair, id) = receiving();
    let drqid = id.drqid();
    assert_eq!(give(&mut pair, rest(drqid, 10, 26)), Err(ProtocolError::Msglen { found: 26, expected: 25 }));
    assert_eq!(give(&mut pair, rest(drqid, 0, 25)), Err(ProtocolError::Empty { drqid }));
    assert!(give(&mut pair, rest(drqid, 10, 25)).is_ok());
    let sum = ProtocolError::Sum { received: 20, len: 6, msglen: 25 };
    assert_eq!(give(&mut pair, rest(drqid, 6, 25)), Err(sum));
}

/// Proves that the largest msglen does not overflow.
#[test]
fn largest_msglen_is_counted() {
    let mut pair = pair();
    let id = arrive(&mut pair, datasync(5, 10, u64::MAX));
    pair.matched(id).unwrap();
    assert_eq!(sent(&mut pair).len(), 1);
    let event = Event::Continued { arrival: id, offset: 10, len: 10, last: false };
    assert_eq!(give(&mut pair, rest(id.drqid(), 10, u64::MAX)), Ok(event));
}

/// Proves that a SyncAck for a queued, standard, matched or complete message is refused.
#[test]
fn unexpected_syncacks_are_refused() {
    let refused = |pair: &mut Pair, srqid: u64| {
        let error = ProtocolError::Answer { kind: PacketType::SyncAck, srqid };
        assert_eq!(give(pair, syncack(srqid, 1)), Err(error));
    };
    let mut one = pair();
    refused(&mut one, 0);
    refused(&mut one, 7);
    for send in [synchronous(1, 1), standard(3, 1), standard(4, 11), standard(5, 11)] {
        one.send(send).unwrap();
        refused(&mut one, send.token);
    }
    assert_eq!(sent(&mut one).len(), 4);
    refused(&mut one, 3);
    for token in [1, 4, 5] {
        assert_eq!(give(&mut one, syncack(token, 1)), Ok(Event::Matched { token }));
        refused(&mut one, token);
    }
    assert_eq!(sent(&mut one).len(), 2);
    refused(&mut one, 4);
}

/// Proves that every counted packet beyond hiwater is refused.
#[test]
fn packets_beyond_hiwater_are_refused() {
    let violation = Err(ProtocolError::Flow(FlowError::Violation { hiwater: 2 }));
    for late in [data(0, 1, 1), data(1, 1, 1), datasync(1, 1, 1), syncack(1, 0), reply(PacketType::Cancel, 1)]
    {
        let mut pair = pair_with(2, 2);
        pair.hold_acks(true);
        assert!(give(&mut pair, data(0, 0, 0)).is_ok());
        assert!(give(&mut pair, reply(PacketType::Cancel, 1)).is_ok());
        assert_eq!(give(&mut pair, late), violation, "{:?}", late.kind);
        assert_eq!(give(&mut pair, theirs(PacketType::Fini)), Ok(Event::Fini), "not counted");
    }
}

/// Proves that a peer cannot begin messages without end whose rests never come.
#[test]
fn messages_beyond_the_limit_of_discarded_ones_are_refused() {
    let mut pair = Pair::new(Settings { hiwater: 2, ackmark: 1, arrivals_max: 8, ..SETTINGS }).unwrap();
    for srqid in 0..9 {
        let id = arrive(&mut pair, datasync(srqid, 10, 25));
        pair.discard(id).unwrap();
        assert_eq!(sent(&mut pair).len(), 2);
        assert_eq!(give(&mut pair, theirs(PacketType::ProtoAck)), Ok(Event::Nothing));
    }
    assert_eq!(give(&mut pair, datasync(9, 10, 25)), Err(ProtocolError::Drained { most: 8 }));
}

/// Proves that a ProtoAck for unsent packets is refused, and that a ProtoAck is not counted.
#[test]
fn protoacks_for_unsent_packets_are_refused() {
    let mut pair = pair_with(2, 2);
    let error = |sent| Err(ProtocolError::Flow(FlowError::TooManyAcks { ackmark: 2, sent }));
    assert_eq!(give(&mut pair, theirs(PacketType::ProtoAck)), error(0));
    assert!(pair.try_send_now(&standard(1, 0)).is_some());
    assert_eq!(give(&mut pair, theirs(PacketType::ProtoAck)), error(1));
    assert!(pair.try_send_now(&standard(1, 0)).is_some());
    assert_eq!(give(&mut pair, theirs(PacketType::ProtoAck)), Ok(Event::Nothing));
    assert_eq!((pair.flow().sent(), pair.flow().rcvd()), (0, 0));
}

/// Proves that errors name the field and its value.
#[test]
fn errors_name_the_field_and_its_number() {
    let text = |error: ProtocolError| error.to_string();
    assert_eq!(text(ProtocolError::Len { len: 11, maxdatalen: 10 }), "packet len 11 is above maxdatalen, 10");
    let src = ProtocolError::Src { found: Proc::default(), expected: THEIRS };
    assert_eq!(
        text(src),
        "packet src is 00000000000000000000000000000000/0, expected 746865697220686f7374206964202020/-22"
    );
    let answer = ProtocolError::Answer { kind: PacketType::SyncAck, srqid: 16 };
    assert_eq!(text(answer), "no message with srqid 0x10 waits for SyncAck");
}
