//! The simulated network and its impairments.

use std::num::NonZeroU64;

use super::{
    Burst, Chance, Counts, HOLD_MAX_NS, IN_FLIGHT_MAX, Impairment, ImpairmentError, Network, Partition,
    Reorder,
};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn impairment(text: &str) -> Impairment {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// Sends packets 0, 1, 2, ... one microsecond apart; returns the delivered packets with their times.
fn run(network: &mut Network<u64>, packets: u64) -> Vec<(u64, u64)> {
    let mut arrived = Vec::new();
    for packet in 0..packets {
        let now_ns = packet * 1000;
        arrived.extend(std::iter::from_fn(|| network.poll_deliver(now_ns)).map(|packet| (now_ns, packet)));
        network.send(now_ns, 100, packet);
    }
    while let Some(now_ns) = network.next_time_ns() {
        arrived.extend(std::iter::from_fn(|| network.poll_deliver(now_ns)).map(|packet| (now_ns, packet)));
    }
    arrived
}

fn packets_of(arrived: &[(u64, u64)]) -> Vec<u64> {
    arrived.iter().map(|(_, packet)| *packet).collect()
}

/// Proves that without impairments all packets arrive at once and in order.
#[test]
fn unimpaired_network_delivers_everything_in_order() {
    let mut network = Network::new(Impairment::NONE, 1);
    let arrived = run(&mut network, 1000);
    assert_eq!(packets_of(&arrived), (0..1000).collect::<Vec<_>>());
    let counts = Counts { sent: 1000, delivered: 1000, ..Counts::default() };
    assert_eq!((network.counts(), network.in_flight()), (counts, 0));
}

/// Proves that the same seed gives the same run, and another seed another one.
#[test]
fn equal_seeds_give_equal_runs() {
    let bad = impairment("loss=5%,burst=1%/30%,dup=5%,reorder=9/20%,delay=1ms,jitter=50us,rate=1gbit");
    let of = |seed| run(&mut Network::new(bad, seed), 2000);
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

/// Proves that losses and copies occur with their stated chances.
#[test]
fn losses_and_copies_have_the_stated_chance() {
    let mut network = Network::new(impairment("loss=10%,dup=5%"), 7);
    let arrived = run(&mut network, 100_000);
    let Counts { lost, duplicated, delivered, .. } = network.counts();
    assert!((9_600..10_400).contains(&lost), "{lost}");
    assert!((4_200..4_800).contains(&duplicated), "{duplicated}");
    assert_eq!(delivered, 100_000 - lost + duplicated);
    assert_eq!(delivered, arrived.len() as u64);
}

/// Proves that bursts lose 1 / leave consecutive packets on average.
#[test]
fn bursts_have_the_stated_length() {
    let mut network = Network::new(impairment("burst=1%/20%"), 7);
    let arrived = packets_of(&run(&mut network, 200_000));
    let gaps: Vec<u64> =
        arrived.windows(2).map(|pair| pair[1] - pair[0] - 1).filter(|gap| *gap > 0).collect();
    let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
    assert!((4.7..5.3).contains(&mean), "{mean}");
    assert!((1_700..2_300).contains(&gaps.len()), "{}", gaps.len());
}

/// Proves that a packet is overtaken by at most the distance, that all distances occur, and that no packet is
/// lost.
#[test]
fn packets_are_overtaken_by_up_to_the_distance() {
    let mut network = Network::new(impairment("reorder=7/10%"), 3);
    let arrived = packets_of(&run(&mut network, 20_000));
    let mut seen = [0; 8];
    for (place, packet) in arrived.iter().enumerate() {
        let before = &arrived[place.saturating_sub(100)..place];
        let overtaken_by = before.iter().filter(|other| **other > *packet).count();
        assert!(overtaken_by <= 7, "{packet} by {overtaken_by}");
        seen[overtaken_by] += 1;
    }
    assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
    let mut sorted = arrived;
    sorted.sort_unstable();
    assert_eq!(sorted, (0..20_000).collect::<Vec<_>>());
}

/// Proves that a held packet arrives without later packets.
#[test]
fn last_packet_is_delivered_without_a_successor() {
    let mut network = Network::new(impairment("reorder=3/100%,delay=1ms"), 3);
    network.send(5, 10, 'a');
    assert_eq!(network.next_time_ns(), Some(5 + MS + HOLD_MAX_NS));
    assert_eq!(network.poll_deliver(5 + MS + HOLD_MAX_NS - 1), None);
    assert_eq!(network.poll_deliver(5 + MS + HOLD_MAX_NS), Some('a'));
    assert_eq!((network.next_time_ns(), network.in_flight()), (None, 0));
}

/// Proves that delay and jitter bound the time of arrival.
#[test]
fn delay_and_jitter_bound_the_time() {
    let mut network = Network::new(impairment("delay=2ms,jitter=1ms"), 3);
    let arrived = run(&mut network, 5000);
    let times: Vec<u64> = arrived.iter().map(|(time_ns, packet)| time_ns - packet * 1000).collect();
    let (least, most) = (times.iter().min().copied(), times.iter().max().copied());
    assert!((Some(2 * MS)..Some(2 * MS + MS / 50)).contains(&least), "{least:?}");
    assert!((Some(3 * MS - MS / 50)..=Some(3 * MS)).contains(&most), "{most:?}");
    assert!(!packets_of(&arrived).is_sorted(), "packets overtake each other");
}

/// Proves that the rate spaces packets out, and that the queue is bounded.
#[test]
fn full_queue_drops_and_the_rest_is_sent_at_the_rate() {
    let mut network = Network::new(impairment("rate=8mbit,queue=4"), 3);
    for packet in 0..10 {
        network.send(0, 1000, packet);
    }
    assert_eq!(network.counts().dropped, 6);
    // 1000 octets at 8 Mbit/s are a millisecond.
    for packet in 0..4 {
        let time_ns = (packet + 1) * MS;
        assert_eq!(network.next_time_ns(), Some(time_ns));
        assert_eq!((network.poll_deliver(time_ns - 1), network.poll_deliver(time_ns)), (None, Some(packet)));
    }
    network.send(10 * MS, 500, 10);
    assert_eq!(network.next_time_ns(), Some(10 * MS + MS / 2), "the wire was idle");
}

/// Proves that a filter drops exactly its packets, before all other impairments.
#[test]
fn filter_selects_the_lost_packets() {
    let mut network = Network::new(Impairment::NONE, 3);
    network.set_filter(|number, packet| number == 2 || *packet % 10 == 7);
    let arrived = packets_of(&run(&mut network, 20));
    let expected: Vec<u64> = (0..20).filter(|packet| ![2, 7, 17].contains(packet)).collect();
    assert_eq!((arrived, network.counts().lost), (expected, 3));
}

/// Proves that no packet enters a partition, by command or by time, and that packets in flight arrive.
#[test]
fn nothing_passes_a_partition() {
    let mut network = Network::new(impairment("delay=1us,partition=10us/5us"), 3);
    let arrived = packets_of(&run(&mut network, 20));
    assert_eq!(arrived, (0..10).chain(15..20).collect::<Vec<_>>());
    network.send(100_000, 1, 20);
    network.partition(true);
    network.send(100_000, 1, 21);
    network.partition(false);
    network.send(100_000, 1, 22);
    assert_eq!(std::iter::from_fn(|| network.poll_deliver(200_000)).collect::<Vec<_>>(), [20, 22]);
}

/// Proves that the number of packets in flight is bounded for any delay.
#[test]
fn number_of_packets_in_flight_is_bounded() {
    let mut network = Network::new(impairment("delay=1s,dup=100%"), 3);
    for packet in 0..IN_FLIGHT_MAX as u32 {
        network.send(0, 1, packet);
    }
    assert_eq!(network.in_flight(), IN_FLIGHT_MAX);
    assert_eq!(network.counts().dropped, IN_FLIGHT_MAX as u64);
}

/// Proves that every part of the text sets its field.
#[test]
fn impairment_is_parsed_from_its_text() {
    let all = "loss=1%, dup=0.02,reorder=16,delay=5ms,jitter=1.5us,rate=100mbit,burst=0.1%/30%,queue=9,\
               partition=1s/500ms";
    let chance = |billionths| Chance::from_billionths(billionths).expect("a chance");
    let expected = Impairment {
        loss: chance(10_000_000),
        burst: Some(Burst { enter: chance(1_000_000), leave: chance(300_000_000) }),
        duplication: chance(20_000_000),
        reorder: Some(Reorder { distance: 16, chance: chance(100_000_000) }),
        delay_ns: 5 * MS,
        jitter_ns: 1500,
        rate: NonZeroU64::new(100_000_000),
        queue: 9,
        partition: Some(Partition { begin_ns: 1000 * MS, len_ns: 500 * MS }),
    };
    assert_eq!(all.parse(), Ok(expected));
    assert_eq!("".parse(), Ok(Impairment::NONE));
    assert_eq!(impairment("loss=1e-4").loss, chance(100_000));
    assert_eq!(impairment("loss=100%").loss, Chance::ALWAYS);
    assert_eq!(impairment("loss=30%").loss, Chance::percent(30));
    assert_eq!(
        impairment("reorder=3/50%").reorder,
        Some(Reorder { distance: 3, chance: Chance::percent(50) })
    );
    for (rate, bits) in [("1.5gbit", 1_500_000_000), ("64kbit", 64_000), ("9600bit", 9600)] {
        assert_eq!(impairment(&format!("rate={rate}")).rate, NonZeroU64::new(bits));
    }
    for (time, time_ns) in [("2s", 2_000 * MS), ("3us", 3000), ("7ns", 7), ("0ms", 0)] {
        assert_eq!(impairment(&format!("delay={time}")).delay_ns, time_ns);
    }
}

/// Proves that an invalid text is refused with the invalid part.
#[test]
fn invalid_part_is_refused_with_its_name() {
    let values = [
        "loss=101%",
        "loss=-1%",
        "loss=nan",
        "loss=",
        "loss",
        "loss=1.1",
        "dup=x",
        "burst=1%",
        "burst=1%/2",
        "reorder=0",
        "reorder=70000",
        "reorder=3/",
        "delay=5",
        "delay=ms",
        "delay=-1ms",
        "delay=1e30s",
        "rate=0bit",
        "rate=100",
        "rate=infgbit",
        "queue=0",
        "queue=-1",
        "partition=1s",
    ];
    for part in values {
        let refused = format!("delay=1ms,{part}").parse::<Impairment>();
        let part = part.to_owned();
        let twice = part.starts_with("delay");
        match refused {
            Err(ImpairmentError::Twice { part: found, name: "delay" }) if twice => assert_eq!(found, part),
            Err(ImpairmentError::Value { part: found, .. }) => assert_eq!(found, part),
            other => panic!("{part}: {other:?}"),
        }
        assert!(matches!(part.parse::<Impairment>(), Err(ImpairmentError::Value { .. })), "{part}");
    }
    for part in ["lossy=1%", "", "=", "Loss=1%"] {
        let refused = format!("loss=1%,{part}").parse::<Impairment>();
        assert_eq!(refused, Err(ImpairmentError::Unknown { part: part.to_owned() }));
    }
    let text = "loss=2".parse::<Impairment>().expect_err("more than always").to_string();
    assert_eq!(text, "\"loss=2\": a chance up to 100% is expected, such as 1% or 0.01");
}

prop_compose! {
    fn chances()(billionths in prop_oneof![0u32..=1000, 0u32..=1_000_000_000]) -> Chance {
        Chance::from_billionths(billionths).expect("at most always")
    }
}

fn times() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..10_000, (0u64..10_000).prop_map(|ms| ms * MS), 0u64..1 << 53]
}

prop_compose! {
    fn impairments()(
        loss in chances(),
        burst in prop::option::of((chances(), chances())),
        duplication in chances(),
        reorder in prop::option::of((1u16.., chances())),
        delay_ns in times(),
        jitter_ns in times(),
        rate in prop::option::of(1u64..1 << 53),
        queue in 1usize..1000,
        partition in prop::option::of((times(), times())),
    ) -> Impairment {
        Impairment {
            loss,
            burst: burst.map(|(enter, leave)| Burst { enter, leave }),
            duplication,
            reorder: reorder.map(|(distance, chance)| Reorder { distance, chance }),
            delay_ns,
            jitter_ns,
            rate: rate.and_then(NonZeroU64::new),
            queue,
            partition: partition.map(|(begin_ns, len_ns)| Partition { begin_ns, len_ns }),
        }
    }
}

proptest! {
    /// Proves that a printed impairment is parsed as the same.
    #[test]
    fn impairment_survives_its_text(impairment in impairments()) {
        prop_assert_eq!(impairment.to_string().parse(), Ok(impairment), "{}", impairment);
    }

    /// Proves that no text causes a panic, and that errors name a part of the text.
    #[test]
    fn any_text_is_an_impairment_or_an_error(text in "[a-z]{0,9}=?[0-9.e/%-]{0,6}[a-z]{0,4},?(loss=[0-9]{1,3}%)?") {
        if let Err(error) = text.parse::<Impairment>() {
            prop_assert!(error.to_string().starts_with('"'), "{}", error);
        }
    }
}
