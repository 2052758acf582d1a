//! Cancel requests of the peer in every state of the receiver, and unrequested answers (IMPI 8.6).

use mpjdev_proto::impi::packet::PacketType;
use mpjdev_proto::impi::pair::Event;
use mpjdev_proto::impi::pair_error::{NoSuchArrival, ProtocolError};

use crate::script::*;

/// Proves that an answer without a request is refused in every state of a message.
#[test]
fn cancel_answer_without_a_request_is_refused() {
    for kind in [PacketType::CancelYes, PacketType::CancelNo] {
        let mut pair = pair();
        let refused = |pair: &mut _, srqid: u64| {
            assert_eq!(give(pair, reply(kind, srqid)), Err(ProtocolError::Answer { kind, srqid }));
        };
        refused(&mut pair, 0);
        for send in [standard(1, 1), synchronous(2, 1), standard(3, 30)] {
            pair.send(send).unwrap();
            refused(&mut pair, send.token);
            assert_eq!(sent(&mut pair).len(), 1);
            refused(&mut pair, send.token);
        }
    }
}

/// Proves that an unmatched message of any kind is withdrawn without a SyncAck, and that its id then names
/// nothing (rule 3).
#[test]
fn unmatched_message_is_withdrawn_by_a_cancel() {
    for packet in [data(7, 3, 3), datasync(7, 3, 3), datasync(7, 10, 25), datasync(0, 0, 0)] {
        let mut pair = pair();
        let id = arrive(&mut pair, packet);
        let withdraw = Event::Withdraw { arrival: id };
        assert_eq!(give(&mut pair, reply(PacketType::Cancel, packet.srqid)), Ok(withdraw));
        assert_eq!(pair.matched(id), Err(NoSuchArrival(id)));
        assert_eq!(pair.discard(id), Err(NoSuchArrival(id)));
        assert_eq!(sent(&mut pair), [format!("CancelYes {}", packet.srqid)]);
        let drqid = id.drqid();
        assert_eq!(give(&mut pair, rest(drqid, 1, 25)), Err(ProtocolError::Drqid { drqid }));
    }
}

/// Proves that a matched message is not cancelled, and that the transfer of a long message continues from
/// every state (rules 2 and 3).
#[test]
fn matched_message_is_not_withdrawn() {
    let cancel = reply(PacketType::Cancel, 7);
    for packet in [data(7, 3, 3), datasync(7, 3, 3), datasync(7, 10, 25)] {
        let mut pair = pair();
        let id = arrive(&mut pair, packet);
        pair.matched(id).unwrap();
        assert_eq!(give(&mut pair, cancel), Ok(Event::Nothing));
        let lines = sent(&mut pair);
        assert_eq!(lines.last().unwrap(), "CancelNo 7");
        assert_eq!(lines.len(), if packet.kind == PacketType::Data { 1 } else { 2 }, "behind the SyncAck");
        if packet.msglen == 25 {
            for (offset, len, last) in [(10, 10, false), (20, 5, true)] {
                assert_eq!(give(&mut pair, cancel), Ok(Event::Nothing));
                assert_eq!(sent(&mut pair), ["CancelNo 7"]);
                let event = Event::Continued { arrival: id, offset, len, last };
                assert_eq!(give(&mut pair, rest(id.drqid(), len, 25)), Ok(event));
            }
        }
        assert_eq!(give(&mut pair, cancel), Ok(Event::Nothing));
        assert_eq!(sent(&mut pair), ["CancelNo 7"]);
    }
}

/// Proves that every request gets exactly one answer, also for an unknown message or one without an id.
#[test]
fn cancel_request_gets_one_answer() {
    let mut pair = pair();
    assert!(matches!(give(&mut pair, data(0, 1, 1)), Ok(Event::Arrived(_))));
    for srqid in [0, 1, u64::MAX, 1] {
        assert_eq!(give(&mut pair, reply(PacketType::Cancel, srqid)), Ok(Event::Nothing));
    }
    let no = |srqid: u64| format!("CancelNo {srqid}");
    assert_eq!(sent(&mut pair), [no(0), no(1), no(u64::MAX), no(1)]);
}

/// Proves that a cancel withdraws only the latest of several unmatched messages with one srqid (rule 4): a
/// sender reuses an id when its request has ended, and an ended request cannot be cancelled.
#[test]
fn cancel_withdraws_the_latest_message_of_its_id() {
    let mut pair = pair();
    let ids = [data(7, 1, 1), datasync(7, 2, 2), datasync(6, 1, 1), datasync(7, 4, 4), data(8, 1, 1)]
        .map(|packet| arrive(&mut pair, packet));
    assert_eq!(give(&mut pair, reply(PacketType::Cancel, 7)), Ok(Event::Withdraw { arrival: ids[3] }));
    assert_eq!(give(&mut pair, reply(PacketType::Cancel, 7)), Ok(Event::Nothing));
    assert_eq!(sent(&mut pair), ["CancelYes 7", "CancelNo 7"]);
    for id in [ids[0], ids[1], ids[2], ids[4]] {
        assert_eq!(pair.matched(id), Ok(()));
    }
}

/// Proves that a cancel of a matched message withdraws no earlier unmatched message with the same srqid.
#[test]
fn cancel_of_a_matched_message_withdraws_no_earlier_one() {
    for later in [data(7, 1, 1), datasync(7, 1, 1), datasync(7, 10, 25)] {
        let mut pair = pair();
        let earlier = arrive(&mut pair, data(7, 3, 3));
        let id = arrive(&mut pair, later);
        pair.matched(id).unwrap();
        assert_eq!(give(&mut pair, reply(PacketType::Cancel, 7)), Ok(Event::Nothing));
        assert_eq!(sent(&mut pair).last().unwrap(), "CancelNo 7");
        assert_eq!(pair.matched(earlier), Ok(()));
    }
}

/// Proves that the latest message of a srqid can be withdrawn after an earlier one was matched.
#[test]
fn latest_message_is_withdrawn_after_an_earlier_match() {
    let mut pair = pair();
    let [earlier, latest] = [data(7, 3, 3), datasync(7, 1, 1)].map(|packet| arrive(&mut pair, packet));
    pair.matched(earlier).unwrap();
    assert_eq!(give(&mut pair, reply(PacketType::Cancel, 7)), Ok(Event::Withdraw { arrival: latest }));
}

/// Proves that a srqid names a new message after the earlier one was withdrawn.
#[test]
fn id_of_a_withdrawn_message_is_reused() {
    let mut pair = pair();
    let old = arrive(&mut pair, datasync(7, 1, 1));
    assert_eq!(give(&mut pair, reply(PacketType::Cancel, 7)), Ok(Event::Withdraw { arrival: old }));
    let new = arrive(&mut pair, datasync(7, 1, 1));
    pair.matched(new).unwrap();
    assert_eq!(sent(&mut pair), ["CancelYes 7", "SyncAck 7 0"]);
}

/// Proves that answers wait for the flow, in the order in which they arose.
#[test]
fn answers_wait_for_the_flow() {
    let mut pair = pair_with(1, 1);
    let id = arrive(&mut pair, datasync(7, 1, 1));
    assert_eq!(sent(&mut pair), ["ProtoAck"]);
    pair.matched(id).unwrap();
    assert_eq!(give(&mut pair, reply(PacketType::Cancel, 7)), Ok(Event::Nothing));
    assert_eq!(sent(&mut pair), ["ProtoAck", "SyncAck 7 0"]);
    assert_eq!(give(&mut pair, theirs(PacketType::ProtoAck)), Ok(Event::Nothing));
    assert_eq!(sent(&mut pair), ["CancelNo 7"]);
}
