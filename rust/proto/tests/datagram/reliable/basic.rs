//! Every message once, in order, whatever the network does (5.12, 1 to 3).

use std::sync::atomic::{AtomicU64, Ordering};

use mpjdev_proto::datagram::packet::Packet;
use mpjdev_proto::datagram::reliable::settings::{DATAGRAM_LEN_MIN, Path, Settings};
use mpjdev_proto::datagram::reliable::time::SECOND;

use super::world::{END_LIMIT, World, for_seeds, mixed, scaled, world};

const PATHS: [Path; 2] = [Path::PRIVATE, Path::UNKNOWN];

fn stream_both_ways(seed: u64, path: Path, impairment: &str, count: u64) -> World {
    let mut world = world(seed, Settings::new(path), impairment);
    world.ends[0].streams(count);
    world.ends[1].streams(count);
    world.run_to_completion(END_LIMIT);
    world
}

/// Proves that no message is lost at any loss rate (5.12, 1).
#[test]
fn messages_arrive_once_and_in_order_under_loss() {
    for impairment in ["delay=20us", "delay=20us,loss=1e-4", "delay=20us,loss=1%", "delay=1ms,loss=30%"] {
        for path in PATHS {
            for_seeds(0..scaled(4, 1000), |seed| drop(stream_both_ways(seed, path, impairment, 300)));
        }
    }
}

/// 14 lost round trips in a row on a path that drops 30 % each way do not fail a live peer. The backoff
/// leaves room for 14 probes within the 30 s.
#[test]
fn peer_on_a_lossy_path_stays_alive_after_many_lost_acks() {
    drop(stream_both_ways(2253, Path::UNKNOWN, "delay=1ms,loss=30%", 300));
}

/// Proves the same when only one direction has losses.
#[test]
fn loss_in_one_direction_is_repaired() {
    for lossy in 0..2 {
        for_seeds(0..scaled(4, 1000), |seed| {
            let mut world = world(seed, Settings::new(Path::PRIVATE), "delay=20us");
            world.networks[lossy].set_impairment("delay=20us,loss=30%".parse().expect("an impairment"));
            world.ends[0].streams(300);
            world.ends[1].streams(100);
            world.run_to_completion(END_LIMIT);
        });
    }
}

/// Proves that lost acks cause no stall and few retransmissions: any later ack makes up for them.
#[test]
fn lost_acknowledgments_are_repaired_by_later_ones() {
    for_seeds(0..scaled(8, 1000), |seed| {
        let mut world = world(seed, Settings::new(Path::PRIVATE), "delay=20us");
        world.networks[1].set_filter(move |number, octets: &Vec<u8>| {
            let (packet, _) = Packet::parse(octets).expect("a packet");
            packet.header.numbers.seq.is_none() && (number * 7 + seed) % 10 < 3
        });
        world.ends[0].streams(2000);
        world.run_to_completion(END_LIMIT);
        let counters = world.ends[0].connection.counters();
        assert!(world.networks[1].counts().lost > 10, "{:?}", world.networks[1].counts());
        assert!(counters.retransmitted < 100, "{counters:?}");
    });
}

/// Proves that reordered packets are delivered in order, at any distance (5.12, 2).
#[test]
fn reordering_is_undone() {
    for reorder in ["reorder=1", "reorder=3", "reorder=16/50%", "reorder=100"] {
        for loss in ["", ",loss=1%", ",loss=10%"] {
            let impairment = format!("delay=50us,jitter=50us,{reorder}{loss}");
            for_seeds(0..scaled(2, 1000), |seed| {
                drop(stream_both_ways(seed, Path::PRIVATE, &impairment, 300))
            });
        }
    }
}

/// Proves that duplicates are dropped (5.12, 2).
#[test]
fn duplicates_are_dropped() {
    let impairments =
        ["dup=1%", "dup=50%", "dup=50%,reorder=16", "dup=50%,loss=10%", "dup=100%,loss=30%,reorder=3"];
    for duplication in impairments {
        let impairment = format!("delay=50us,{duplication}");
        let dropped = AtomicU64::new(0);
        for_seeds(0..scaled(2, 1000), |seed| {
            let world = stream_both_ways(seed, Path::PRIVATE, &impairment, 300);
            let duplicates = world.ends.each_ref().map(|end| end.connection.counters().duplicates);
            dropped.fetch_add(duplicates.iter().sum(), Ordering::Relaxed);
        });
        assert!(dropped.into_inner() > 0, "{duplication}");
    }
}

/// Proves that all messages arrive after bursts of losses and a partition.
#[test]
fn messages_arrive_despite_bursts_and_partitions() {
    for impairment in [
        "delay=50us,burst=1%/50%",
        "delay=50us,partition=1000001ms/700ms,rate=10mbit",
        "delay=1ms,burst=0.1%/50%",
    ] {
        for path in PATHS {
            for_seeds(0..scaled(2, 1000), |seed| drop(stream_both_ways(seed, path, impairment, 500)));
        }
    }
}

/// Proves that the numbers of 15 bits may wrap more than three times in each direction, with loss (5.12, 3).
#[test]
fn sequence_numbers_wrap_under_loss() {
    for_seeds(0..scaled(1, 100), |seed| {
        let impairment = "delay=20us,loss=0.5%,dup=0.5%,reorder=3/1%";
        let mut world = world(seed, Settings::new(Path::PRIVATE), impairment);
        world.check_every = 101;
        for end in &mut world.ends {
            end.streams(3 * (1 << 15) + 2000);
        }
        world.run_to_completion(END_LIMIT);
        assert!(world.ends.iter().all(|end| end.connection.counters().sent > 3 << 15));
    });
}

/// Proves that messages of all kinds and lengths arrive once and intact, first packets in order, that each is
/// matched, cancelled or refused as expected, and that no state is left.
#[test]
fn messages_of_all_kinds_arrive_once_and_intact() {
    let mut counts = [0; 4];
    for impairment in ["delay=20us", "delay=50us,loss=5%,dup=2%,reorder=8", "delay=1ms,loss=30%"] {
        let counted = std::sync::Mutex::new(&mut counts);
        for_seeds(0..scaled(6, 1000), |seed| {
            let settings = Settings { checked: seed % 2 == 0, ..Settings::new(PATHS[seed as usize % 2]) };
            let mut world = world(seed, settings, impairment);
            for end in &mut world.ends {
                end.streams(66);
                end.plan.message = mixed;
                (end.dawdles, end.cancels) = (4, 3);
            }
            world.run_to_completion(END_LIMIT);
            world.run_for(5 * SECOND);
            let mut counts = counted.lock().expect("no run has panicked");
            for k in 0..2 {
                let (end, other) = (&world.ends[k], &world.ends[1 - k]);
                assert_eq!((end.complete + other.cancelled, end.connection.pending()), (66, vec![]));
                let sum = [end.matched, end.cancelled, end.refused, end.withdrawn];
                counts.iter_mut().zip(sum).for_each(|(count, more)| *count += more);
            }
        });
    }
    assert!(counts.iter().all(|count| *count > 50), "matched, cancelled, refused, withdrawn: {counts:?}");
}

/// Proves the same of messages that are packed after they were sent.
#[test]
fn messages_that_are_packed_while_they_leave_arrive_intact() {
    for impairment in ["delay=20us", "delay=50us,loss=5%,dup=2%,reorder=8"] {
        for packs in [50, 700, 20_000] {
            for_seeds(0..scaled(2, 200), |seed| {
                let mut world = world(seed, Settings::new(PATHS[seed as usize % 2]), impairment);
                for end in &mut world.ends {
                    end.streams(33);
                    end.plan.message = |number| {
                        let send = mixed(number);
                        mpjdev_proto::datagram::reliable::message_tx::Send {
                            rendezvous: send.len > 1000,
                            ..send
                        }
                    };
                    (end.dawdles, end.cancels, end.packs) = (4, 3, packs);
                }
                world.run_to_completion(2 * END_LIMIT);
                for k in 0..2 {
                    let (end, other) = (&world.ends[k], &world.ends[1 - k]);
                    assert_eq!((end.complete + other.cancelled, end.connection.pending()), (33, vec![]));
                }
            });
        }
    }
}

/// Proves the same with the smallest limits, and that two ends with full windows never deadlock on answers.
#[test]
fn smallest_windows_and_datagrams_carry_all_messages() {
    for window in [1, 2, 3, 5] {
        for_seeds(0..scaled(50, 100), |seed| {
            let settings = Settings {
                datagram_len_max: DATAGRAM_LEN_MIN + seed as usize % 3,
                receive_window: window,
                send_window: window,
                arrivals_max: 1 + usize::from(window),
                ..Settings::new(PATHS[seed as usize % 2])
            };
            let mut world = world(seed, settings, "delay=20us,loss=5%,dup=2%,reorder=3");
            for end in &mut world.ends {
                end.streams(33);
                end.plan.message = |number| {
                    let send = mixed(number);
                    mpjdev_proto::datagram::reliable::message_tx::Send { len: send.len / 50, ..send }
                };
                (end.dawdles, end.cancels) = (4, 3);
            }
            world.run_to_completion(END_LIMIT);
        });
    }
}

/// Proves that the datagram length can shrink while messages of all kinds are in flight: earlier parts keep
/// their length, and later ones have the new one.
#[test]
fn datagram_length_shrinks_while_messages_are_in_flight() {
    for shorter in [DATAGRAM_LEN_MIN, 300, 1199] {
        for_seeds(0..scaled(2, 200), |seed| {
            let settings = Settings { checked: seed % 2 == 0, ..Settings::new(PATHS[seed as usize % 2]) };
            let mut world = world(seed, settings, "delay=50us,loss=5%,dup=2%,reorder=8");
            for end in &mut world.ends {
                end.streams(66);
                end.plan.message = mixed;
                (end.dawdles, end.cancels) = (4, 3);
            }
            world.run_until(END_LIMIT, |world| world.ends[0].connection.counters().sent > 40 + seed % 60);
            world.ends[0].connection.shorten(shorter);
            world.run_to_completion(END_LIMIT);
            world.ends[0].longest = shorter;
            world.ends.iter_mut().for_each(|end| end.streams(132));
            world.run_to_completion(END_LIMIT);
            world.ends[0].connection.shorten(9000);
            assert_eq!(world.ends[0].connection.settings().datagram_len_max, shorter, "never longer again");
        });
    }
}
