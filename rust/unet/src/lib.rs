//! The datagram protocol of 1997: a window, a timer for its left edge, piggy-backed acknowledgments (3).
//!
//! A reference, and a baseline for benchmarks. No transport uses it. A number in brackets is a section of
//! `docs/spec/unet.md`.
//!
//! ```text
//!                 snd_una               snd_nxt         snd_una + window
//!                    |                     |                   |
//!   ...acknowledged..|...may be lost.......|...may be sent.....|...
//!                    ^
//!                  timer: this one alone is retransmitted
//!
//!   rcv_nxt: the only number that is accepted; all others are answered with it, and dropped
//! ```
//!
//! Its weaknesses are kept for study and comparison (3.2): a stream in one direction is acknowledged by
//! timeouts only; the packets behind a lost one are dropped and retransmitted one for each timeout; the last
//! acknowledgment may be lost, so an end cannot know that all arrived. PROTOCOL.md has the table.
//!
//! The machine sees the numbers of packets only. The driver keeps the octets of each message under a token
//! until the machine returns the token.
#![forbid(unsafe_code)]

use std::collections::VecDeque;

use mpjdev_proto::datagram::error::PacketError;
use mpjdev_proto::datagram::header::{Header, Numbers};
use mpjdev_proto::datagram::layout::{HEADER_LEN, WINDOW_MAX};
use mpjdev_proto::datagram::sequence::Sequence;
use thiserror::Error;

/// Reads a packet: header and user data.
///
/// # Errors
/// Too few octets for a header; an invalid header; a len that does not match the user data.
pub fn parse(octets: &[u8]) -> Result<(Header, &[u8]), PacketError> {
    let cut = PacketError::Cut { field: "header", end: HEADER_LEN, len: octets.len() };
    let (header, data) = octets.split_first_chunk().ok_or(cut)?;
    let header = Header::parse(header)?;
    check_len(&header, data)?;
    Ok((header, data))
}

/// Writes a packet to the front of `octets`; returns its length.
///
/// # Errors
/// An invalid header; a len that does not match the data; `octets` is too short. Then nothing is written.
pub fn emit(header: &Header, data: &[u8], octets: &mut [u8]) -> Result<usize, PacketError> {
    header.check()?;
    check_len(header, data)?;
    let (len, capacity) = (HEADER_LEN + data.len(), octets.len());
    let octets = octets.get_mut(..len).ok_or(PacketError::Capacity { len, capacity })?;
    let (head, rest) = octets.split_first_chunk_mut().expect("longer than a header");
    header.emit(head);
    rest.copy_from_slice(data);
    Ok(len)
}

fn check_len(header: &Header, data: &[u8]) -> Result<(), PacketError> {
    match header.len as usize == data.len() {
        true => Ok(()),
        false => Err(PacketError::Len { len: header.len, found: data.len() }),
    }
}

/// The settings that both ends agree on; the values of 1997 are unknown (2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Most messages without an acknowledgment, 1 to [`WINDOW_MAX`].
    pub window: u16,
    /// The initial timeout of the left edge in nanoseconds; at least 1.
    pub timeout_ns: u64,
    /// The largest timeout after doubling, at least `timeout_ns`.
    pub timeout_max_ns: u64,
    /// Acknowledges each message at once. The report proposes this for programs that send in one direction
    /// only (1.1).
    pub eager_acks: bool,
}

/// A window of 64, 25 ms doubled up to a second, lazy acknowledgments. Choices of ours (5.3, 5.4).
impl Default for Settings {
    fn default() -> Self {
        Self { window: 64, timeout_ns: 25_000_000, timeout_max_ns: 1_000_000_000, eager_acks: false }
    }
}

/// Settings with which the machine cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// A larger window makes old and new numbers ambiguous (3).
    #[error("the window is {window}, it must be 1 to {WINDOW_MAX}")]
    Window {
        /// The window.
        window: u16,
    },
    /// A timeout is 0, or the two contradict each other.
    #[error("the time-out is {timeout_ns} ns, it must be 1 to its maximum of {timeout_max_ns} ns")]
    Timeout {
        /// The first one.
        timeout_ns: u64,
        /// The last one.
        timeout_max_ns: u64,
    },
}

/// A message that cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// The window is full: try again when tokens were returned.
    #[error("{window} messages are not acknowledged yet")]
    Full {
        /// The window.
        window: u16,
    },
    /// [`UnetConnection::finish`] was called.
    #[error("the conversation is finished")]
    Finished,
}

/// A packet that acknowledges a number that was never sent: it belongs to another connection, or is forged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("message {ack} is acknowledged as the next, but message {snd_nxt} is the next to be sent")]
pub struct AckError {
    /// The acknowledgment number.
    pub ack: u64,
    /// The next number that will be used.
    pub snd_nxt: u64,
}

/// The meaning of a packet for the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Event {
    /// It carries the next message: deliver it.
    Deliver,
    /// It carries no message, a duplicate, or one out of order.
    Nothing,
}

/// A packet to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit<T> {
    /// A retransmission, with these numbers.
    Again {
        /// Of the message.
        token: T,
        /// The message's number, and the acknowledgment.
        numbers: Numbers,
    },
    /// A pure acknowledgment.
    Ack {
        /// An acknowledgment number alone.
        numbers: Numbers,
    },
}

/// The outcome of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// The peer has all messages.
    Complete,
    /// The limit was reached first: a warning, since the peer may have all and only its last acknowledgment
    /// be lost.
    Warning {
        /// Messages that were never acknowledged, at least 1.
        unacknowledged: u16,
        /// The number of the first of them.
        first: u64,
    },
}

/// One end of a connection, both directions.
///
/// Commands: [`send`](Self::send), [`finish`](Self::finish). Inputs: [`handle_packet`](Self::handle_packet),
/// [`handle_timeout`](Self::handle_timeout) at [`next_timeout_ns`](Self::next_timeout_ns) or later: the
/// driver chooses when it polls, as the program of 1997 did. Outputs, to be polled after each of those until
/// they return `None`: [`poll_transmit`](Self::poll_transmit), [`poll_released`](Self::poll_released).
///
/// Times are nanoseconds of any clock that does not go back.
#[derive(Clone, Debug)]
pub struct UnetConnection<T> {
    settings: Settings,
    /// Oldest message that is not acknowledged.
    snd_una: u64,
    /// The next number to use.
    snd_nxt: u64,
    /// Tokens of messages before `snd_nxt`: first those that are acknowledged and not yet polled, then the
    /// others.
    tokens: VecDeque<T>,
    /// When the left edge is retransmitted; set while a message is not acknowledged.
    timer_ns: Option<u64>,
    /// The current timeout.
    backoff_ns: u64,
    /// The left edge is to be retransmitted.
    resend: bool,
    /// Next number that is accepted.
    rcv_nxt: u64,
    /// An acknowledgment is due, with the next packet.
    ack_due: bool,
    /// The acknowledgment is due at once, in a packet of its own.
    ack_now: bool,
    /// When [`finish`](Self::finish) times out.
    limit_ns: Option<u64>,
    outcome: Option<Outcome>,
}

impl<T: Clone> UnetConnection<T> {
    /// Nothing sent, nothing received.
    ///
    /// # Errors
    /// Invalid settings.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        let Settings { window, timeout_ns, timeout_max_ns, .. } = settings;
        if window == 0 || window > WINDOW_MAX {
            return Err(SettingsError::Window { window });
        }
        if timeout_ns == 0 || timeout_ns > timeout_max_ns {
            return Err(SettingsError::Timeout { timeout_ns, timeout_max_ns });
        }
        Ok(Self {
            settings,
            snd_una: 0,
            snd_nxt: 0,
            tokens: VecDeque::new(),
            timer_ns: None,
            backoff_ns: timeout_ns,
            resend: false,
            rcv_nxt: 0,
            ack_due: false,
            ack_now: false,
            limit_ns: None,
            outcome: None,
        })
    }

    /// Messages that are not acknowledged; at most the window.
    #[must_use]
    pub const fn unacknowledged(&self) -> u16 {
        (self.snd_nxt - self.snd_una) as u16
    }

    /// Whether a message may be sent.
    #[must_use]
    pub fn can_send(&self) -> bool {
        self.limit_ns.is_none() && self.tokens.len() < usize::from(self.settings.window)
    }

    /// The final outcome, if there is one. An end that lingers still answers packets.
    pub const fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// Sends a message; returns its numbers. The driver keeps its octets until
    /// [`poll_released`](Self::poll_released) returns the token, since the packet may be lost.
    ///
    /// # Errors
    /// The window is full, or this end has finished; nothing changes.
    pub fn send(&mut self, now_ns: u64, token: T) -> Result<Numbers, SendError> {
        if self.limit_ns.is_some() {
            return Err(SendError::Finished);
        }
        if !self.can_send() {
            return Err(SendError::Full { window: self.settings.window });
        }
        let numbers = self.numbers(self.snd_nxt);
        self.tokens.push_back(token);
        self.snd_nxt += 1;
        if self.timer_ns.is_none() {
            self.start_timer(now_ns);
        }
        Ok(numbers)
    }

    /// Refuses further messages. Retransmits only the left edge, acknowledges at once, and fails at the
    /// limit. [`outcome`](Self::outcome) states when the connection is over.
    pub fn finish(&mut self, now_ns: u64, limit_ns: u64) {
        self.limit_ns = Some(limit_ns);
        self.ack_now |= self.ack_due;
        self.settle(now_ns);
    }

    /// A packet was received.
    ///
    /// # Errors
    /// It acknowledges a number that was never sent; nothing changes.
    pub fn handle_packet(&mut self, now_ns: u64, numbers: Numbers) -> Result<Event, AckError> {
        if let Some(ack) = numbers.ack {
            self.handle_ack(now_ns, ack.expand(self.snd_una))?;
        }
        let event = numbers.seq.map_or(Event::Nothing, |seq| self.handle_message(seq));
        self.settle(now_ns);
        Ok(event)
    }

    fn handle_ack(&mut self, now_ns: u64, ack: u64) -> Result<(), AckError> {
        if ack > self.snd_nxt {
            return Err(AckError { ack, snd_nxt: self.snd_nxt });
        }
        if ack > self.snd_una {
            self.snd_una = ack;
            self.resend = false;
            self.start_timer(now_ns);
        }
        Ok(())
    }

    fn handle_message(&mut self, seq: Sequence) -> Event {
        if seq.expand(self.rcv_nxt) != self.rcv_nxt {
            self.ack_now = true;
            return Event::Nothing;
        }
        self.rcv_nxt += 1;
        self.ack_due = true;
        // After the finish no message can carry it.
        self.ack_now |= self.settings.eager_acks || self.limit_ns.is_some();
        Event::Deliver
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    #[must_use]
    pub fn next_timeout_ns(&self) -> Option<u64> {
        let limit_ns = self.limit_ns.filter(|_| self.outcome.is_none());
        self.timer_ns.into_iter().chain(limit_ns).min()
    }

    /// The current time.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if self.timer_ns.is_some_and(|timer_ns| timer_ns <= now_ns) {
            self.resend = true;
            self.backoff_ns = self.backoff_ns.saturating_mul(2).min(self.settings.timeout_max_ns);
            self.timer_ns = Some(now_ns.saturating_add(self.backoff_ns));
        }
        self.settle(now_ns);
    }

    /// The next packet that is not a new message.
    pub fn poll_transmit(&mut self) -> Option<Transmit<T>> {
        if self.ack_now {
            (self.ack_now, self.ack_due) = (false, false);
            return Some(Transmit::Ack { numbers: Numbers::ack(Sequence::of(self.rcv_nxt)) });
        }
        if !std::mem::take(&mut self.resend) {
            return None;
        }
        let token = self.tokens.get(self.released()).cloned()?;
        Some(Transmit::Again { token, numbers: self.numbers(self.snd_una) })
    }

    /// The token of the next message that has been acknowledged, in the order of [`send`](Self::send).
    pub fn poll_released(&mut self) -> Option<T> {
        if self.released() == 0 { None } else { self.tokens.pop_front() }
    }

    /// Tokens that wait to be polled.
    fn released(&self) -> usize {
        self.tokens.len() - usize::from(self.unacknowledged())
    }

    /// The numbers of a message that is sent now, with the acknowledgment that is due.
    fn numbers(&mut self, seq: u64) -> Numbers {
        let is_due = std::mem::take(&mut self.ack_due) | std::mem::take(&mut self.ack_now);
        Numbers { seq: Some(Sequence::of(seq)), ack: is_due.then(|| Sequence::of(self.rcv_nxt)) }
    }

    /// Starts the timer of the left edge, if there is one.
    fn start_timer(&mut self, now_ns: u64) {
        self.backoff_ns = self.settings.timeout_ns;
        let is_waited_for = self.snd_una < self.snd_nxt && self.outcome.is_none();
        self.timer_ns = is_waited_for.then(|| now_ns.saturating_add(self.backoff_ns));
    }

    /// Whether the connection is over.
    fn settle(&mut self, now_ns: u64) {
        let Some(limit_ns) = self.limit_ns.filter(|_| self.outcome.is_none()) else { return };
        if self.snd_una == self.snd_nxt {
            self.outcome = Some(Outcome::Complete);
        } else if limit_ns <= now_ns {
            let unacknowledged = self.unacknowledged();
            self.outcome = Some(Outcome::Warning { unacknowledged, first: self.snd_una });
            (self.timer_ns, self.resend) = (None, false);
        }
    }

    /// Panics when an invariant does not hold. For tests, after every step.
    pub fn check_invariants(&self) {
        let window = u64::from(self.settings.window);
        assert!(self.snd_una <= self.snd_nxt && self.snd_nxt <= self.snd_una + window);
        assert!(self.tokens.len() >= usize::from(self.unacknowledged()));
        assert!(self.tokens.len() <= usize::from(self.settings.window));
        let has_warned = matches!(self.outcome, Some(Outcome::Warning { .. }));
        assert_eq!(self.timer_ns.is_some(), self.snd_una < self.snd_nxt && !has_warned);
        assert!(self.timer_ns.is_some() || !self.resend);
        assert!(
            self.settings.timeout_ns <= self.backoff_ns && self.backoff_ns <= self.settings.timeout_max_ns
        );
        assert!(self.outcome.is_none() || self.limit_ns.is_some());
    }
}
