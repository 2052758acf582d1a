//! A million messages over paths of all kinds; with MPJDEV_SOAK a hundred times as many.

use mpjdev_proto::datagram::reliable::settings::{Path, Settings};
use mpjdev_sim::Random;

use super::world::{END_LIMIT, for_seeds, scaled, short, world};

/// Runs.
const SEEDS: u64 = 250;
/// Messages of each end in each run.
const MESSAGES: u64 = 2000;
/// Factor of the runs of a long test: `soakRust` is to end within about 15 minutes.
const SOAK: u64 = 100;

/// Paths, most of them good.
const PATHS: [&str; 12] = [
    "delay=10us",
    "delay=10us,jitter=5us",
    "delay=100us,rate=1gbit",
    "delay=20us,loss=1e-4",
    "delay=20us,loss=1e-3,dup=1e-3",
    "delay=20us,loss=1%",
    "delay=1ms,loss=1%,reorder=3/1%",
    "delay=50us,reorder=16/2%",
    "delay=50us,dup=5%",
    "delay=5ms,rate=100mbit,queue=50",
    "delay=50us,burst=0.1%/50%",
    "delay=200us,loss=5%,dup=1%,jitter=100us",
];

/// Proves that each of a million messages arrives once, in order and intact, with all windows and paths.
#[test]
fn million_messages_arrive_once() {
    for_seeds(0..scaled(SEEDS, SOAK), |seed| {
        let mut random = Random::new(seed ^ 0x5eed);
        let window = [1, 4, 16, 64, 64, 128, 256, 1024][random.up_to(7) as usize];
        let path = [Path::PRIVATE, Path::PRIVATE, Path::UNKNOWN][random.up_to(2) as usize];
        let settings = Settings {
            receive_window: window,
            send_window: window,
            checked: random.up_to(3) == 0,
            ack_every: [0, 0, 2][random.up_to(2) as usize],
            ..Settings::new(path)
        };
        let mut world = world(seed, settings, PATHS[seed as usize % PATHS.len()]);
        world.check_every = 499;
        for end in &mut world.ends {
            end.streams(MESSAGES);
            end.plan.message = short;
        }
        world.run_to_completion(END_LIMIT);
        assert!(world.ends.iter().all(|end| end.complete == MESSAGES && end.failure.is_none()));
    });
}
