//! Target of the U-Net protocol of 1997, under any sequence of calls and packets.

use std::collections::VecDeque;

use mpjdev_proto::datagram::header::Numbers;
use mpjdev_proto::datagram::sequence::Sequence;
use mpjdev_unet::{Event, Outcome, SendError, Settings, Transmit, UnetConnection};

/// Runs calls and packets of three octets each. The first octet of the input selects the settings.
///
/// Invariants, after each step: the machine's own, with its window. A message is delivered if and only if it
/// has the next number. Tokens are released once, in order, after their acks. Only the left edge is
/// retransmitted, and only after a timeout. Each pure ack has a cause. A refused call or packet changes no
/// output. The outcome follows a finish and is permanent.
pub fn unet(input: &[u8]) {
    let Some((&settings, calls)) = input.split_first() else { return };
    let mut model = Model::new(settings);
    for call in calls.chunks_exact(3) {
        model.step(call[0], u16::from_be_bytes([call[1], call[2]]));
        model.check();
    }
}

/// Model of the state machine: the machine and the history of its calls and packets.
struct Model {
    machine: UnetConnection<u64>,
    settings: Settings,
    now_ns: u64,
    /// Sent messages that are not released.
    kept: VecDeque<u64>,
    sent: u64,
    acknowledged: u64,
    received: u64,
    /// Received packets that a pure ack may answer.
    causes: u64,
    timeouts: u64,
    finished: bool,
    outcome: Option<Outcome>,
}

impl Model {
    fn new(choice: u8) -> Self {
        let settings = Settings {
            window: [1, 2, 5, 16_383][usize::from(choice & 3)],
            timeout_ns: 10,
            timeout_max_ns: [10, 80, u64::MAX][usize::from(choice >> 2 & 3) % 3],
            eager_acks: choice & 16 != 0,
        };
        Self {
            machine: UnetConnection::new(settings).expect("good settings"),
            settings,
            now_ns: 0,
            kept: VecDeque::new(),
            sent: 0,
            acknowledged: 0,
            received: 0,
            causes: 0,
            timeouts: 0,
            finished: false,
            outcome: None,
        }
    }

    fn step(&mut self, call: u8, number: u16) {
        let near = |reference: u64| reference.wrapping_add(u64::from(number % 8)).wrapping_sub(3);
        match call % 8 {
            0 | 1 => self.send(),
            2 => self.packet(Some(near(self.received)), None),
            3 => self.packet(None, Some(near(self.acknowledged))),
            4 => self.packet(Some(self.received), Some(near(self.sent))),
            5 => {
                let has = |bit: u8| call & bit != 0;
                self.packet(has(8).then(|| u64::from(number)), has(16).then(|| u64::from(number)));
            }
            6 => self.time(u64::from(number)),
            _ => self.output(call, number),
        }
    }

    fn send(&mut self) {
        match self.machine.send(self.now_ns, self.sent) {
            Ok(numbers) => {
                assert!(!self.finished && self.kept.len() < usize::from(self.settings.window));
                assert_eq!(numbers.seq, Some(Sequence::of(self.sent)));
                self.acks(numbers);
                self.kept.push_back(self.sent);
                self.sent += 1;
            }
            Err(SendError::Finished) => assert!(self.finished),
            Err(SendError::Full { window }) => assert_eq!(self.kept.len(), usize::from(window)),
        }
    }

    fn packet(&mut self, seq: Option<u64>, ack: Option<u64>) {
        let numbers = Numbers { seq: seq.map(Sequence::of), ack: ack.map(Sequence::of) };
        let ack = numbers.ack.map(|ack| ack.expand(self.acknowledged));
        match self.machine.handle_packet(self.now_ns, numbers) {
            Ok(event) => {
                assert!(ack.is_none_or(|ack| ack <= self.sent));
                self.acknowledged = self.acknowledged.max(ack.unwrap_or(0));
                let is_next = numbers.seq == Some(Sequence::of(self.received));
                assert_eq!(event == Event::Deliver, is_next);
                self.received += u64::from(is_next);
                self.causes += u64::from(numbers.seq.is_some());
            }
            Err(error) => {
                assert!(Some(error.ack) == ack && error.ack > self.sent && error.snd_nxt == self.sent)
            }
        }
    }

    fn time(&mut self, number: u64) {
        self.now_ns += number;
        let due = self.machine.next_timeout_ns().is_some_and(|due_ns| due_ns <= self.now_ns);
        self.timeouts += u64::from(due);
        self.machine.handle_timeout(self.now_ns);
    }

    fn output(&mut self, call: u8, number: u16) {
        match call >> 3 & 3 {
            0 if number > 0xff00 => {
                self.finished = true;
                self.machine.finish(self.now_ns, self.now_ns + 100);
            }
            1 => {
                if let Some(token) = self.machine.poll_released() {
                    assert!(token < self.acknowledged);
                    assert_eq!(self.kept.pop_front(), Some(token));
                } else {
                    assert!(self.kept.front().is_none_or(|token| *token >= self.acknowledged));
                }
            }
            _ => match self.machine.poll_transmit() {
                Some(Transmit::Again { token, numbers }) => {
                    assert_eq!((token, numbers.seq), (self.acknowledged, Some(Sequence::of(token))));
                    assert!(token < self.sent && self.timeouts > 0);
                    self.timeouts -= 1;
                    self.acks(numbers);
                }
                Some(Transmit::Ack { numbers }) => {
                    assert!(numbers.seq.is_none() && numbers.ack.is_some() && self.causes > 0);
                    self.acks(numbers);
                }
                None => {}
            },
        }
    }

    /// Checks that a packet acks the received messages, and only if one was received since the last ack.
    fn acks(&mut self, numbers: Numbers) {
        if let Some(ack) = numbers.ack {
            assert_eq!(ack, Sequence::of(self.received));
            assert!(self.causes > 0);
            self.causes = 0;
        }
    }

    fn check(&mut self) {
        self.machine.check_invariants();
        assert_eq!(u64::from(self.machine.unacknowledged()), self.sent - self.acknowledged);
        let outcome = self.machine.outcome();
        assert!(self.outcome.is_none() || outcome == self.outcome);
        assert!(outcome.is_none() || self.finished);
        if self.outcome.is_none()
            && let Some(Outcome::Warning { unacknowledged, first }) = outcome
        {
            assert_eq!((first, first + u64::from(unacknowledged)), (self.acknowledged, self.sent));
        }
        self.outcome = outcome;
    }
}
