//! The rules of acks and sent packets (5.3 to 5.8), one by one, without a network.

use mpjdev_proto::completion::Completion;
use mpjdev_proto::datagram::extension::{Extension, Request, Sack};
use mpjdev_proto::datagram::header::Header;
use mpjdev_proto::datagram::packet::Packet;
use mpjdev_proto::datagram::reliable::connection::{Connection, Disposition, Event};
use mpjdev_proto::datagram::reliable::message_rx::{ArrivalId, Delivery};
use mpjdev_proto::datagram::reliable::message_tx::Send;
use mpjdev_proto::datagram::reliable::settings::{DATAGRAM_LEN_MIN, DEAD_AFTER, Path, Settings};
use mpjdev_proto::datagram::reliable::time::{MILLISECOND, Nanos, SECOND};
use mpjdev_proto::datagram::sequence::FullSequence;

use super::world::short;

const RTT: Nanos = 10 * MILLISECOND;

fn settings() -> Settings {
    Settings { first_rtt: Some(RTT), ..Settings::new(Path::PRIVATE) }
}

fn end(settings: Settings) -> Connection {
    Connection::new(settings, 0).expect("settings")
}

/// A packet of the peer with these numbers.
fn packet(seq: Option<u64>, ack: Option<u64>, extension: Extension) -> Packet {
    let len = if seq.is_some() && !extension.fin { 8 } else { 0 };
    let mut packet = Packet { header: Header { len, ..Header::default() }, extension };
    packet.number(seq.map(FullSequence::of), ack.map(FullSequence::of));
    packet
}

fn data(seq: u64) -> Packet {
    packet(Some(seq), None, Extension::new(0, 64))
}

fn ack(ack: u64) -> Packet {
    packet(None, Some(ack), Extension { delay_us: Some(0), ..Extension::new(0, 64) })
}

fn nak(ack: u64, sack: u64) -> Packet {
    let sack = Sack::new(&[sack]);
    let extension = Extension { nak: true, sack: Some(sack), delay_us: Some(0), ..Extension::new(0, 64) };
    packet(None, Some(ack), extension)
}

/// All packets that are sent now, in any number of bursts.
fn left(connection: &mut Connection, now: Nanos) -> Vec<Packet> {
    let mut all = Vec::new();
    loop {
        connection.handle_drained(now);
        let before = all.len();
        all.extend(std::iter::from_fn(|| connection.poll_transmit(now)).map(|transmit| transmit.packet));
        connection.check();
        if all.len() == before {
            return all;
        }
    }
}

fn send(connection: &mut Connection, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| connection.send(short(number)).expect("there is room"));
}

fn seqs(packets: &[Packet]) -> Vec<u32> {
    packets.iter().filter_map(Packet::seq).map(FullSequence::bits).collect()
}

fn arrived(disposition: Disposition) -> ArrivalId {
    match disposition {
        Disposition::Deliver(Delivery::Arrived(arrival)) => arrival.id.expect("it has one"),
        other => panic!("no message begins: {other:?}"),
    }
}

/// Proves which packets are acked at once (5.6).
#[test]
fn each_kind_of_packet_has_its_ack_urgency() {
    let flags = |set: fn(&mut Extension)| {
        let mut extension = Extension::new(0, 64);
        set(&mut extension);
        extension
    };
    let asked = flags(|extension| extension.ack_req = true);
    let fin = flags(|extension| extension.fin = true);
    let cases: [(&str, &[Packet], Packet, bool); 9] = [
        ("the next", &[], data(0), false),
        ("no packet, no question", &[], ack(0), false),
        ("it asks", &[], packet(Some(0), None, asked), true),
        ("a question alone", &[], packet(None, Some(0), asked), true),
        ("FIN", &[], packet(Some(0), None, fin), true),
        ("behind a gap", &[], data(2), true),
        ("into a gap, not all of it", &[data(2)], data(0), true),
        ("twice", &[data(0)], data(0), true),
        ("beyond the window", &[], data(64), true),
    ];
    for (what, before, packet, expected) in cases {
        let mut end = end(settings());
        for packet in before {
            let _ = end.handle_datagram(0, packet);
        }
        // The acks of those.
        let _ = left(&mut end, SECOND);
        let _ = end.handle_datagram(SECOND, &packet);
        let acks = left(&mut end, SECOND);
        assert_eq!(!acks.is_empty(), expected, "{what}: {acks:?}");
        let is_twice = what == "twice";
        assert!(acks.iter().all(|ack| ack.extension.duplicate == is_twice), "{what}: {acks:?}");
        assert_eq!(left(&mut end, SECOND), [], "{what}: once is enough");
        assert_eq!(end.counters().beyond_window, u64::from(what == "beyond the window"), "{what}");
    }
}

/// Proves that a quarter of the window is acknowledged at once, and less after max_ack_delay (5.6).
#[test]
fn unacked_quarter_of_the_window_is_acked_at_once() {
    let mut end = end(settings());
    for seq in 0..15 {
        let _ = end.handle_datagram(0, &data(seq));
        assert_eq!(left(&mut end, 0), [], "{seq}");
    }
    assert_eq!(end.next_timeout(), Some(MILLISECOND));
    let _ = end.handle_datagram(0, &data(15));
    assert_eq!(left(&mut end, 0).len(), 1);
    let _ = end.handle_datagram(SECOND, &data(16));
    end.handle_timeout(SECOND + MILLISECOND - 1);
    assert_eq!(std::iter::from_fn(|| end.poll_transmit(SECOND)).count(), 0);
    end.handle_timeout(SECOND + MILLISECOND);
    assert_eq!(left(&mut end, SECOND + MILLISECOND).len(), 1);
}

/// Proves that a reopened window is sent at once (5.4), and that an early FIN buffers no octets.
#[test]
fn reopened_window_is_sent_at_once() {
    let mut end = end(Settings { receive_window: 4, ..settings() });
    end.hold(true);
    for seq in 0..4 {
        let _ = end.handle_datagram(0, &data(seq));
    }
    let closed = left(&mut end, 0);
    assert_eq!(closed.last().map(|ack| ack.extension.window), Some(0), "{closed:?}");
    end.hold(false);
    let opened = left(&mut end, 0);
    assert_eq!(opened.iter().map(|ack| ack.extension.window).collect::<Vec<_>>(), [4], "{opened:?}");
    let fin = packet(Some(6), None, Extension { fin: true, ..Extension::new(0, 64) });
    assert_eq!(end.handle_datagram(0, &fin), Disposition::Drop);
}

/// Proves that no more packets are in flight than both windows permit, and which of them request an ack (5.4,
/// 5.6).
#[test]
fn each_quarter_of_a_full_window_requests_an_ack() {
    for (own, theirs, expected) in [(64, 16, 16), (8, 64, 8), (4, 1, 1), (4, 0, 0)] {
        let path = Path { window: own, ..Path::PRIVATE };
        // Without a measured round trip there is no pacing.
        let mut end = end(Settings { path, send_window: theirs, first_rtt: None, ..settings() });
        send(&mut end, 0..100);
        let packets = left(&mut end, 0);
        assert_eq!(packets.len(), expected, "{own}, {theirs}");
        let asking: Vec<usize> =
            (0..).zip(&packets).filter(|(_, p)| p.extension.ack_req).map(|(k, _)| k).collect();
        let quarter = (expected / 4).max(if expected < 4 { 1 } else { 2 });
        let all: Vec<usize> = (1..).map(|k| k * quarter - 1).take_while(|k| *k < expected).collect();
        assert_eq!(asking, all, "{own}, {theirs}");
        let mut now = 0;
        if expected > 0 {
            // Every retransmission requests an ack.
            now = end.next_timeout().expect("a timer");
            end.handle_timeout(now);
            let again = left(&mut end, now);
            assert!(seqs(&again) == [0] && again[0].extension.ack_req && again.len() == 1, "{again:?}");
            assert_eq!(end.counters().window_probes, 0, "the packets in flight bring the window");
        }
        let _ = end.handle_datagram(now, &packet(None, Some(expected as u64), Extension::new(0, 3)));
        if u32::from(theirs) < own {
            assert_eq!(seqs(&left(&mut end, now)).len(), 3, "{own}, {theirs}");
        }
    }
}

/// Proves that a packet is lost when a packet sent three later is acked, or after 9/8 of a round trip, and
/// not before; and that its retransmission requests an ack (5.5).
#[test]
fn packet_is_lost_three_behind_or_a_round_trip_behind_an_acked_one() {
    let mut end = end(settings());
    send(&mut end, 0..4);
    assert_eq!(left(&mut end, 0).len(), 4);
    let _ = end.handle_datagram(RTT, &nak(0, 0b10));
    assert_eq!(left(&mut end, RTT), [], "two later");
    let at = end.next_timeout().expect("a timer");
    assert_eq!(at, RTT + RTT / 8);
    let mut later = end;
    let mut end = self::end(settings());
    send(&mut end, 0..4);
    assert_eq!(left(&mut end, 0).len(), 4);
    let _ = end.handle_datagram(RTT, &nak(0, 0b100));
    let again = left(&mut end, RTT);
    assert!(seqs(&again) == [0] && again[0].extension.ack_req, "three later: {again:?}");
    later.handle_timeout(at - 1);
    assert_eq!(left(&mut later, at - 1), []);
    later.handle_timeout(at);
    assert_eq!(seqs(&left(&mut later, at)), [0, 1], "an eighth later");
    assert_eq!(later.counters().timeouts, 0);
}

/// Proves that the ack of a retransmitted packet is no sample (Karn) and, if it is early, does not count for
/// the retransmission; that it ends the backoff; and that only the largest acked number gives a sample (5.3).
#[test]
fn ack_of_a_retransmitted_packet_is_no_rtt_sample() {
    let mut end = end(settings());
    send(&mut end, 0..6);
    assert_eq!(left(&mut end, 0).len(), 6);
    let before = (end.counters().smoothed_rtt, end.pto());
    let now = end.next_timeout().expect("a timer");
    end.handle_timeout(now);
    assert_eq!(seqs(&left(&mut end, now)), [0]);
    assert_eq!(end.pto(), 2 * before.1);
    let _ = end.handle_datagram(now + RTT / 10, &ack(1));
    assert_eq!((end.counters().smoothed_rtt, end.pto()), before);
    assert_eq!(left(&mut end, now + RTT / 10), [], "nothing is lost by that");
    let mut end = self::end(settings());
    send(&mut end, 0..3);
    assert_eq!(left(&mut end, 0).len(), 3);
    let _ = end.handle_datagram(RTT, &nak(0, 0b10));
    let _ = end.handle_datagram(RTT + RTT / 9, &ack(3));
    assert_eq!(end.counters().smoothed_rtt, RTT, "the latest arrived before");
    assert!(end.is_flushed());
}

/// Proves that a window that is not used does not grow (5.7).
#[test]
fn unused_window_does_not_grow() {
    let mut end = end(Settings { first_rtt: Some(RTT), ..Settings::new(Path::UNKNOWN) });
    let window = end.counters().congestion_window;
    for number in 0..100 {
        send(&mut end, number..number + 1);
        assert_eq!(left(&mut end, number * SECOND).len(), 1);
        let _ = end.handle_datagram(number * SECOND + RTT, &ack(number + 1));
    }
    assert_eq!(end.counters().congestion_window, window);
}

/// Proves that a peer that sends packets is not dead, even if it acks nothing for `dead_after` (5.8).
#[test]
fn peer_that_sends_packets_is_not_failed() {
    let mut end = end(settings());
    send(&mut end, 0..1);
    assert_eq!(left(&mut end, 0).len(), 1);
    let heard_at = DEAD_AFTER - SECOND;
    let _ = end.handle_datagram(heard_at, &data(0));
    for (now, expected) in [(DEAD_AFTER + SECOND, false), (heard_at + DEAD_AFTER, true)] {
        end.handle_timeout(now);
        let _ = left(&mut end, now);
        assert_eq!(end.is_over(), expected, "{now}");
    }
}

/// Proves that FIN requests an ack, and waits for unmatched messages and for matched ones that are incomplete
/// (5.8).
#[test]
fn fin_waits_for_incomplete_messages() {
    let has_fin = |packets: &[Packet]| packets.iter().any(|packet| packet.extension.fin);
    let mut a = end(settings());
    let mut b = end(settings());
    a.send(Send { len: 5000, completion: Completion::Synchronous, ..short(0) }).expect("there is room");
    a.close(SECOND);
    let request = left(&mut a, 0);
    assert!(request.len() == 1 && !has_fin(&request), "{request:?}");
    let id = arrived(b.handle_datagram(0, &request[0]));
    b.matched(id).expect("it waits for that");
    b.close(SECOND);
    let grant = left(&mut b, 0);
    assert!(grant.len() == 1 && !has_fin(&grant), "{grant:?}");
    let _ = a.handle_datagram(0, &grant[0]);
    let rest = left(&mut a, 0);
    let (fin, parts) = rest.split_last().expect("the rest");
    assert!(fin.extension.fin && fin.extension.ack_req && !has_fin(parts), "{rest:?}");
    for packet in &rest {
        let _ = b.handle_datagram(0, packet);
    }
    assert!(has_fin(&left(&mut b, 0)));
}

/// Proves that a repeated FIN extends the linger time up to the deadline, and that no answer is sent after
/// the own FIN.
#[test]
fn repeated_fin_extends_the_linger_time() {
    for (deadline, expected) in [(SECOND, 2), (60 * MILLISECOND, 1)] {
        let mut end = end(settings());
        let request = Extension {
            request: Some(Request { message_id: 1, total: 8 }),
            sync: true,
            ..Extension::new(0, 64)
        };
        let id = arrived(end.handle_datagram(0, &packet(Some(0), None, request)));
        end.close(deadline);
        assert!(left(&mut end, 0).iter().any(|packet| packet.extension.fin));
        end.matched(id).expect("it waits for that");
        assert_eq!(seqs(&left(&mut end, 0)), [], "behind the last packet");
        let fin = packet(Some(1), Some(1), Extension { fin: true, ..Extension::new(0, 64) });
        let _ = end.handle_datagram(0, &fin);
        let _ = left(&mut end, 0);
        let until = end.next_timeout().expect("it lingers");
        assert!(until >= 50 * MILLISECOND, "{until}");
        let _ = end.handle_datagram(until - 1, &fin);
        assert_eq!(left(&mut end, until - 1).len(), 1, "it is acknowledged again");
        let mut waits = 1;
        while let Some(at) = end.next_timeout() {
            waits += u32::from(at > until);
            end.handle_timeout(at);
        }
        assert_eq!(waits, expected, "{deadline}");
        assert_eq!(std::iter::from_fn(|| end.poll_event()).last(), Some(Event::Closed));
    }
}

/// Proves that packets beyond the report of an ack, here 64, are not declared lost (5.5).
#[test]
fn packets_beyond_the_ack_bitmap_are_not_declared_lost() {
    let path = Path { window: 200, ..Path::PRIVATE };
    let mut end = end(Settings { path, send_window: 200, first_rtt: None, ..settings() });
    send(&mut end, 0..100);
    assert_eq!(left(&mut end, 0).len(), 100);
    // All except the first two have arrived.
    let _ = end.handle_datagram(RTT, &nak(0, !1));
    assert_eq!(seqs(&left(&mut end, RTT)), [0, 1]);
    let _ = end.handle_datagram(2 * RTT, &nak(1, !0));
    assert_eq!(
        seqs(&left(&mut end, 2 * RTT)),
        [],
        "the second has just left, and nothing is known behind the 66th"
    );
    let _ = end.handle_datagram(2 * RTT, &ack(100));
    assert!(end.is_flushed() && end.counters().retransmitted == 2);
}

/// Proves that a pure ack reports the packets received out of order, and no delay of a packet that it cannot
/// report (5.3, 5.5).
#[test]
fn ack_has_the_longest_selective_ack_that_fits() {
    let windows = Settings { receive_window: 4096, ..settings() };
    let mut beyond = [0; 32];
    for (last, named, is_timed) in
        [(64, &[1 << 63][..], true), (65, &[0, 1], true), (130, &[0, 0, 2], true), (2049, &beyond, false)]
    {
        let mut end = Connection::new(windows, 0).expect("settings");
        let _ = end.handle_datagram(0, &data(last));
        let said = left(&mut end, 0)[0].extension;
        let expected = (true, Some(Sack::new(named)), is_timed);
        assert_eq!((said.nak, said.sack, said.delay_us.is_some()), expected, "{last}");
    }
    beyond[31] = 1 << 63;
    let mut longest = end(windows);
    let _ = longest.handle_datagram(0, &data(2048));
    assert_eq!(left(&mut longest, 0)[0].extension.sack, Some(Sack::new(&beyond)));
    // If the shortest datagram has no room for the whole report, one ack reports as much as fits.
    let mut shortest = end(Settings { datagram_len_max: DATAGRAM_LEN_MIN, ..windows });
    let _ = shortest.handle_datagram(0, &data(2000));
    let said = left(&mut shortest, 0);
    assert_eq!(
        said.iter().map(|packet| packet.extension.sack).collect::<Vec<_>>(),
        [Some(Sack::new(&[0; 6]))]
    );
    let mut end = end(windows);
    // Its parts fill their packets.
    end.send(Send { len: 3 * 1144, ..short(0) }).expect("there is room");
    let _ = end.handle_datagram(0, &data(1));
    let packets = left(&mut end, 0);
    let (pure, parts) = packets.split_last().expect("packets");
    assert!(parts.len() == 3 && parts.iter().all(|part| part.extension.nak && part.extension.sack.is_none()));
    assert!(pure.header.numbers.seq.is_none() && pure.extension.sack == Some(Sack::new(&[1])), "{pure:?}");
}
