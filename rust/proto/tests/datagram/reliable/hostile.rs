//! Hostile packets: none causes a panic, unbounded memory, or an effect (5, "trust").

use mpjdev_proto::datagram::extension::{Extension, Fragment, Grant, Request, Sack};
use mpjdev_proto::datagram::header::{Header, Mode, Numbers};
use mpjdev_proto::datagram::packet::Packet;
use mpjdev_proto::datagram::reliable::connection::{Connection, Disposition, Event};
use mpjdev_proto::datagram::reliable::message_rx::{ArrivalId, Delivery};
use mpjdev_proto::datagram::reliable::settings::{Path, Settings};
use mpjdev_proto::datagram::reliable::time::{MILLISECOND, Nanos, SECOND};
use mpjdev_proto::datagram::sequence::FullSequence;
use mpjdev_sim::Random;

use super::world::{for_seeds, mixed, scaled, short};

/// Small numbers, the largest ones, and earlier ones.
fn number(random: &mut Random, seen: &[u64]) -> u64 {
    match random.up_to(5) {
        0 => random.bits(),
        1 => u64::MAX - random.up_to(3),
        2 if !seen.is_empty() => seen[random.up_to(seen.len() as u64 - 1) as usize],
        _ => random.up_to(40),
    }
}

/// A forged packet, mostly close to a valid one.
fn made_up(random: &mut Random, connection: &Connection, next: u64, seen: &[u64]) -> Packet {
    let settings = connection.settings();
    let one_in = |random: &mut Random, count: u64| random.up_to(count - 1) == 0;
    let seq =
        (!one_in(random, 4)).then(|| FullSequence::of(next.wrapping_add(random.up_to(6)).wrapping_sub(2)));
    let near = u64::from(settings.first_ours.bits()) + random.up_to(40);
    let ack =
        (!one_in(random, 4)).then(|| FullSequence::of(if one_in(random, 5) { random.bits() } else { near }));
    let mode = Mode::ALL[random.up_to(12) as usize];
    let header = Header {
        numbers: Numbers::default(),
        mode: if one_in(random, 3) { Mode::Short } else { mode },
        context_id: if one_in(random, 3) { random.bits() as u16 } else { random.up_to(3) as u16 },
        lrank: random.up_to(2047) as u16,
        tag: random.bits() as i32,
        len: random.up_to(20) as u32,
    };
    let mut extension = Extension::new(settings.ours, random.bits() as u16);
    extension.ack_req = one_in(random, 3);
    extension.nak = one_in(random, 3);
    extension.fin = one_in(random, 200);
    extension.sync = one_in(random, 4);
    extension.duplicate = one_in(random, 4);
    extension.ecn_echo = one_in(random, 8);
    extension.sack = one_in(random, 3).then(|| {
        let words: Vec<u64> = (0..random.up_to(33)).map(|_| random.bits() & random.bits()).collect();
        Sack::new(&words)
    });
    extension.delay_us = one_in(random, 3).then(|| random.bits() as u16);
    extension.context = one_in(random, 4).then(|| random.bits());
    let mut id = || number(random, seen) as u32;
    let (message_id, destination_id) = (id(), id());
    let mut many = || number(random, seen);
    let (total, offset) = (many(), many());
    extension.request = one_in(random, 3).then_some(Request { message_id, total });
    extension.grant = one_in(random, 3).then_some(Grant { message_id, destination_id, granted: total });
    extension.fragment = one_in(random, 3).then_some(Fragment { message_id, destination_id, total, offset });
    let mut packet = Packet { header, extension };
    packet.number(seq, ack);
    packet
}

/// A driver that checks that all events are consistent.
struct Driver {
    connection: Connection,
    /// Incomplete messages with their missing octets.
    arrivals: Vec<(ArrivalId, u64)>,
    seen: Vec<u64>,
    next: u64,
}

impl Driver {
    fn delivered(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Arrived(arrival) => {
                assert!(u64::from(arrival.len) <= arrival.total, "{arrival:?}");
                if let Some(id) = arrival.id {
                    assert!(self.arrivals.iter().all(|(known, _)| *known != id), "{arrival:?}");
                    self.arrivals.push((id, arrival.total));
                    self.seen.push(u64::from(id.destination_id()));
                }
            }
            Delivery::Continued { arrival, offset, len, .. } => {
                let known = self.arrivals.iter().find(|(id, _)| *id == arrival);
                let (_, total) = known.expect("a message that has begun");
                assert!(offset <= *total && u64::from(len) <= total - offset, "{delivery:?} of {total}");
            }
        }
    }

    fn drain(&mut self, now: Nanos) {
        while let Some((_, delivery)) = self.connection.poll_buffered(now) {
            self.delivered(delivery);
        }
        while let Some(event) = self.connection.poll_event() {
            if let Event::Withdraw { arrival } = event {
                self.arrivals.retain(|(id, _)| *id != arrival);
            }
        }
        let mut left = 0;
        while let Some(transmit) = self.connection.poll_transmit(now) {
            transmit.packet.check().expect("what leaves is a packet");
            if let Some(request) = transmit.packet.extension.request {
                self.seen.push(u64::from(request.message_id));
            }
            left += 1;
            assert!(left < 2000, "a packet begets packets without end");
        }
        self.connection.check();
    }
}

fn run(seed: u64) -> (u64, u64) {
    let mut random = Random::new(seed);
    let settings = Settings {
        ours: 7,
        theirs: 8,
        first_theirs: FullSequence::of(random.bits()),
        receive_window: 16,
        send_window: 16,
        arrivals_max: 64,
        peer_sends_max: 20,
        dead_after: 1000 * SECOND,
        ..Settings::new(if seed.is_multiple_of(2) { Path::PRIVATE } else { Path::UNKNOWN })
    };
    let connection = Connection::new(settings, 0).expect("settings");
    let next = u64::from(settings.first_theirs.bits());
    let mut driver = Driver { connection, arrivals: Vec::new(), seen: Vec::new(), next };
    let mut now = 0;
    for step in 0..1500 {
        now += random.up_to(MILLISECOND);
        let packet = made_up(&mut random, &driver.connection, driver.next, &driver.seen);
        // The driver's parser lets no other through.
        if packet.check().is_err() {
            continue;
        }
        if let Some(seq) = packet.seq() {
            driver.next += u64::from(seq == FullSequence::of(driver.next));
        }
        if let Disposition::Deliver(delivery) = driver.connection.handle_datagram(now, &packet) {
            driver.delivered(delivery);
        }
        match random.up_to(9) {
            0 => drop(driver.connection.send(mixed(step))),
            1 => drop(driver.connection.cancel(random.up_to(step + 1))),
            2 => driver.connection.handle_drained(now),
            3 if driver.connection.next_timeout().is_some() => driver.connection.handle_timeout(now),
            4 if !driver.arrivals.is_empty() => {
                let place = random.up_to(driver.arrivals.len() as u64 - 1) as usize;
                let (id, _) = driver.arrivals[place];
                // It may be matched already.
                if driver.connection.matched(id).is_err() {
                    let _ = driver.connection.discard(id);
                    driver.arrivals.swap_remove(place);
                }
            }
            _ => {}
        }
        driver.seen.drain(..driver.seen.len().saturating_sub(64));
        driver.drain(now);
    }
    let counters = driver.connection.counters();
    (counters.violations, counters.received)
}

/// Proves that forged packets cause no panic and break no invariant, and that their octets stay within the
/// messages.
#[test]
fn forged_packets_keep_the_connection_valid() {
    let sums = std::sync::Mutex::new((0, 0));
    for_seeds(0..scaled(60, 500), |seed| {
        let (violations, received) = run(seed);
        let mut sums = sums.lock().expect("no run has panicked");
        *sums = (sums.0 + violations, sums.1 + received);
    });
    let (violations, received) = sums.into_inner().expect("no run has panicked");
    assert!(violations > 1000 && received > 4 * violations, "{violations} violations in {received} packets");
}

/// Proves that an ack of an unsent number is refused, and that an old ack is harmless.
#[test]
fn acks_of_unsent_packets_are_refused() {
    let mut connection = Connection::new(Settings::new(Path::PRIVATE), 0).expect("settings");
    let half = 1 << 30;
    for (ack, expected) in [(1, 1), (100, 2), (half, 3), (half + 1, 3), (2 * half - 1, 3), (0, 3)] {
        let mut packet = Packet { extension: Extension::new(0, 9), ..Packet::default() };
        packet.number(None, Some(FullSequence::of(ack)));
        let _ = connection.handle_datagram(0, &packet);
        assert_eq!(connection.counters().bad_acks, expected, "{ack}");
        connection.check();
    }
}

/// Proves that a copy of a packet that the network delivers 2^15 packets late is a duplicate, and is never
/// delivered in place of the packet whose low 15 bits are the same.
#[test]
fn packet_delivered_2_to_the_15_late_is_a_duplicate() {
    let settings = Settings { receive_window: 1024, arrivals_max: 1 << 14, ..Settings::new(Path::PRIVATE) };
    let mut connection = Connection::new(settings, 0).expect("settings");
    let packet = |seq: u64| {
        let header = Header { tag: seq as i32, len: 8, ..Header::default() };
        let mut packet = Packet { header, extension: Extension::new(0, 9) };
        packet.number(Some(FullSequence::of(seq)), None);
        packet
    };
    let take = |connection: &mut Connection, seq: u64| match connection.handle_datagram(0, &packet(seq)) {
        Disposition::Deliver(Delivery::Arrived(arrival)) => arrival.tag as u64,
        other => panic!("packet {seq}: {other:?}"),
    };
    let late = 1 << 15;
    for seq in 0..late - 500 {
        assert_eq!(take(&mut connection, seq), seq);
    }
    assert_eq!(connection.handle_datagram(0, &packet(0)), Disposition::Drop);
    assert_eq!(connection.counters().duplicates, 1);
    for seq in late - 500..late + 2 {
        assert_eq!(take(&mut connection, seq), seq);
    }
    assert_eq!(connection.poll_buffered(0), None);
    assert_eq!(connection.handle_datagram(0, &packet(late / 2)), Disposition::Drop);
    connection.check();
}

/// Proves that numbers continue beyond 2^31 in both directions, and that a loss at the wrap is repaired.
#[test]
fn numbers_wrap_at_2_to_the_31() {
    let first = FullSequence::of((1 << 31) - 2);
    let settings = Settings { first_ours: first, first_theirs: first, ..Settings::new(Path::PRIVATE) };
    let [mut a, mut b] = [(); 2].map(|()| Connection::new(settings, 0).expect("settings"));
    (0..5).for_each(|number| a.send(short(number)).expect("there is room"));
    let mut sent: Vec<Packet> = std::iter::from_fn(|| a.poll_transmit(0)).map(|t| t.packet).collect();
    let seqs: Vec<u32> = sent.iter().filter_map(Packet::seq).map(FullSequence::bits).collect();
    assert_eq!(seqs, [0x7fff_fffe, 0x7fff_ffff, 0, 1, 2]);
    let lost = sent.remove(1);
    let mut come = 0;
    for packet in sent.into_iter().chain([lost]) {
        come += u32::from(matches!(b.handle_datagram(0, &packet), Disposition::Deliver(_)));
        come += std::iter::from_fn(|| b.poll_buffered(0)).count() as u32;
    }
    assert_eq!(come, 5);
    let ack = b.poll_transmit(0).expect("it was repaired").packet;
    assert_eq!(ack.ack().map(FullSequence::bits), Some(3));
    let _ = a.handle_datagram(0, &ack);
    assert!(a.is_flushed());
    a.check();
    b.check();
}

/// Proves that messages after the peer's FIN are refused, and that the FIN may be repeated.
#[test]
fn messages_after_the_fin_are_refused() {
    let mut connection = Connection::new(Settings::new(Path::PRIVATE), 0).expect("settings");
    let packet = |seq: u64, fin: bool| {
        let extension = Extension { fin, ..Extension::new(0, 9) };
        let mut packet = Packet { extension, ..Packet::default() };
        packet.number(Some(FullSequence::of(seq)), None);
        packet
    };
    for (seq, fin, violations) in [(0, true, 0), (0, true, 0), (1, false, 1), (2, true, 2)] {
        assert_eq!(connection.handle_datagram(0, &packet(seq, fin)), Disposition::Drop);
        assert_eq!(connection.counters().violations, violations);
        connection.check();
    }
    assert_eq!((connection.poll_event(), connection.poll_event()), (Some(Event::PeerFinished), None));
}
