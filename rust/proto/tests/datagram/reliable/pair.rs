//! Two connections without a network: orders of calls that a driver may choose.

use mpjdev_proto::completion::Completion;
use mpjdev_proto::datagram::extension::Grant;
use mpjdev_proto::datagram::header::Mode;
use mpjdev_proto::datagram::packet::Packet;
use mpjdev_proto::datagram::reliable::connection::{Connection, Disposition, Event};
use mpjdev_proto::datagram::reliable::error::{Cause, Failure, SendError};
use mpjdev_proto::datagram::reliable::message_rx::{Arrival, Delivery};
use mpjdev_proto::datagram::reliable::message_tx::{Cancel, Send};
use mpjdev_proto::datagram::reliable::settings::{Path, Settings};
use mpjdev_proto::datagram::reliable::time::{Nanos, SECOND};
use mpjdev_proto::datagram::sequence::FullSequence;

use super::world::short;

fn pair() -> [Connection; 2] {
    let settings = Settings::new(Path::PRIVATE);
    [(1, 2), (2, 1)]
        .map(|(ours, theirs)| Connection::new(Settings { ours, theirs, ..settings }, 0).expect("settings"))
}

/// The packets that are sent now.
fn packets(connection: &mut Connection, now: Nanos) -> Vec<Packet> {
    std::iter::from_fn(|| connection.poll_transmit(now)).map(|transmit| transmit.packet).collect()
}

/// Expires the timer of an end whose packets are lost; returns the packets that are sent then.
fn expire(connection: &mut Connection, now: &mut Nanos) -> Vec<Packet> {
    let at = connection.next_timeout().expect("a packet is in flight");
    assert!(at > *now, "a timer that is always due: {at} at {now}");
    *now = at;
    connection.handle_timeout(*now);
    connection.check();
    packets(connection, *now)
}

/// Loses the first of two packets and retransmits it; returns that packet and the time.
fn repair(a: &mut Connection, b: &mut Connection) -> (Packet, Nanos) {
    a.send(short(0)).expect("there is room");
    a.send(short(1)).expect("there is room");
    let [_, second] = packets(a, 0)[..] else { panic!("two packets") };
    assert!(matches!(b.handle_datagram(0, &second), Disposition::Buffer { .. }));
    let [answer] = packets(b, 0)[..] else { panic!("a gap is reported at once") };
    assert_eq!(a.handle_datagram(0, &answer), Disposition::Drop);
    let mut now = 0;
    let again = expire(a, &mut now);
    assert_eq!(again.len(), 1, "{again:?}");
    (again[0], now)
}

/// Proves that an ack sent between the delivery of a retransmission and that of the buffered packets is
/// followed by another one: another thread of the driver may send at that moment.
#[test]
fn buffered_packet_is_acked_after_an_ack_sent_before_it() {
    let [mut a, mut b] = pair();
    let (again, now) = repair(&mut a, &mut b);
    assert!(matches!(b.handle_datagram(now, &again), Disposition::Deliver(_)));
    let early = packets(&mut b, now);
    assert!(b.poll_buffered(now).is_some() && b.poll_buffered(now).is_none());
    let late = packets(&mut b, now);
    for packet in early.iter().chain(&late) {
        let _ = a.handle_datagram(now, packet);
        a.check();
    }
    assert!(!early.is_empty() && a.is_flushed(), "{early:?}, {late:?}");
}

/// Proves that a packet that one ack reports as received and a later one as missing is probed again, and that
/// no timer stays due without a packet to probe.
#[test]
fn packet_acked_and_later_reported_missing_is_probed_again() {
    let [mut a, mut b] = pair();
    let (again, mut now) = repair(&mut a, &mut b);
    assert!(matches!(b.handle_datagram(now, &again), Disposition::Deliver(_)));
    let early = packets(&mut b, now);
    for packet in &early {
        let _ = a.handle_datagram(now, packet);
        a.check();
    }
    for _ in 0..12 {
        let asked = expire(&mut a, &mut now);
        assert!(asked[0].seq().is_some(), "the second packet: {asked:?}");
    }
}

/// Proves that two datagrams are sent from the second expiry on, also if only one packet is in flight: a
/// packet without a message requests an ack as well.
#[test]
fn lone_packet_is_probed_by_two_datagrams_from_the_second_expiry_on() {
    let [mut a, _] = pair();
    a.send(short(0)).expect("there is room");
    assert_eq!(packets(&mut a, 0).len(), 1);
    let mut now = 0;
    assert_eq!(expire(&mut a, &mut now).len(), 1);
    for _ in 0..6 {
        let [probe, ask] = expire(&mut a, &mut now)[..] else { panic!("two datagrams") };
        assert!(probe.seq().is_some() && probe.extension.ack_req, "{probe:?}");
        assert!(ask.seq().is_none() && ask.extension.ack_req, "{ask:?}");
    }
}

/// Proves that a reset after both FINs closes in order: the peer may have exited, and another process may
/// have its port.
#[test]
fn reset_after_both_fins_is_no_failure() {
    let [mut a, mut b] = pair();
    a.close(SECOND);
    b.close(SECOND);
    for packet in packets(&mut a, 0) {
        let _ = b.handle_datagram(0, &packet);
    }
    for packet in packets(&mut b, 0) {
        let _ = a.handle_datagram(0, &packet);
    }
    assert_eq!((a.poll_event(), a.poll_event()), (Some(Event::PeerFinished), None));
    assert!(a.is_flushed() && !a.is_over(), "it lingers");
    let mut reset = Packet::default();
    (reset.extension.rst, reset.extension.connection) = (true, a.settings().theirs);
    let _ = a.handle_datagram(0, &reset);
    assert_eq!((a.poll_event(), a.poll_event()), (Some(Event::Closed), None));
}

/// Proves that a message is not cancelled while a packet of it may be retransmitted: an honest peer that
/// answers has received that packet.
#[test]
fn message_is_not_cancelled_while_its_packet_may_be_retransmitted() {
    let [mut a, _] = pair();
    let first = Send { completion: Completion::Synchronous, ..short(0) };
    a.send(first).expect("there is room");
    let [request] = packets(&mut a, 0)[..] else { panic!("a packet") };
    assert_eq!(a.cancel(first.token), Cancel::Asked);
    assert_eq!(packets(&mut a, 0).len(), 1);
    let message_id = request.extension.request.expect("it has an id").message_id;
    let first_theirs = u64::from(a.settings().first_theirs.bits());
    let answer = |seq: u64, ack: u64| {
        let mut packet = Packet::default();
        packet.header.mode = Mode::AntiSendOk;
        packet.number(Some(FullSequence::of(first_theirs + seq)), Some(FullSequence::of(ack)));
        packet.extension.connection = a.settings().ours;
        packet.extension.grant = Some(Grant { message_id, destination_id: 0, granted: 0 });
        packet
    };
    let first_ours = u64::from(a.settings().first_ours.bits());
    let (early, late) = (answer(0, first_ours), answer(1, first_ours + 2));
    let _ = a.handle_datagram(0, &early);
    assert_eq!((a.poll_event(), a.counters().violations), (None, 1));
    let _ = a.handle_datagram(0, &late);
    let token = first.token;
    let events = [a.poll_event(), a.poll_event(), a.poll_event()];
    assert_eq!(events, [Some(Event::Released { token }), Some(Event::Cancelled { token }), None]);
    a.check();
    assert!(a.is_flushed());
}

/// Proves that a reset with DUPLICATE closes an end in order only if it acks its FIN; else the connection
/// fails.
#[test]
fn reset_is_believed_only_if_it_names_the_last_packet() {
    // FIN has the number 1.
    for (closes, duplicate, ack, expected) in
        [(true, true, 2, true), (true, true, 1, false), (true, false, 2, false), (false, true, 1, false)]
    {
        let [mut a, _] = pair();
        a.send(short(0)).expect("there is room");
        if closes {
            a.close(SECOND);
        }
        assert_eq!(packets(&mut a, 0).len(), 1 + usize::from(closes));
        let mut reset = Packet::default();
        reset.number(None, Some(FullSequence::of(ack)));
        (reset.extension.rst, reset.extension.duplicate) = (true, duplicate);
        reset.extension.connection = a.settings().theirs;
        let _ = a.handle_datagram(0, &reset);
        let last = std::iter::from_fn(|| a.poll_event()).last();
        let is_well = last == Some(Event::Closed);
        assert_eq!(is_well, expected, "{closes} {duplicate} {ack}: {last:?}");
        assert!(
            is_well || matches!(last, Some(Event::Failed(Failure { cause: Cause::Reset, .. }))),
            "{last:?}"
        );
        assert_eq!(a.pending().is_empty(), expected);
    }
}

/// Proves that a refused send has no effect on the messages before and after it.
#[test]
fn refused_send_changes_nothing() {
    let settings = Settings { sends_max: 2, ..Settings::new(Path::PRIVATE) };
    let mut end = Connection::new(settings, 0).expect("settings");
    end.send(short(0)).expect("there is room");
    assert_eq!(end.send(Send { lrank: 2048, ..short(1) }), Err(SendError::Lrank { lrank: 2048 }));
    assert_eq!(end.send(Send { token: 0, ..short(1) }), Err(SendError::Token));
    end.send(short(1)).expect("there is room");
    assert_eq!(end.send(short(2)), Err(SendError::Full { sends_max: 2 }));
    end.check();
    assert_eq!(end.pending(), [1, 2]);
    let left: Vec<_> = packets(&mut end, 0).iter().map(|packet| packet.header.tag).collect();
    assert_eq!(left, [0, 1]);
    assert_eq!(end.send(short(2)), Err(SendError::Full { sends_max: 2 }), "they have not come");
    let mut ack = Packet::default();
    ack.number(None, Some(FullSequence::of(1)));
    let _ = end.handle_datagram(0, &ack);
    end.send(short(2)).expect("there is room");
    end.close(SECOND);
    assert_eq!(end.send(short(3)), Err(SendError::Finished));
    assert_eq!(end.pending(), [2, 3]);
}

/// Proves that a cancel that crosses the peer's FIN is refused, since no answer follows, and that it does not
/// delay the close until the deadline.
#[test]
fn cancel_that_crosses_the_fin_of_the_peer_is_refused() {
    for is_early in [true, false] {
        let [mut a, mut b] = pair();
        let first = Send { completion: Completion::Synchronous, ..short(0) };
        a.send(first).expect("there is room");
        let [message] = packets(&mut a, 0)[..] else { panic!("a packet") };
        let Disposition::Deliver(Delivery::Arrived(Arrival { id: Some(id), .. })) =
            b.handle_datagram(0, &message)
        else {
            panic!("it arrives")
        };
        b.matched(id).expect("it is unmatched");
        b.close(SECOND);
        let fin = packets(&mut b, 0);
        let token = first.token;
        if is_early {
            assert_eq!(a.cancel(token), Cancel::Asked);
        }
        for packet in &fin {
            let _ = a.handle_datagram(0, packet);
        }
        if !is_early {
            assert_eq!(a.cancel(token), Cancel::TooLate);
        }
        a.close(SECOND);
        a.check();
        let mut events: Vec<_> = std::iter::from_fn(|| a.poll_event()).collect();
        events.retain(|event| matches!(event, Event::NotCancelled { .. } | Event::Cancelled { .. }));
        assert_eq!(events.len(), usize::from(is_early), "{events:?}");
        let last = packets(&mut a, 0);
        assert!(last.iter().any(|packet| packet.extension.fin), "{is_early}: {last:?}");
    }
}

/// Proves that an expired timer is not due at once again when the driver's socket is full.
#[test]
fn expired_timer_is_not_due_at_once_on_a_full_socket() {
    let [mut a, _] = pair();
    a.send(short(0)).expect("there is room");
    assert_eq!(packets(&mut a, 0).len(), 1);
    let mut now = 0;
    for _ in 0..12 {
        let at = a.next_timeout().expect("a packet is in flight");
        assert!(at > now, "a timer that is always due: {at} at {now}");
        now = at;
        a.handle_timeout(now);
    }
    assert_eq!(packets(&mut a, now).len(), 2, "the probe and the request for an ack, once");
    assert!(!a.is_over());
}
