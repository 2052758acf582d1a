//! Many runs of the protocol of 1997 over impaired networks: each message once, in order, intact; and its
//! weaknesses.

use mpjdev_proto::datagram::header::Header;
use mpjdev_sim::{Impairment, Random};
use mpjdev_unet::{Outcome, Settings};

use crate::world::{FINISH_NS, Program, Sends, World};

const MS: u64 = 1_000_000;
/// Messages of each end of a run with a seed.
const MESSAGES: u64 = 350;
/// Steps after which a run counts as stalled.
const STEPS_MAX: usize = 10_000_000;
const SETTINGS: Settings =
    Settings { window: 64, timeout_ns: 25 * MS, timeout_max_ns: 1000 * MS, eager_acks: false };
const SILENT: Program = Program { messages: 0, sends: Sends::Within(0), computes_ns: 0 };

/// Networks of the acceptance checks (5.12, 1 and 2), and combinations.
const NETWORKS: [&str; 14] = [
    "",
    "loss=1e-4",
    "loss=1%",
    "loss=30%",
    "burst=1%/20%",
    "reorder=1/30%",
    "reorder=3/30%",
    "reorder=16/10%",
    "reorder=100/5%,loss=1%",
    "dup=1%",
    "dup=50%,loss=5%",
    "delay=5ms,jitter=3ms,dup=10%",
    "rate=1mbit,queue=8",
    "loss=2%,burst=0.5%/30%,dup=5%,reorder=9/10%,delay=1ms,jitter=100us,partition=30ms/200ms",
];

fn impairment(text: &str) -> Impairment {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn streams(messages: u64) -> Program {
    Program { messages, sends: Sends::Within(0), computes_ns: 0 }
}

/// The sums over the runs of a test.
#[derive(Debug, Default)]
struct Sum {
    messages: u64,
    resent: u64,
    lost: u64,
    complete: u64,
    warnings: u64,
}

/// A run that depends on its seed only.
fn run(seed: u64, sum: &mut Sum) {
    let mut random = Random::new(seed);
    let mut one_of = |count: usize| random.up_to(count as u64 - 1) as usize;
    let timeout_ns = [MS, 5 * MS, 25 * MS][one_of(3)];
    let settings = Settings {
        window: [1, 2, 7, 64, 1000][one_of(5)],
        timeout_ns,
        timeout_max_ns: timeout_ns * [1, 8, 40][one_of(3)],
        eager_acks: one_of(4) == 0,
    };
    let mut program = || Program {
        messages: [0, MESSAGES, MESSAGES][one_of(3)],
        sends: Sends::Within([0, 20_000, 2 * MS][one_of(3)]),
        computes_ns: [0, 0, 30 * MS][one_of(3)],
    };
    let mut programs = [program(), program()];
    if one_of(3) == 0 {
        let [first, second] = &mut programs;
        (first.sends, second.sends) = (Sends::First, Sends::Second);
        (first.messages, second.messages) = (MESSAGES, MESSAGES);
    }
    // Half of the runs have the same network in both directions; only acknowledgments are lost where one end
    // only receives.
    let networks = [one_of(NETWORKS.len()), one_of(NETWORKS.len())];
    let networks = if one_of(2) == 0 { [networks[0]; 2] } else { networks };
    let mut world = World::new(seed, settings, programs, networks.map(|k| impairment(NETWORKS[k])));
    world.run(STEPS_MAX);
    let outcomes = world.finish();
    for (outcome, end) in outcomes.into_iter().zip(&world.ends) {
        match outcome {
            Outcome::Complete => sum.complete += 1,
            Outcome::Warning { unacknowledged, first } => {
                assert!(unacknowledged > 0);
                assert_eq!(first + u64::from(unacknowledged), end.sent);
                assert!(
                    networks.iter().any(|k| !NETWORKS[*k].is_empty()),
                    "a warning without a loss: {world:?}"
                );
                sum.warnings += 1;
            }
        }
        assert_eq!(end.sent, end.program.messages);
        sum.messages += end.received;
        sum.resent += end.resent;
    }
    sum.lost += world.wires.iter().map(|wire| wire.counts().lost + wire.counts().dropped).sum::<u64>();
}

/// Runs of a test, each with its seed.
fn runs() -> u64 {
    if std::env::var_os("MPJDEV_SOAK").is_some() { 10_000 } else { 240 }
}

/// Proves that each message arrives once, in order and intact, with losses, bursts, duplicates, reordering,
/// delays, full queues and partitions, windows from 1 to 1000, and ends that compute.
#[test]
fn each_message_arrives_once_in_order_and_intact() {
    let mut sum = Sum::default();
    for seed in 0..runs() {
        let run = std::panic::AssertUnwindSafe(|| run(seed, &mut sum));
        std::panic::catch_unwind(run).unwrap_or_else(|panic| {
            eprintln!("the seed is {seed}");
            std::panic::resume_unwind(panic)
        });
    }
    assert!(
        sum.messages > runs() * MESSAGES && sum.resent > 10 * runs() && sum.lost > 10 * runs(),
        "{sum:?}"
    );
    assert!(sum.warnings > 0 && sum.complete > sum.warnings, "{sum:?}");
}

/// Proves that numbers of 15 bits suffice: more than three wraps in each direction, with loss, duplicates and
/// reordering (5.12, 3).
#[test]
fn sequence_numbers_wrap() {
    let bad = impairment("loss=0.1%,dup=0.1%,reorder=20/0.1%,delay=50us");
    let programs = [Program { messages: 100_000, sends: Sends::Within(20_000), computes_ns: 0 }; 2];
    let mut world = World::new(1, SETTINGS, programs, [bad; 2]);
    world.run(STEPS_MAX);
    assert!(world.ends.iter().all(|end| end.received > 3 << 15 && end.resent > 0), "{world:?}");
}

/// Proves that a ping-pong has no pure acknowledgment and no retransmission: every acknowledgment is
/// piggy-backed on the next message (3.2).
#[test]
fn ping_pong_has_no_pure_acknowledgment() {
    let program = |sends| Program { messages: 10_000, sends, computes_ns: 0 };
    let slow = impairment("delay=20us,jitter=30us");
    let mut world = World::new(1, SETTINGS, [program(Sends::First), program(Sends::Second)], [slow; 2]);
    world.run(STEPS_MAX);
    let extra = world.ends.each_ref().map(|end| (end.pure_acks, end.resent));
    assert_eq!(extra, [(0, 0); 2], "{world:?}");
    let packets = world.wires.each_ref().map(|wire| wire.counts().sent);
    assert_eq!(packets, [10_000; 2]);
    // Only the last message has no successor.
    assert_eq!(world.finish(), [Outcome::Complete; 2]);
    assert_eq!(world.ends.each_ref().map(|end| end.pure_acks), [1, 0]);
}

/// Proves the weakness of a one-way stream: without loss, each window costs a timeout, a spurious
/// retransmission and the acknowledgment of that (3.2).
#[test]
fn one_way_stream_needs_a_timeout_for_each_window() {
    let windows = 20;
    let messages = windows * u64::from(SETTINGS.window);
    let mut world = World::new(1, SETTINGS, [streams(messages), SILENT], [impairment("delay=10us"); 2]);
    world.run(STEPS_MAX);
    let [sender, receiver] = &world.ends;
    assert_eq!((sender.resent, receiver.pure_acks), (windows - 1, windows - 1), "{world:?}");
    assert!(world.now_ns >= (windows - 1) * SETTINGS.timeout_ns);
    // The finish of the receiver acknowledges the last window.
    assert_eq!(world.finish(), [Outcome::Complete; 2]);
    assert_eq!(
        world.ends.each_ref().map(|end| (end.resent, end.pure_acks)),
        [(windows - 1, 0), (0, windows)]
    );
}

/// Proves that eager acknowledgments, as the report proposes, avoid that at the cost of a packet for each
/// message.
#[test]
fn eager_acknowledgments_avoid_timeouts_of_a_stream() {
    let settings = Settings { eager_acks: true, ..SETTINGS };
    let mut world = World::new(1, settings, [streams(2_000), SILENT], [impairment("delay=10us"); 2]);
    world.run(STEPS_MAX);
    let [sender, receiver] = &world.ends;
    assert_eq!((sender.resent, receiver.pure_acks), (0, 2_000), "{world:?}");
    assert!(world.now_ns < SETTINGS.timeout_ns);
}

/// Proves that the messages after a lost one are dropped and recovered by stop-and-wait: each takes a timeout
/// of its own, in a one-way stream a second one, which triggers the acknowledgment (3.2).
#[test]
fn loss_costs_a_timeout_for_each_later_message() {
    let behind = 9;
    for (eager_acks, timeouts) in [(true, 1 + behind), (false, 2 * (1 + behind) - 1)] {
        let settings = Settings { timeout_max_ns: SETTINGS.timeout_ns, eager_acks, ..SETTINGS };
        let mut world = World::new(1, settings, [streams(1 + behind), SILENT], [Impairment::NONE; 2]);
        world.wires[0].set_filter(|number, _| number == 0);
        world.run(STEPS_MAX);
        assert_eq!(world.ends[0].resent, timeouts, "{world:?}");
        assert_eq!(world.now_ns, timeouts * SETTINGS.timeout_ns);
        assert_eq!(world.ends[1].received, 1 + behind);
    }
}

/// Proves that the duplicate acknowledgments of a gap trigger no retransmission before the timer (3.2).
#[test]
fn gap_is_not_repaired_before_the_timeout() {
    let mut world = World::new(1, SETTINGS, [streams(10), SILENT], [Impairment::NONE; 2]);
    world.wires[0].set_filter(|number, _| number == 0);
    world.run_until(STEPS_MAX, |world| world.ends[1].received > 0);
    assert_eq!((world.now_ns, world.ends[1].pure_acks), (SETTINGS.timeout_ns, 9), "{world:?}");
}

/// Proves that any later packet makes up for a lost acknowledgment, since acknowledgments are cumulative
/// (3.2).
#[test]
fn any_later_packet_repairs_a_lost_acknowledgment() {
    let program = |sends| Program { messages: 10, sends, computes_ns: 0 };
    let settings = Settings { eager_acks: true, ..SETTINGS };
    let mut world = World::new(1, settings, [program(Sends::Within(0)), SILENT], [Impairment::NONE; 2]);
    world.wires[1].set_filter(|number, _| number < 9);
    world.run_until(STEPS_MAX, |world| world.ends[0].machine.unacknowledged() == 0 && world.has_all(1));
    assert_eq!((world.ends[0].resent, world.now_ns), (0, 0), "{world:?}");
}

/// Proves that an end whose last acknowledgment is lost retransmits until its limit and warns, although all
/// messages arrived (3.2).
#[test]
fn lost_last_acknowledgment_is_a_warning() {
    let program = |sends| Program { messages: 5, sends, computes_ns: 0 };
    let mut world =
        World::new(1, SETTINGS, [program(Sends::First), program(Sends::Second)], [Impairment::NONE; 2]);
    world.wires[0].set_filter(|_, packet: &Vec<u8>| is_pure_ack(packet));
    world.run(STEPS_MAX);
    let began_ns = world.now_ns;
    let warning = Outcome::Warning { unacknowledged: 1, first: 4 };
    assert_eq!(world.finish(), [Outcome::Complete, warning]);
    assert_eq!(world.now_ns - began_ns, FINISH_NS, "{world:?}");
    // 25, 50, ..., 800 ms, then every second.
    assert_eq!(world.ends[1].resent, 9);
}

/// Proves that without loss both ends finish at the same time, with unacknowledged windows.
#[test]
fn both_ends_finish_at_the_same_time() {
    let mut world = World::new(1, SETTINGS, [streams(40), streams(40)], [impairment("delay=1ms"); 2]);
    world.run(STEPS_MAX);
    assert_eq!(world.finish(), [Outcome::Complete; 2]);
}

/// Proves that a computing peer causes spurious retransmissions at doubled times: a timeout is no proof of
/// loss (1.1).
#[test]
fn left_edge_is_retransmitted_to_a_computing_peer() {
    let mut world = World::new(1, SETTINGS, [streams(1), SILENT], [Impairment::NONE; 2]);
    // For two seconds the peer does not poll: packets wait in the receive queue.
    world.wires[0].set_impairment(impairment("delay=2s"));
    world.run(STEPS_MAX);
    // 25, 75, 175, 375, 775, 1575 ms.
    assert_eq!((world.ends[0].resent, world.ends[1].received), (6, 1), "{world:?}");
}

fn is_pure_ack(packet: &[u8]) -> bool {
    let (Header { numbers, .. }, _) = mpjdev_unet::parse(packet).expect("a packet");
    numbers.seq.is_none()
}
