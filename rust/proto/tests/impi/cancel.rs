//! Cancel requests in every state of the sender and of the receiver (IMPI 8.6).

use mpjdev_proto::impi::cancel::Cancelled;
use mpjdev_proto::impi::message_tx::Send;
use mpjdev_proto::impi::packet::PacketType;
use mpjdev_proto::impi::pair::{Event, Pair};
use mpjdev_proto::impi::pair_error::{NoSuchArrival, ProtocolError};

use crate::script::*;

const YES: PacketType = PacketType::CancelYes;
const NO: PacketType = PacketType::CancelNo;

/// A machine whose message has left, and whose cancel request for it too.
#[track_caller]
fn asked(send: Send) -> Pair {
    let mut pair = pair();
    pair.send(send).unwrap();
    assert_eq!(sent(&mut pair).len(), 1);
    assert_eq!(pair.cancel(send.token), Cancelled::Asked);
    assert_eq!(sent(&mut pair), [format!("Cancel {}", send.token)]);
    pair
}

#[track_caller]
fn refused(pair: &mut Pair, kind: PacketType, srqid: u64) {
    assert_eq!(give(pair, reply(kind, srqid)), Err(ProtocolError::Answer { kind, srqid }));
}

// The sender.

/// Proves that what has not left is taken out here, that nothing of it is sent, and that the order of the
/// others stays.
#[test]
fn a_message_that_has_not_left_is_cancelled_here() {
    let mut pair = pair();
    for send in [standard(1, 1), synchronous(2, 1), standard(3, 30), cancellable(4, 1), standard(5, 1)] {
        pair.send(send).unwrap();
    }
    for token in [2, 3, 4] {
        assert_eq!(pair.cancel(token), Cancelled::Here);
        assert_eq!(pair.cancel(token), Cancelled::TooLate);
    }
    assert_eq!(sent(&mut pair), ["Data 0 0 1/1 1@0 last", "Data 0 0 1/1 5@0 last"]);
}

/// Proves that there is nothing to ask for a message that is complete: short and standard, matched, handed
/// over, unknown.
#[test]
fn a_message_that_is_matched_or_complete_is_not_cancelled() {
    let mut pair = pair();
    for send in [standard(1, 1), synchronous(2, 1), standard(3, 30), cancellable(4, 1)] {
        pair.send(send).unwrap();
    }
    assert_eq!(sent(&mut pair).len(), 4);
    assert_eq!(give(&mut pair, syncack(2, 0)), Ok(Event::Matched { token: 2 }));
    assert_eq!(give(&mut pair, syncack(3, 8)), Ok(Event::Matched { token: 3 }));
    pair.forget(4);
    for token in [1, 2, 3, 4, 99] {
        assert_eq!(pair.cancel(token), Cancelled::TooLate, "{token}");
    }
    assert_eq!(sent(&mut pair), ["Data 3 8 10/30 3@10", "Data 3 8 10/30 3@20 last"]);
    assert_eq!(pair.cancel(3), Cancelled::TooLate);
    assert_eq!(sent(&mut pair), [""; 0]);
}

/// Proves that a message which the peer gives back is complete, and that its id may be used again (rule 6).
#[test]
fn cancelled_message_frees_its_id() {
    for send in [cancellable(7, 3), synchronous(7, 3), synchronous(7, 0), standard(7, 30)] {
        let mut pair = asked(send);
        assert_eq!(give(&mut pair, reply(YES, 7)), Ok(Event::Cancelled { token: 7 }));
        refused(&mut pair, YES, 7);
        refused(&mut pair, NO, 7);
        assert_eq!(
            give(&mut pair, syncack(7, 1)),
            Err(ProtocolError::Answer { kind: PacketType::SyncAck, srqid: 7 })
        );
        pair.send(synchronous(7, 1)).unwrap();
        assert_eq!(sent(&mut pair), ["DataSync 7 0 1/1 7@0 last"]);
        assert_eq!(give(&mut pair, syncack(7, 0)), Ok(Event::Matched { token: 7 }));
        pair.finish();
        assert!(pair.is_done());
    }
}

/// Proves the race of rule 5: the SyncAck crosses the Cancel, counts, and is followed by the refusal.
#[test]
fn a_syncack_that_crosses_the_cancel_counts() {
    let mut one = asked(synchronous(7, 3));
    assert_eq!(give(&mut one, syncack(7, 0)), Ok(Event::Matched { token: 7 }));
    one.finish();
    assert!(!one.is_done(), "the answer is still to come");
    assert_eq!(one.cancel(7), Cancelled::Asked);
    assert_eq!(give(&mut one, reply(NO, 7)), Ok(Event::NotCancelled { token: 7 }));
    assert!(one.is_done());

    let mut one = asked(standard(7, 25));
    assert_eq!(give(&mut one, syncack(7, 5)), Ok(Event::Matched { token: 7 }));
    assert_eq!(one.poll_transmit().unwrap().body.unwrap().offset, 10);
    assert_eq!(give(&mut one, reply(NO, 7)), Ok(Event::NotCancelled { token: 7 }));
    assert_eq!(sent(&mut one), ["Data 7 5 5/25 7@20 last"]);
    one.finish();
    assert!(one.is_done());

    let mut one = asked(standard(7, 25));
    assert_eq!(give(&mut one, syncack(7, 5)), Ok(Event::Matched { token: 7 }));
    assert_eq!(sent(&mut one).len(), 2);
    one.finish();
    assert!(!one.is_done(), "all is handed over, the answer is still to come");
    assert_eq!(give(&mut one, reply(NO, 7)), Ok(Event::NotCancelled { token: 7 }));
    assert!(one.is_done());
}

/// Proves that a CancelNo for an unmatched message, as LAM sends it, changes nothing: the send stays pending,
/// and no other Cancel is sent.
#[test]
fn refused_cancel_before_the_match_keeps_the_send() {
    for (send, parts) in [(synchronous(7, 3), 0), (standard(7, 25), 2)] {
        let mut pair = asked(send);
        assert_eq!(give(&mut pair, reply(NO, 7)), Ok(Event::NotCancelled { token: 7 }));
        assert_eq!(pair.cancel(7), Cancelled::TooLate);
        refused(&mut pair, NO, 7);
        assert_eq!(give(&mut pair, syncack(7, 5)), Ok(Event::Matched { token: 7 }));
        assert_eq!(sent(&mut pair).len(), parts);
        pair.finish();
        assert!(pair.is_done());
    }
}

/// Proves that a standard message that was refused is complete, and its id free.
#[test]
fn a_short_standard_message_that_is_refused_is_complete() {
    let mut pair = asked(cancellable(7, 3));
    assert_eq!(give(&mut pair, reply(NO, 7)), Ok(Event::NotCancelled { token: 7 }));
    assert_eq!(pair.cancel(7), Cancelled::TooLate);
    refused(&mut pair, NO, 7);
    pair.send(cancellable(7, 3)).unwrap();
    assert_eq!(sent(&mut pair), ["Data 7 0 3/3 7@0 last"]);
}

/// Proves that to ask twice is one packet, before and after it has left.
#[test]
fn repeated_cancel_sends_one_request() {
    let mut pair = pair();
    pair.send(synchronous(7, 3)).unwrap();
    assert_eq!(sent(&mut pair).len(), 1);
    assert_eq!(pair.cancel(7), Cancelled::Asked);
    assert_eq!(pair.cancel(7), Cancelled::Asked);
    assert_eq!(sent(&mut pair), ["Cancel 7"]);
    assert_eq!(pair.cancel(7), Cancelled::Asked);
    assert_eq!(sent(&mut pair), [""; 0]);
}

/// Proves that a request that waits for the flow is counted and answered like any other, also when the
/// SyncAck comes first.
#[test]
fn cancel_request_behind_flow_control_is_sent() {
    let mut pair = pair_with(1, 1);
    pair.send(synchronous(7, 3)).unwrap();
    assert_eq!(sent(&mut pair).len(), 1);
    assert_eq!(pair.cancel(7), Cancelled::Asked);
    assert_eq!(sent(&mut pair), [""; 0]);
    refused(&mut pair, NO, 7);
    assert_eq!(sent(&mut pair), ["ProtoAck"]);
    assert_eq!(give(&mut pair, syncack(7, 0)), Ok(Event::Matched { token: 7 }));
    assert_eq!(give(&mut pair, theirs(PacketType::ProtoAck)), Ok(Event::Nothing));
    assert_eq!(sent(&mut pair), ["ProtoAck", "Cancel 7"]);
    assert_eq!(give(&mut pair, reply(NO, 7)), Ok(Event::NotCancelled { token: 7 }));
    pair.finish();
    assert_eq!(sent(&mut pair), ["ProtoAck"]);
    assert!(pair.is_done());
}

/// Proves that an answer needs a question, and that a message cannot both be matched and come back.
#[test]
fn unexpected_cancel_answers_are_refused() {
    for kind in [YES, NO] {
        let mut pair = pair();
        refused(&mut pair, kind, 0);
        for send in [cancellable(1, 1), synchronous(2, 1), standard(3, 30)] {
            pair.send(send).unwrap();
            refused(&mut pair, kind, send.token);
            assert_eq!(sent(&mut pair).len(), 1);
            refused(&mut pair, kind, send.token);
        }
    }
    for send in [synchronous(7, 3), standard(7, 30)] {
        let mut pair = asked(send);
        assert!(give(&mut pair, syncack(7, 0)).is_ok());
        refused(&mut pair, YES, 7);
    }
}

/// Proves that a token stays in use until the answer, also when the request is complete for everybody else.
#[test]
fn forgotten_message_is_kept_until_its_answer() {
    let mut one = asked(cancellable(7, 3));
    one.forget(7);
    assert_eq!(give(&mut one, reply(YES, 7)), Ok(Event::Cancelled { token: 7 }));

    let mut one = pair();
    one.send(synchronous(8, 3)).unwrap();
    assert_eq!(sent(&mut one).len(), 1);
    one.forget(8);
    assert_eq!(give(&mut one, syncack(8, 0)), Ok(Event::Matched { token: 8 }), "means nothing for it");
}

// The receiver.

/// Proves that what waits here is given back, whatever it is, without a SyncAck, and that its id names
/// nothing any more (rule 3).
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

/// Proves that every request gets exactly one answer, also for a message that was never there, or had no id.
#[test]
fn every_request_gets_one_answer() {
    let mut pair = pair();
    assert!(matches!(give(&mut pair, data(0, 1, 1)), Ok(Event::Arrived(_))));
    for srqid in [0, 1, u64::MAX, 1] {
        assert_eq!(give(&mut pair, reply(PacketType::Cancel, srqid)), Ok(Event::Nothing));
    }
    let no = |srqid: u64| format!("CancelNo {srqid}");
    assert_eq!(sent(&mut pair), [no(0), no(1), no(u64::MAX), no(1)]);
}

/// Proves that of several messages that wait under one id the latest is meant, and no other after it (rule
/// 4): an id is used again when its request has ended, and the request of an ended one cannot be cancelled.
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

/// Proves that the latest is meant also when it is matched: then an earlier one with its id, which waits,
/// stays where it is.
#[test]
fn earlier_message_is_not_withdrawn_for_a_later_one() {
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

/// Proves that the latest is still known when an earlier one with its id is matched first.
#[test]
fn message_is_withdrawn_although_an_earlier_one_is_matched() {
    let mut pair = pair();
    let [earlier, latest] = [data(7, 3, 3), datasync(7, 1, 1)].map(|packet| arrive(&mut pair, packet));
    pair.matched(earlier).unwrap();
    assert_eq!(give(&mut pair, reply(PacketType::Cancel, 7)), Ok(Event::Withdraw { arrival: latest }));
}

/// Proves that an id that came back is a new message's.
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
