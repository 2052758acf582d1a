//! The protocol of 1997, packet by packet: each row of its table in PROTOCOL.md.

use mpjdev_proto::datagram::header::Numbers;
use mpjdev_proto::datagram::layout::WINDOW_MAX;
use mpjdev_proto::datagram::sequence::Sequence;
use mpjdev_unet::{AckError, Event, Outcome, SendError, Settings, SettingsError, Transmit, UnetConnection};

const SETTINGS: Settings = Settings { window: 4, timeout_ns: 100, timeout_max_ns: 500, eager_acks: false };

fn machine() -> UnetConnection<char> {
    UnetConnection::new(SETTINGS).expect("good settings")
}

fn numbers(seq: Option<u64>, ack: Option<u64>) -> Numbers {
    Numbers { seq: seq.map(Sequence::of), ack: ack.map(Sequence::of) }
}

fn again(token: char, seq: u64, ack: Option<u64>) -> Option<Transmit<char>> {
    Some(Transmit::Again { token, numbers: numbers(Some(seq), ack) })
}

fn pure_ack(ack: u64) -> Option<Transmit<char>> {
    Some(Transmit::Ack { numbers: numbers(None, Some(ack)) })
}

/// Sends messages 'a', 'b', ... at time 0.
fn sent(count: u8) -> UnetConnection<char> {
    let mut machine = machine();
    for (k, token) in (0..count).zip('a'..) {
        assert_eq!(machine.send(0, token), Ok(numbers(Some(u64::from(k)), None)));
        machine.check_invariants();
    }
    machine
}

fn released(machine: &mut UnetConnection<char>) -> String {
    std::iter::from_fn(|| machine.poll_released()).collect()
}

/// Proves that numbers ascend, that the first message starts the only timer, and that a send queues no other
/// packet.
#[test]
fn send_takes_the_next_number_and_starts_the_timer_once() {
    let mut machine = machine();
    assert_eq!((machine.next_timeout_ns(), machine.unacknowledged()), (None, 0));
    assert_eq!(machine.send(7, 'a'), Ok(numbers(Some(0), None)));
    assert_eq!(machine.send(60, 'b'), Ok(numbers(Some(1), None)));
    assert_eq!((machine.next_timeout_ns(), machine.unacknowledged()), (Some(107), 2));
    assert_eq!(machine.poll_transmit(), None);
}

/// Proves that the window bounds the messages until they are acknowledged and their tokens polled.
#[test]
fn send_into_a_full_window_is_refused() {
    let mut machine = sent(4);
    for _ in 0..2 {
        assert!(!machine.can_send());
        assert_eq!(machine.send(0, 'x'), Err(SendError::Full { window: 4 }));
    }
    assert_eq!(machine.handle_packet(1, numbers(None, Some(1))), Ok(Event::Nothing));
    assert_eq!(machine.send(1, 'x'), Err(SendError::Full { window: 4 }), "a token is still to be taken");
    assert_eq!(released(&mut machine), "a");
    assert_eq!(machine.send(1, 'x'), Ok(numbers(Some(4), None)));
    machine.check_invariants();
}

/// Proves that a message in order triggers no packet, and that its acknowledgment is sent once, with the next
/// message.
#[test]
fn acknowledgment_is_piggy_backed_on_the_next_message() {
    let mut machine = machine();
    assert_eq!(machine.handle_packet(0, numbers(Some(0), None)), Ok(Event::Deliver));
    assert_eq!(machine.handle_packet(0, numbers(Some(1), None)), Ok(Event::Deliver));
    assert_eq!((machine.poll_transmit(), machine.next_timeout_ns()), (None, None));
    assert_eq!(machine.send(0, 'a'), Ok(numbers(Some(0), Some(2))));
    assert_eq!(machine.send(0, 'b'), Ok(numbers(Some(1), None)));
}

/// Proves that a retransmission carries the acknowledgment too.
#[test]
fn acknowledgment_is_piggy_backed_on_a_retransmission() {
    let mut machine = sent(1);
    assert_eq!(machine.handle_packet(50, numbers(Some(0), None)), Ok(Event::Deliver));
    machine.handle_timeout(100);
    assert_eq!(machine.poll_transmit(), again('a', 0, Some(1)));
    assert_eq!(machine.poll_transmit(), None);
}

/// Proves that a duplicate or early message is dropped, and that the expected number is sent at once.
#[test]
fn message_out_of_order_is_dropped_and_acknowledged_at_once() {
    let mut machine = machine();
    assert_eq!(machine.handle_packet(0, numbers(Some(1), None)), Ok(Event::Nothing));
    assert_eq!((machine.poll_transmit(), machine.poll_transmit()), (pure_ack(0), None));
    assert_eq!(machine.handle_packet(0, numbers(Some(0), None)), Ok(Event::Deliver));
    assert_eq!(machine.handle_packet(0, numbers(Some(0), None)), Ok(Event::Nothing));
    assert_eq!((machine.poll_transmit(), machine.poll_transmit()), (pure_ack(1), None));
    assert_eq!(machine.send(0, 'a'), Ok(numbers(Some(0), None)), "nothing is owed any more");
}

/// Proves that a pure acknowledgment triggers no packet, so that two ends do not acknowledge forever.
#[test]
fn pure_acknowledgment_is_not_acknowledged() {
    let mut machine = sent(2);
    for ack in [1, 1, 0, 2, 2] {
        assert_eq!(machine.handle_packet(0, numbers(None, Some(ack))), Ok(Event::Nothing));
        assert_eq!(machine.poll_transmit(), None);
        machine.check_invariants();
    }
}

/// Proves that an acknowledgment is cumulative, returns tokens in order, and restarts the timer.
#[test]
fn acknowledgment_moves_the_left_edge() {
    let mut machine = sent(4);
    machine.handle_timeout(100);
    assert_eq!(machine.poll_transmit(), again('a', 0, None));
    assert_eq!(machine.next_timeout_ns(), Some(300), "doubled");
    assert_eq!(machine.handle_packet(150, numbers(None, Some(3))), Ok(Event::Nothing));
    assert_eq!(machine.next_timeout_ns(), Some(250), "as at first");
    assert_eq!((released(&mut machine), machine.unacknowledged()), ("abc".to_owned(), 1));
    machine.handle_timeout(250);
    assert_eq!(machine.poll_transmit(), again('d', 3, None));
    assert_eq!(
        machine.handle_packet(260, numbers(Some(0), Some(4))),
        Ok(Event::Deliver),
        "also on a message"
    );
    assert_eq!((released(&mut machine), machine.next_timeout_ns()), ("d".to_owned(), None));
    machine.check_invariants();
}

/// Proves that old acknowledgments have no effect, also on the timer, and that one of an unsent number is
/// refused with its message.
#[test]
fn acknowledgment_of_an_unsent_number_is_refused() {
    let mut machine = sent(3);
    assert_eq!(machine.handle_packet(10, numbers(None, Some(2))), Ok(Event::Nothing));
    assert_eq!(machine.handle_packet(20, numbers(None, Some(1))), Ok(Event::Nothing));
    assert_eq!((machine.unacknowledged(), machine.next_timeout_ns()), (1, Some(110)));
    let refused = Err(AckError { ack: 4, snd_nxt: 3 });
    assert_eq!(machine.handle_packet(30, numbers(Some(0), Some(4))), refused);
    assert_eq!(
        machine.handle_packet(30, numbers(None, Some(16386))),
        Err(AckError { ack: 16386, snd_nxt: 3 })
    );
    assert_eq!((machine.unacknowledged(), machine.next_timeout_ns()), (1, Some(110)));
    assert_eq!(
        machine.handle_packet(40, numbers(Some(0), None)),
        Ok(Event::Deliver),
        "it was not taken before"
    );
}

/// Proves that each timeout retransmits the left edge alone, at doubled times up to the maximum.
#[test]
fn left_edge_is_retransmitted_with_backoff() {
    let mut machine = sent(3);
    let mut due = 100;
    for wait in [200, 400, 500, 500, 500] {
        assert_eq!(machine.next_timeout_ns(), Some(due));
        machine.handle_timeout(due - 1);
        assert_eq!(machine.poll_transmit(), None, "too early");
        machine.handle_timeout(due);
        assert_eq!((machine.poll_transmit(), machine.poll_transmit()), (again('a', 0, None), None));
        machine.check_invariants();
        due += wait;
    }
}

/// Proves that a late timeout retransmits once, and that the next timeout counts from there.
#[test]
fn late_timeout_retransmits_once() {
    let mut machine = sent(1);
    machine.handle_timeout(10_000);
    machine.handle_timeout(10_000);
    assert_eq!((machine.poll_transmit(), machine.poll_transmit()), (again('a', 0, None), None));
    assert_eq!(machine.next_timeout_ns(), Some(10_200));
}

/// Proves that acknowledged packets are not retransmitted.
#[test]
fn acknowledged_packets_are_not_retransmitted() {
    let mut machine = sent(2);
    machine.handle_timeout(100);
    assert_eq!(machine.handle_packet(100, numbers(None, Some(1))), Ok(Event::Nothing));
    assert_eq!(machine.poll_transmit(), None);
    machine.check_invariants();
}

/// Proves that duplicate acknowledgments have no effect: the protocol has no fast retransmit (3.2).
#[test]
fn duplicate_acknowledgments_are_ignored() {
    let mut machine = sent(4);
    for now_ns in 1..50 {
        assert_eq!(machine.handle_packet(now_ns, numbers(None, Some(0))), Ok(Event::Nothing));
        assert_eq!((machine.poll_transmit(), machine.next_timeout_ns()), (None, Some(100)));
    }
}

/// Proves that with eager acknowledgments each message is acknowledged at once.
#[test]
fn eager_acknowledgments_are_sent_at_once() {
    let mut machine =
        UnetConnection::<char>::new(Settings { eager_acks: true, ..SETTINGS }).expect("good settings");
    for seq in 0..3 {
        assert_eq!(machine.handle_packet(0, numbers(Some(seq), None)), Ok(Event::Deliver));
        assert_eq!((machine.poll_transmit(), machine.poll_transmit()), (pure_ack(seq + 1), None));
    }
}

/// Proves that finish sends pending acks, refuses sends, and is complete when all is acknowledged.
#[test]
fn finish_waits_for_unacknowledged_messages() {
    let mut machine = sent(2);
    assert_eq!(machine.handle_packet(0, numbers(Some(0), None)), Ok(Event::Deliver));
    machine.finish(10, 1_000);
    assert_eq!((machine.poll_transmit(), machine.poll_transmit()), (pure_ack(1), None));
    assert_eq!(machine.send(10, 'x'), Err(SendError::Finished));
    assert_eq!(machine.outcome(), None);
    machine.handle_timeout(100);
    assert_eq!(machine.poll_transmit(), again('a', 0, None));
    assert_eq!(machine.handle_packet(110, numbers(Some(1), Some(2))), Ok(Event::Deliver));
    assert_eq!(machine.outcome(), Some(Outcome::Complete));
    assert_eq!((machine.poll_transmit(), machine.poll_transmit()), (pure_ack(2), None), "owed nevertheless");
    assert_eq!((released(&mut machine).as_str(), machine.next_timeout_ns()), ("ab", None));
    machine.check_invariants();
}

/// Proves that an end without unacknowledged messages is complete at once.
#[test]
fn finish_without_messages_completes_at_once() {
    let mut machine = machine();
    machine.finish(10, 10);
    assert_eq!((machine.outcome(), machine.next_timeout_ns()), (Some(Outcome::Complete), None));
    assert_eq!(machine.poll_transmit(), None);
    machine.check_invariants();
}

/// Proves that the limit ends with a warning that names the missing messages, that this is final, and that
/// the end still answers packets.
#[test]
fn finish_limit_ends_with_a_warning() {
    let mut machine = sent(3);
    assert_eq!(machine.handle_packet(0, numbers(None, Some(1))), Ok(Event::Nothing));
    machine.finish(10, 250);
    machine.handle_timeout(100);
    assert_eq!((machine.poll_transmit(), machine.next_timeout_ns()), (again('b', 1, None), Some(250)));
    machine.handle_timeout(249);
    assert_eq!(machine.outcome(), None);
    machine.handle_timeout(250);
    let warning = Some(Outcome::Warning { unacknowledged: 2, first: 1 });
    assert_eq!(
        (machine.outcome(), machine.poll_transmit(), machine.next_timeout_ns()),
        (warning, None, None)
    );
    assert_eq!(machine.handle_packet(260, numbers(Some(0), Some(2))), Ok(Event::Deliver));
    assert_eq!(machine.poll_transmit(), pure_ack(1));
    assert_eq!((machine.outcome(), machine.next_timeout_ns()), (warning, None));
    machine.check_invariants();
}

/// Proves the limits of the settings, and that the largest window works around the wrap.
#[test]
fn window_of_half_the_numbers_is_refused() {
    for window in [0, WINDOW_MAX + 1, u16::MAX] {
        let refused = UnetConnection::<char>::new(Settings { window, ..SETTINGS }).map(drop);
        assert_eq!(refused, Err(SettingsError::Window { window }));
    }
    for (timeout_ns, timeout_max_ns) in [(0, 10), (11, 10)] {
        let refused =
            UnetConnection::<char>::new(Settings { timeout_ns, timeout_max_ns, ..SETTINGS }).map(drop);
        assert_eq!(refused, Err(SettingsError::Timeout { timeout_ns, timeout_max_ns }));
    }
    assert!(UnetConnection::<char>::new(Settings::default()).is_ok());
    let settings = Settings { window: WINDOW_MAX, ..SETTINGS };
    let [mut sender, mut receiver] = [(); 2].map(|()| UnetConnection::new(settings).expect("good settings"));
    for round in 0..5 {
        for token in 0..u64::from(WINDOW_MAX) {
            let numbers = sender.send(0, token).expect("room");
            assert_eq!(receiver.handle_packet(0, numbers), Ok(Event::Deliver), "{token} of round {round}");
        }
        assert!(sender.send(0, 0).is_err());
        sender.handle_timeout(1_000_000);
        let Some(Transmit::Again { token: 0, numbers }) = sender.poll_transmit() else { panic!("due") };
        assert_eq!(receiver.handle_packet(0, numbers), Ok(Event::Nothing), "it arrived before");
        let Some(Transmit::Ack { numbers }) = receiver.poll_transmit() else { panic!("due") };
        assert_eq!(sender.handle_packet(0, numbers), Ok(Event::Nothing));
        assert_eq!(std::iter::from_fn(|| sender.poll_released()).count(), usize::from(WINDOW_MAX));
        sender.check_invariants();
    }
}
