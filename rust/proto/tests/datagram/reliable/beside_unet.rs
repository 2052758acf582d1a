//! Both protocols on the same paths with the same messages (3.2).

use mpjdev_proto::datagram::reliable::settings::{Path, Settings};
use mpjdev_proto::datagram::reliable::time::Nanos;
use mpjdev_sim::Impairment;
use mpjdev_unet as unet;

use super::world::{END_LIMIT, START, world};
use crate::world::{Program, Sends, World};

/// Messages in one direction.
const MESSAGES: u64 = 2000;

/// The costs of a stream.
#[derive(Clone, Copy, Debug)]
struct Cost {
    time: Nanos,
    resent: u64,
    pure_acks: u64,
}

fn unet(path: &str) -> Cost {
    let stream = |messages| Program { messages, sends: Sends::Within(0), computes_ns: 0 };
    let impairment: Impairment = path.parse().expect("an impairment");
    let programs = [stream(MESSAGES), stream(0)];
    let mut world = World::new(1, unet::Settings::default(), programs, [impairment; 2]);
    world.run(10_000_000);
    let [sender, receiver] = &world.ends;
    Cost { time: world.now_ns, resent: sender.resent, pure_acks: receiver.pure_acks }
}

fn reliable(path: &str) -> Cost {
    let mut world = world(1, Settings::new(Path::PRIVATE), path);
    world.ends[0].streams(MESSAGES);
    world.run_until(END_LIMIT, |world| world.ends[1].complete == MESSAGES);
    let [sender, receiver] = world.ends.each_ref().map(|end| end.connection.counters());
    Cost {
        time: world.ends[1].latest_complete - START,
        resent: sender.retransmitted,
        pure_acks: receiver.pure_acks,
    }
}

/// Proves that a one-way stream has no timeout and no retransmission, where the protocol of 1997 has one for
/// each window.
#[test]
fn one_way_stream_needs_no_timeout() {
    let (unet, reliable) = (unet("delay=10us"), reliable("delay=10us"));
    assert!(unet.resent >= MESSAGES / 64 - 1, "{unet:?}");
    assert_eq!(reliable.resent, 0, "{reliable:?}");
    let windows = MESSAGES / 64;
    assert!(unet.pure_acks <= windows + 1, "{unet:?}");
    assert!((4 * windows..=5 * windows).contains(&reliable.pure_acks), "{reliable:?}");
    assert!(reliable.time * 20 < unet.time, "{reliable:?}, {unet:?}");
}

/// Proves that a loss costs one packet and about a round trip, where the protocol of 1997 retransmits all
/// later messages, each after a timeout.
#[test]
fn reliable_resends_a_quarter_of_what_unet_does() {
    for path in ["delay=10us,loss=1%", "delay=1ms,loss=5%", "delay=100us,reorder=3"] {
        let (unet, reliable) = (unet(path), reliable(path));
        assert!(reliable.resent * 4 < unet.resent, "{path}: {reliable:?}, {unet:?}");
        assert!(reliable.time * 10 < unet.time, "{path}: {reliable:?}, {unet:?}");
    }
}
