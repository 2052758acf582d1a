//! Time to repair losses (5.12, 10), and adaptation to spurious ones (5.5).

use mpjdev_proto::datagram::packet::Packet;
use mpjdev_proto::datagram::reliable::congestion::Algorithm;
use mpjdev_proto::datagram::reliable::settings::{Path, Settings};
use mpjdev_proto::datagram::reliable::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};

use super::world::{END_LIMIT, START, World, world};

const RTT: Nanos = 2 * MILLISECOND;

fn settings() -> Settings {
    Settings { first_rtt: Some(RTT), ..Settings::new(Path::PRIVATE) }
}

/// A world that drops the data packets with these numbers, in the order of sending.
fn losing(numbers: std::ops::Range<u64>, settings: Settings) -> World {
    let world = &mut Some(world(1, settings, "delay=1ms"));
    let mut world = world.take().expect("just made");
    world.networks[0].set_filter(move |number, _| numbers.contains(&number));
    world
}

/// Proves that one loss in a full window is repaired within two round trips, without the timer (5.12, 10).
#[test]
fn single_loss_in_a_full_window_is_repaired_in_two_round_trips() {
    for place in [0, 1, 30, 55] {
        let mut world = losing(place..place + 1, settings());
        world.ends[0].streams(64);
        world.run_to_completion(END_LIMIT);
        let counters = world.ends[0].connection.counters();
        assert_eq!((counters.retransmitted, counters.timeouts, counters.cuts), (1, 0, 1), "{counters:?}");
        // All arrive after half a round trip, except for pacing.
        let spread = RTT;
        let late = world.ends[1].latest_complete - START;
        assert!(late <= RTT / 2 + spread + 2 * RTT, "packet {place}: {} us", late / MICROSECOND);
    }
}

/// Proves the same for several losses, and that they cause one cut.
#[test]
fn losses_of_one_round_trip_cut_the_window_once() {
    let mut world = losing(10..15, settings());
    world.ends[0].streams(64);
    world.run_to_completion(END_LIMIT);
    let counters = world.ends[0].connection.counters();
    assert_eq!((counters.retransmitted, counters.timeouts, counters.cuts), (5, 0, 1), "{counters:?}");
}

/// Proves that the loss of a retransmission is detected without the timer.
#[test]
fn lost_retransmission_is_repaired() {
    let mut world = world(1, Settings { receive_window: 512, send_window: 512, ..settings() }, "delay=1ms");
    let mut seen = 0;
    world.networks[0].set_filter(move |_, octets: &Vec<u8>| {
        let (packet, _) = Packet::parse(octets).expect("a packet");
        let is_it = packet.header.tag == 20 && packet.header.numbers.seq.is_some();
        seen += u32::from(is_it);
        is_it && seen <= 2
    });
    world.ends[0].streams(1000);
    world.run_to_completion(END_LIMIT);
    let counters = world.ends[0].connection.counters();
    assert_eq!((counters.retransmitted, counters.timeouts), (2, 0), "{counters:?}");
}

/// Proves that the lost last packets of a stream are repaired within two PTOs (5.12, 10).
#[test]
fn lost_tail_is_repaired_in_two_ptos() {
    for tail in 1..=3 {
        let mut world = losing(40 - tail..40, settings());
        world.ends[0].streams(40);
        world.run_to_completion(END_LIMIT);
        let pto = world.ends[0].connection.pto();
        let late = world.ends[1].latest_complete - START;
        assert!(late <= 2 * RTT + 2 * pto, "{tail} packets: {} us, PTO {} us", late / 1000, pto / 1000);
        assert_eq!(world.ends[0].connection.counters().cuts, u64::from(tail > 1), "a probe is no loss");
    }
}

/// Proves that late packets cut the window only for a time: the cut is undone, and the threshold rises until
/// late packets are not retransmitted.
#[test]
fn threshold_adapts_to_late_packets() {
    let settings = Settings { receive_window: 256, send_window: 256, ..settings() };
    let mut world = world(1, settings, "delay=1ms,reorder=8/20%");
    world.ends[0].streams(2000);
    world.run_to_completion(END_LIMIT);
    let first = world.ends[0].connection.counters();
    assert!(first.spurious > 0 && first.undone_cuts > 0, "{first:?}");
    world.ends[0].plan.count += 5000;
    world.run_to_completion(END_LIMIT);
    let both = world.ends[0].connection.counters();
    let (early, late) = (first.retransmitted, both.retransmitted - first.retransmitted);
    assert!(late * 4 <= early * 5, "{early} of 2000 were retransmitted first, {late} of 5000 then");
}

/// Proves that a long partition counts as persistent congestion and restarts the window, and that a silent
/// peer does not.
#[test]
fn persistent_congestion_restarts_the_window() {
    let path = Path { algorithm: Algorithm::Cubic, ..Path::PRIVATE };
    let mut world = world(1, Settings { path, ..settings() }, "delay=1ms");
    world.ends[0].streams(100_000);
    world.run_until(SECOND, |world| world.ends[1].complete > 5000);
    world.networks[0].partition(true);
    world.run_for(2 * SECOND);
    let window = |world: &World| world.ends[0].connection.counters().congestion_window;
    assert!(window(&world) >= 64, "a timer cuts nothing");
    world.networks[0].partition(false);
    let complete = world.ends[1].complete;
    world.run_until(5 * SECOND, |world| world.ends[1].complete > complete);
    world.run_for(2 * RTT);
    assert!(window(&world) <= 8, "{}", window(&world));
    world.run_to_completion(END_LIMIT);
}
