//! The end of connections (5.12, 7 and 9; 5.8).

use mpjdev_proto::completion::Completion;
use mpjdev_proto::datagram::packet::Packet;
use mpjdev_proto::datagram::reliable::connection::Event;
use mpjdev_proto::datagram::reliable::error::{Cause, Failure, SendError};
use mpjdev_proto::datagram::reliable::message_tx::{Cancel, Send};
use mpjdev_proto::datagram::reliable::settings::{DEAD_AFTER, Path, Settings};
use mpjdev_proto::datagram::reliable::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};

use super::world::{END_LIMIT, World, for_seeds, mixed, scaled, short, world};

fn settings() -> Settings {
    Settings { first_rtt: Some(20 * MICROSECOND), ..Settings::new(Path::PRIVATE) }
}

fn close(world: &mut World, k: usize) {
    close_within(world, k, 5 * SECOND);
}

fn close_within(world: &mut World, k: usize, limit: Nanos) {
    let deadline = world.now + limit;
    world.ends[k].connection.close(deadline);
    assert_eq!(world.ends[k].connection.send(short(9)), Err(SendError::Finished));
    world.advance(world.now);
}

/// Proves that both ends close in order, one after the other or both at once, with all messages delivered, at
/// any loss.
#[test]
fn both_ends_close_in_order() {
    for impairment in ["delay=10us", "delay=10us,loss=10%", "delay=10us,loss=30%,dup=30%,reorder=3"] {
        for_seeds(0..scaled(10, 200), |seed| {
            let mut world = world(seed, settings(), impairment);
            world.ends[0].streams(100);
            world.ends[1].streams(50);
            world.run_until(END_LIMIT, |world| world.ends[0].sent == 100 && world.ends[1].sent == 50);
            // With these losses 5 s may be too short by chance.
            close_within(&mut world, 0, 30 * SECOND);
            if seed % 2 == 0 {
                world.run_for(MILLISECOND);
            }
            close_within(&mut world, 1, 30 * SECOND);
            world.run_until(60 * SECOND, |world| world.ends.iter().all(|end| end.connection.is_over()));
            for (end, expected) in world.ends.iter().zip([50, 100]) {
                assert!(end.closed && end.failure.is_none(), "{:?}", end.failure);
                assert_eq!((end.complete, end.peer_finished), (expected, true));
                assert_eq!(end.connection.pending(), []);
            }
        });
    }
}

/// Proves that an end may close while messages are in flight, unmatched or being cancelled: FIN waits for
/// these messages only.
#[test]
fn close_delivers_the_pending_messages() {
    const COUNT: u64 = 60;
    for impairment in ["delay=10us", "delay=1ms,loss=10%,dup=10%,reorder=3"] {
        for_seeds(0..scaled(20, 200), |seed| {
            let window = 1 + (seed % 5) as u16 * 8;
            let windows = Settings { receive_window: window, send_window: window, ..settings() };
            let mut world = world(seed, windows, impairment);
            world.ends[0].plan.message = mixed;
            world.ends[0].streams(COUNT);
            (world.ends[0].cancels, world.ends[1].dawdles) = (2 + seed % 4, 1 + seed % 7);
            world.run_until(END_LIMIT, |world| world.ends[0].sent == COUNT);
            close_within(&mut world, 0, 600 * SECOND);
            world.run_until(600 * SECOND, |world| world.ends[1].peer_finished);
            close_within(&mut world, 1, 600 * SECOND);
            world.run_until(600 * SECOND, |world| world.ends.iter().all(|end| end.connection.is_over()));
            for end in &world.ends {
                assert!(end.closed && end.failure.is_none(), "{:?}", end.failure);
                assert_eq!((end.connection.pending(), end.connection.counters().violations), (Vec::new(), 0));
            }
            assert_eq!(world.ends[1].complete + world.ends[0].cancelled, COUNT);
        });
    }
}

/// Proves that the close completes if the ack of the last FIN is lost: the lingering end, or its reset,
/// answers.
#[test]
fn close_completes_when_the_last_acknowledgment_is_lost() {
    // Shorter and longer than the linger time of the first end.
    for lost_for in [40 * MILLISECOND, 300 * MILLISECOND] {
        let mut world = world(1, settings(), "delay=10us");
        world.ends[0].streams(10);
        world.run_to_completion(SECOND);
        close(&mut world, 0);
        world.run_for(MILLISECOND);
        let begin = world.now;
        // From now on all packets of the first end are lost, so the FIN of the second is not acked.
        world.networks[0].partition(true);
        close(&mut world, 1);
        world.run_for(lost_for);
        assert!(!world.ends[1].closed);
        world.networks[0].partition(false);
        world.run_until(6 * SECOND, |world| world.ends.iter().all(|end| end.connection.is_over()));
        assert!(world.ends.iter().all(|end| end.closed), "after {} ms", (world.now - begin) / MILLISECOND);
    }
}

/// Proves that an end whose peer has exited fails at the deadline with the number of unacked messages and the
/// first sequence number.
#[test]
fn unreachable_peer_is_reported_at_the_close_deadline() {
    let mut world = world(1, settings(), "delay=10us");
    world.ends[0].streams(10);
    world.run_to_completion(SECOND);
    world.networks[0].partition(true);
    world.networks[1].partition(true);
    world.ends[0].plan.count = 110;
    world.run_for(MILLISECOND);
    let begin = world.now;
    close(&mut world, 0);
    world.run_until(6 * SECOND, |world| world.ends[0].connection.is_over());
    assert_eq!(world.now - begin, 5 * SECOND);
    let first = world.ends[0].connection.settings().first_ours.bits().wrapping_add(10) & 0x7fff_ffff;
    let expected = Failure { cause: Cause::Deadline, unacknowledged: 100, first, peer_finished: false };
    assert_eq!(world.ends[0].failure, Some(expected));
    assert_eq!(world.ends[0].connection.pending(), (11..=110).collect::<Vec<u64>>());
    let text = expected.to_string();
    assert!(text.contains("100 messages") && text.contains(&first.to_string()), "{text}");
    assert_eq!(world.ends[0].connection.next_timeout(), None);
}

/// Proves that a peer that never closes is reported too, although all messages arrived.
#[test]
fn peer_that_never_closes_is_reported_at_the_close_deadline() {
    let mut world = world(1, settings(), "delay=10us");
    world.ends[0].streams(10);
    world.run_to_completion(SECOND);
    close(&mut world, 0);
    world.run_until(6 * SECOND, |world| world.ends[0].connection.is_over());
    let failure = world.ends[0].failure.expect("it has failed");
    assert_eq!((failure.cause, failure.unacknowledged, failure.peer_finished), (Cause::Deadline, 0, false));
    assert!(world.ends[1].peer_finished && !world.ends[1].connection.is_over());
}

/// Proves that a silent peer is dead after 30 s if an ack is due, and only then.
#[test]
fn silent_peer_fails_after_30_seconds() {
    let mut world = world(1, settings(), "delay=10us");
    world.ends[0].streams(10);
    world.run_to_completion(SECOND);
    world.networks[1].partition(true);
    world.run_for(10 * DEAD_AFTER);
    assert_eq!(world.ends[0].failure, None, "nothing is owed");
    world.ends[0].plan.count = 11;
    let begin = world.now;
    world.run_until(2 * DEAD_AFTER, |world| world.ends[0].connection.is_over());
    assert_eq!(world.now - begin, DEAD_AFTER);
    let failure = world.ends[0].failure.expect("it has failed");
    assert_eq!((failure.cause, failure.unacknowledged), (Cause::Silence, 1));
    let questions = world.ends[0].connection.counters().probes;
    assert!((30..=80).contains(&questions), "{questions}");
}

/// Proves that packets of an earlier run on the same ports are counted and ignored, and that their sender is
/// reset (5.12, 9).
#[test]
fn stale_packets_are_ignored_and_answered_with_a_reset() {
    let mut old = world(1, settings(), "delay=10us");
    old.ends[0].streams(100);
    old.networks[0].partition(true);
    old.run_for(MILLISECOND);
    let mut new = world(2, settings(), "delay=10us");
    new.ends[0].streams(100);
    new.run_until(SECOND, |world| world.ends[1].complete > 10);
    let mut packets = 0;
    while let Some(transmit) = old.ends[0].connection.poll_transmit(old.now).or_else(|| {
        old.now += SECOND;
        old.ends[0].connection.handle_timeout(old.now);
        old.ends[0].connection.poll_transmit(old.now)
    }) {
        let before = new.ends[1].connection.counters();
        let _ = new.ends[1].connection.handle_datagram(new.now, &transmit.packet);
        let after = new.ends[1].connection.counters();
        assert_eq!((after.stale, after.received), (before.stale + 1, before.received));
        packets += 1;
        if packets == 20 {
            break;
        }
    }
    assert_eq!(packets, 20);
    new.run_to_completion(SECOND);
    // The old peer's packets arrive at a host that knows only the new connection.
    old.networks[0].partition(false);
    let theirs = new.ends[1].connection.settings().theirs;
    old.ends[1].connection = new.ends.into_iter().nth(1).expect("two").connection;
    old.run_until(5 * SECOND, |world| world.ends[0].connection.is_over());
    let failure = old.ends[0].failure.expect("it has failed");
    assert_eq!(failure.cause, Cause::Reset);
    assert_ne!(theirs, old.ends[0].connection.settings().theirs);
}

/// Proves that only a reset with the connection id ends the connection, and at once.
#[test]
fn reset_without_the_connection_id_is_ignored() {
    let mut world = world(1, settings(), "delay=10us");
    world.ends[0].streams(1000);
    world.run_until(SECOND, |world| world.ends[1].complete > 10);
    let connection = &mut world.ends[0].connection;
    let theirs = connection.settings().theirs;
    let mut packet = Packet::default();
    packet.extension.rst = true;
    for number in [0, theirs ^ 1, connection.settings().ours] {
        packet.extension.connection = number;
        let _ = connection.handle_datagram(world.now, &packet);
    }
    assert!(!connection.is_over());
    assert_eq!(connection.counters().stale, 3);
    world.ends[1].connection.abort();
    world.run_until(SECOND, |world| world.ends[0].connection.is_over());
    let causes = [0, 1].map(|k| world.ends[k].failure.map(|failure| failure.cause));
    assert_eq!(causes, [Some(Cause::Reset), Some(Cause::Aborted)]);
    let events = &world.ends[0].events;
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Failed(_))).count(), 1);
}

/// Proves that no packet is sent after the FIN, whatever the driver calls.
#[test]
fn nothing_is_sent_after_the_last_packet() {
    let mut world = world(1, settings(), "delay=10us");
    world.ends[0].plan.message = |number| Send { completion: Completion::Synchronous, ..short(number) };
    world.ends[0].streams(5);
    world.run_to_completion(SECOND);
    close(&mut world, 0);
    assert_eq!(world.ends[0].connection.cancel(3), Cancel::TooLate);
    close(&mut world, 1);
    world.run_until(SECOND, |world| world.ends.iter().all(|end| end.connection.is_over()));
    assert!(world.ends.iter().all(|end| end.closed && end.connection.counters().violations == 0));
}
