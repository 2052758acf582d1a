//! Packets that are not sent: needless acks and spurious retransmissions (5.12, 4 to 6).

use mpjdev_proto::completion::Completion;
use mpjdev_proto::datagram::reliable::connection::{Connection, Disposition};
use mpjdev_proto::datagram::reliable::counters::Counters;
use mpjdev_proto::datagram::reliable::message_tx::{Cancel, Send};
use mpjdev_proto::datagram::reliable::settings::{DEAD_AFTER, Path, Settings};
use mpjdev_proto::datagram::reliable::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};

use super::world::{END_LIMIT, Program, short, world};

fn settings() -> Settings {
    Settings { first_rtt: Some(20 * MICROSECOND), ..Settings::new(Path::PRIVATE) }
}

/// Proves that a receiver that computes for two seconds with a full window costs only the PTO probes, at
/// doubled times (5.12, 4).
#[test]
fn receiver_that_pauses_gets_all_messages() {
    let mut world = world(1, settings(), "delay=10us");
    world.ends[0].streams(5000);
    world.run_until(SECOND, |world| world.ends[1].complete > 1000);
    world.ends[1].asleep_until = world.now + 2 * SECOND;
    world.run_for(2 * SECOND - MILLISECOND);
    let counters = world.ends[0].connection.counters();
    assert_eq!(world.ends[0].connection.unacknowledged(), 64, "the window is full");
    // 25 ms, doubled each time: 25, 75, 175, 375, 775, 1575 ms; two packets from the second time on.
    assert_eq!((counters.timeouts, counters.retransmitted, counters.probes), (6, 11, 11), "{counters:?}");
    world.run_to_completion(SECOND);
    let counters = world.ends[0].connection.counters();
    assert_eq!((counters.retransmitted, counters.cuts), (11, 0), "nothing was lost: {counters:?}");
    assert!(world.now < super::world::START + 2100 * MILLISECOND, "it continues at once");
}

/// Proves that a one-way stream gets about four acks a window, without retransmission (5.12, 5).
#[test]
fn one_way_stream_gets_four_acks_a_window() {
    for window in [8, 64, 256] {
        let settings = Settings { receive_window: window, send_window: window, ..settings() };
        let path = Path { window: u32::from(window), window_max: u32::from(window), ..settings.path };
        let mut world = world(2, Settings { path, ..settings }, "delay=10us");
        world.check_every = 100;
        let count = u64::from(window) * 100;
        world.ends[0].streams(count);
        world.run_to_completion(END_LIMIT);
        let (sender, receiver) = (world.ends[0].connection.counters(), world.ends[1].connection.counters());
        assert_eq!((sender.retransmitted, sender.timeouts, sender.cuts), (0, 0, 0));
        assert!((400..=500).contains(&receiver.pure_acks), "window {window}: {receiver:?}");
    }
}

/// Proves that a stream that does not fill the window is acked before the PTO.
#[test]
fn slow_stream_is_acked_before_the_pto() {
    let mut world = world(3, settings(), "delay=10us");
    for _ in 0..200 {
        world.ends[0].plan.count += 1;
        world.run_for(3 * MILLISECOND);
    }
    world.run_to_completion(SECOND);
    let (sender, receiver) = (world.ends[0].connection.counters(), world.ends[1].connection.counters());
    assert_eq!((sender.retransmitted, sender.timeouts), (0, 0));
    assert_eq!(receiver.pure_acks, 200, "each waits for max_ack_delay");
}

/// Proves that a ping-pong has no packets except its messages (5.12, 6; 3.2).
#[test]
fn ping_pong_has_no_packets_except_its_messages() {
    for window in [4, 16, 64] {
        let mut world =
            world(4, Settings { receive_window: window, send_window: window, ..settings() }, "delay=10us");
        for end in &mut world.ends {
            end.program = Program::PingPong;
            end.plan.count = 2000;
        }
        world.ends[0].answers = 1;
        world.run_until(END_LIMIT, |world| world.ends[0].complete == 2000);
        for end in &world.ends {
            let counters = end.connection.counters();
            assert_eq!(
                (counters.sent, counters.pure_acks, counters.retransmitted),
                (2000, 0, 0),
                "{counters:?}"
            );
            assert_eq!(counters.received, 2000);
        }
    }
}

/// A ping-pong whose ends take these times to reply, in turns, and poll every 20 us meanwhile. Returns the
/// packets sent in the first turns, and in the later ones.
fn slow_ping_pong(path: Path, thinks: &[Nanos]) -> [[Counters; 2]; 2] {
    const TURNS: usize = 400;
    const FIRST: usize = 4;
    let settings = Settings { path, peer_max_ack_delay: path.max_ack_delay, ..settings() };
    let mut ends = [0, 1].map(|_| Connection::new(settings, 0).expect("settings"));
    let (mut now, mut before) = (0, None);
    for turn in 0..TURNS {
        let (one, other) = (turn % 2, 1 - turn % 2);
        ends[one].send(short(turn as u64)).expect("there is room");
        let first = ends[one].poll_transmit(now).expect("a message");
        now += 10 * MICROSECOND;
        assert!(matches!(ends[other].handle_datagram(now, &first.packet), Disposition::Deliver(_)), "{turn}");
        let answers_at = now + thinks[turn % thinks.len()];
        while now < answers_at {
            for k in [one, other] {
                ends[k].handle_drained(now);
                if ends[k].next_timeout().is_some_and(|at| at <= now) {
                    ends[k].handle_timeout(now);
                }
                while let Some(transmit) = ends[k].poll_transmit(now) {
                    let _ = ends[1 - k].handle_datagram(now, &transmit.packet);
                }
                while ends[k].poll_event().is_some() {}
            }
            now = answers_at.min(now + 20 * MICROSECOND);
        }
        let counters = [0, 1].map(|k| ends[k].counters());
        if turn == FIRST {
            before = Some(counters);
        }
    }
    [before.expect("turns"), [0, 1].map(|k| ends[k].counters())]
}

/// Proves that a ping-pong has no packets except its messages, after the first turns, if its ends reply
/// within max_ack_delay, also when they take longer than 50 us and poll meanwhile.
#[test]
fn slow_ping_pong_has_no_packets_except_its_messages() {
    for (path, thinks) in [
        (Path::PRIVATE, &[200 * MICROSECOND][..]),
        (Path::PRIVATE, &[0, 30 * MICROSECOND, 0, 900 * MICROSECOND, 60 * MICROSECOND]),
        (Path::UNKNOWN, &[20 * MILLISECOND, 0, MILLISECOND]),
    ] {
        let [before, behind] = slow_ping_pong(path, thinks);
        for (before, behind) in before.iter().zip(&behind) {
            assert_eq!(behind.pure_acks, before.pure_acks, "{thinks:?}: {behind:?}");
            assert_eq!((behind.retransmitted, behind.timeouts), (0, 0), "{thinks:?}: {behind:?}");
        }
    }
}

/// Proves that a reply that takes longer than max_ack_delay does not delay the ack beyond that, and that each
/// ack is counted by its cause.
#[test]
fn late_answer_does_not_delay_the_ack() {
    let [_, behind] = slow_ping_pong(Path::PRIVATE, &[2 * MILLISECOND]);
    for counters in behind {
        let messages = counters.received - counters.received_pure;
        assert_eq!(counters.pure_acks, messages, "one each: {counters:?}");
        assert_eq!(counters.acks_drained + counters.acks_late, messages, "{counters:?}");
    }
}

/// Proves that a stream whose receiver replies rarely is acked as often as one without replies, and its last
/// packets within max_ack_delay.
#[test]
fn rarely_answered_stream_is_acked_like_an_unanswered_one() {
    let settings = settings();
    let count = 6400;
    let run = |answers: u64| {
        let mut world = world(8, settings, "delay=10us");
        world.check_every = 100;
        world.ends[0].streams(count);
        for k in 1..=answers {
            world.run_until(SECOND, |world| world.ends[1].complete >= k * count / (answers + 1));
            world.ends[1].plan.count += 1;
        }
        world.run_until(SECOND, |world| world.ends[1].complete == count);
        let complete = world.now;
        world.run_until(SECOND, |world| world.ends[0].connection.is_flushed());
        let late = world.now - complete;
        assert!(late <= settings.path.max_ack_delay + 10 * MICROSECOND, "{late} ns");
        let counters = [0, 1].map(|k| world.ends[k].connection.counters());
        assert_eq!((counters[0].retransmitted, counters[0].timeouts), (0, 0), "{counters:?}");
        counters[1].pure_acks
    };
    let (without, with) = (run(0), run(50));
    assert!((400..=500).contains(&without), "{without}");
    assert!((without - 50..=without).contains(&with), "{with} and not {without}");
}

/// Proves that an ack waits 50 us for a reply while the driver finds its socket empty.
#[test]
fn packets_of_a_drained_socket_are_acked_after_50_us() {
    let mut world = world(5, settings(), "delay=10us");
    world.ends[0].streams(1);
    world.run_until(SECOND, |world| world.ends[1].complete == 1);
    let connection = &mut world.ends[1].connection;
    for (waited, expected) in
        [(0, false), (49 * MICROSECOND, false), (50 * MICROSECOND, true), (51 * MICROSECOND, false)]
    {
        connection.handle_drained(world.now + waited);
        assert_eq!(connection.poll_transmit(world.now + waited).is_some(), expected, "after {waited} ns");
    }
}

/// Proves that a held window stops the peer, that the peer sends window probes with backoff, and that it
/// continues when the report of the open window is lost (5.4).
#[test]
fn held_window_stops_the_peer_until_it_is_released() {
    let mut world = world(6, settings(), "delay=10us");
    world.ends[0].streams(1000);
    world.run_until(SECOND, |world| world.ends[1].complete > 100);
    world.ends[1].connection.hold(true);
    world.run_for(10 * SECOND);
    let stopped = world.ends[1].complete;
    assert!(stopped < 300, "{stopped}");
    let counters = world.ends[0].connection.counters();
    assert_eq!((counters.retransmitted, counters.timeouts), (0, 0));
    assert!((10..=20).contains(&counters.window_probes), "a second apart in the end: {counters:?}");
    world.networks[1].partition(true);
    world.ends[1].connection.hold(false);
    world.run_for(MILLISECOND);
    world.networks[1].partition(false);
    world.run_to_completion(2 * SECOND);
}

/// Proves that a peer that holds its window for longer than `dead_after` is not dead, since it answers.
#[test]
fn peer_with_a_held_window_is_not_failed() {
    let mut world = world(7, settings(), "delay=10us");
    world.ends[1].connection.hold(true);
    world.ends[0].streams(1000);
    world.run_for(3 * DEAD_AFTER);
    assert_eq!(world.ends[0].failure, None);
    world.ends[1].connection.hold(false);
    world.run_to_completion(2 * SECOND);
}

/// Proves that unmatched messages hold the window at a limit, and that matching them releases it.
#[test]
fn unmatched_messages_hold_the_window() {
    let mut world = world(8, Settings { arrivals_max: 256, ..settings() }, "delay=10us,loss=1%");
    world.ends[0].streams(1000);
    world.ends[0].plan.message = |number| Send { completion: Completion::Synchronous, ..short(number) };
    world.ends[1].dawdles = u64::MAX;
    world.run_for(100 * MILLISECOND);
    let begun = world.ends[1].begun;
    assert!((100..=256).contains(&begun), "{begun}");
    world.ends[1].dawdles = 0;
    world.run_to_completion(END_LIMIT);
}

/// Proves that two ends with held windows do not deadlock on answers when all messages are matched at once.
#[test]
fn answers_pass_when_both_windows_were_held() {
    let settings = Settings { receive_window: 4, send_window: 4, arrivals_max: 16, ..settings() };
    let mut world = world(11, settings, "delay=10us");
    for end in &mut world.ends {
        end.streams(100);
        end.plan.message = |number| Send { completion: Completion::Synchronous, ..short(number) };
        end.dawdles = u64::MAX;
    }
    world.run_for(100 * MILLISECOND);
    assert!(world.ends.iter().all(|end| (8..=16).contains(&end.begun)), "both hold their windows");
    for end in &mut world.ends {
        end.dawdles = 0;
    }
    world.run_to_completion(SECOND);
    assert!(world.ends.iter().all(|end| end.matched == 100));
}

/// Proves that flush requests an ack, which takes one round trip.
#[test]
fn flush_takes_one_round_trip() {
    for flushes_before in [false, true] {
        let slow = Path { max_ack_delay: SECOND, ..Path::PRIVATE };
        let mut world =
            world(9, Settings { path: slow, peer_max_ack_delay: SECOND, ..settings() }, "delay=10us");
        world.ends[0].streams(3);
        if flushes_before {
            let connection = &mut world.ends[0].connection;
            connection.send(short(0)).expect("there is room");
            world.ends[0].sent = 1;
            world.ends[0].connection.flush();
            world.ends[0].plan.count = 1;
        } else {
            world.run_until(SECOND, |world| world.ends[1].complete == 3);
            assert!(!world.ends[0].connection.is_flushed());
            world.ends[0].connection.flush();
        }
        let before = world.now;
        // The driver's pass after the command.
        world.advance(before);
        world.run_until(SECOND, |world| world.ends[0].connection.is_flushed());
        assert!(world.now - before <= 20 * MICROSECOND, "{}", world.now - before);
    }
}

/// Proves that a cancelled message causes no window probe and no failure of the peer.
#[test]
fn cancelled_message_does_not_delay_the_others() {
    let mut world = world(10, settings(), "delay=10us");
    world.ends[1].connection.hold(true);
    world.ends[0].streams(65);
    world.run_for(MILLISECOND);
    assert_eq!(world.ends[1].complete, 64);
    world.ends[1].asleep_until = u64::MAX;
    assert_eq!(world.ends[0].connection.cancel(65), Cancel::Done);
    world.run_for(3 * DEAD_AFTER);
    assert_eq!((world.ends[0].failure, world.ends[0].connection.next_timeout()), (None, None));
}
