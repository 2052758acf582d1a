//! One end of a connection between two ranks: the machine that its driver drives.
//!
//! What a driver does, in this order, whenever it is its turn:
//!
//! - for each datagram, [`Packet::parse`] and [`Connection::handle_datagram`]; the verdict says where the user data go.
//!   Then [`Connection::poll_buffered`] until there is nothing: what was kept and whose turn it is now;
//! - when there is none left, [`Connection::handle_drained`]; when [`Connection::next_timeout`] has come,
//!   [`Connection::handle_timeout`];
//! - after any of these, and after commands: [`Connection::poll_event`] until there is nothing, and
//!   [`Connection::poll_transmit`] until there is nothing, each time a datagram to be sent. The next pass looks what has
//!   come before more leaves.
//!
//! Both ends must have their connection before either sends: a packet that nobody knows is answered with a reset.

use std::collections::VecDeque;

use super::super::packet::Packet;
use super::close::CloseState;
use super::congestion::Congestion;
use super::content::Content;
use super::counters::Counters;
use super::error::{Cause as FailureCause, Failure, NoSuchArrival, SendError};
use super::loss::Detection;
use super::message_rx::{ArrivalId, Delivery, MessageRx};
use super::message_tx::{Cancel, MessageTx, Send};
use super::pacing::Pacing;
use super::packet_rx::PacketRx;
use super::packet_tx::PacketTx;
use super::pending_acks::PendingAcks;
use super::rtt::{Rtt, Timing};
use super::settings::{DATAGRAM_LEN_MIN, Settings, SettingsError};
use super::time::{Nanos, earlier};
use super::windows::SendWindow;

/// The state between two ranks. It has no clock: times that go back are taken as they are, and only delay things.
///
/// Commands: [`send`](Self::send), [`matched`](Self::matched), [`discard`](Self::discard), [`cancel`](Self::cancel),
/// [`forget`](Self::forget), [`hold`](Self::hold), [`shorten`](Self::shorten), [`flush`](Self::flush), [`close`](Self::close), [`abort`](Self::abort).
/// Inputs: [`handle_datagram`](Self::handle_datagram), [`handle_drained`](Self::handle_drained), [`handle_timeout`](Self::handle_timeout). Outputs:
/// [`poll_buffered`](Self::poll_buffered), [`poll_event`](Self::poll_event), [`poll_transmit`](Self::poll_transmit),
/// [`next_timeout`](Self::next_timeout).
///
/// Whatever a peer sends, nothing panics, and everything that is kept has a limit: what no honest peer says is counted
/// and ignored.
#[derive(Debug)]
pub struct Connection {
    pub(super) settings: Settings,
    pub(super) rtt: Rtt,
    pub(super) packet_tx: PacketTx<Content>,
    /// None where nothing is left to do but to wait for the turn.
    pub(super) packet_rx: PacketRx<Option<Content>>,
    pub(super) pending_acks: PendingAcks,
    pub(super) congestion: Congestion,
    pub(super) detection: Detection,
    pub(super) pacing: Pacing,
    pub(super) send_window: SendWindow,
    pub(super) message_tx: MessageTx,
    pub(super) message_rx: MessageRx,
    pub(super) close: CloseState,
    pub(super) counters: Counters,
    pub(super) events: VecDeque<Event>,
    /// What the timer asks about.
    pub(super) probes: [Option<u64>; 2],
    /// Whether one lost packet may leave beyond the window, right after a cut (RFC 9002, 7.3.2).
    pub(super) has_retransmit_allowance: bool,
    /// The number behind the last packet that asked for an acknowledgment.
    pub(super) ack_requested: u64,
    /// Whether a packet without a message is to ask for an acknowledgment.
    pub(super) has_pure_ack_req: bool,
    pub(super) is_flushing: bool,
    pub(super) is_held_by_driver: bool,
    last_received_at: Nanos,
    /// Since when something is to come from the peer.
    pub(super) waiting_since: Option<Nanos>,
    /// When a packet may leave that waits for nothing but its pace.
    pub(super) paced_until: Option<Nanos>,
}

/// What to do with the user data of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// They are this.
    Deliver(Delivery),
    /// They are to be kept, until [`Connection::poll_buffered`] names the same slot: below `receive_window`, unlike for all that
    /// are kept at the same time.
    Buffer {
        /// Where.
        slot: u16,
    },
    /// There are none, or nobody wants them.
    Drop,
}

/// Something that the driver has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The octets of this message are no longer needed. A standard message is complete, and unless it is cancellable its
    /// token is free.
    Released {
        /// Of the send.
        token: u64,
    },
    /// The peer has matched a synchronous, announced or long message.
    Matched {
        /// Of the send.
        token: u64,
    },
    /// The message was taken back: it is complete, its octets and its token are free.
    Cancelled {
        /// Of the send.
        token: u64,
    },
    /// The message could not be taken back; all else about it goes on, or has happened.
    NotCancelled {
        /// Of the send.
        token: u64,
    },
    /// The peer takes a message back that no receive has matched: the driver forgets it.
    Withdraw {
        /// Of [`Delivery::Arrived`]; no longer valid.
        arrival: ArrivalId,
    },
    /// The peer sends no message any more.
    PeerFinished,
    /// The connection is closed: all that was sent has come, and the peer knows that it may forget it as well.
    Closed,
    /// The connection has failed. [`Connection::pending`] names what was not complete.
    Failed(Failure),
}

impl Connection {
    /// A connection at `now`, with nothing sent and nothing received.
    ///
    /// # Errors
    /// Settings that contradict each other, named.
    pub fn new(settings: Settings, now: Nanos) -> Result<Self, SettingsError> {
        settings.check()?;
        // Numbers of 64 bits that have the agreed low bits, and room below them.
        let first_ours = ABOVE_ZERO + u64::from(settings.first_ours.bits());
        let first_theirs = ABOVE_ZERO + u64::from(settings.first_theirs.bits());
        let path = settings.path;
        // However far the timer backs off, the peer is asked often enough before it counts as dead.
        let ceiling = path.timing.ceiling.min(settings.dead_after / PROBES_MIN).max(path.timing.floor);
        let mut rtt = Rtt::new(Timing { ceiling, ..path.timing }, settings.peer_max_ack_delay);
        if let Some(first_rtt) = settings.first_rtt {
            rtt.sample(first_rtt, 0);
        }
        let mut connection = Self {
            rtt,
            packet_tx: PacketTx::new(first_ours),
            packet_rx: PacketRx::new(first_theirs, settings.receive_window),
            pending_acks: PendingAcks::new(path.max_ack_delay, settings.receive_window, settings.ack_every),
            congestion: Congestion::new(path.algorithm, path.window, path.window_max),
            detection: Detection::new(),
            pacing: Pacing::new(path.rate),
            send_window: SendWindow::new(settings.send_window, first_ours),
            message_tx: MessageTx::new(&settings),
            message_rx: MessageRx::new(),
            close: CloseState::new(),
            counters: Counters::default(),
            events: VecDeque::new(),
            probes: [None; 2],
            has_retransmit_allowance: false,
            ack_requested: first_ours,
            has_pure_ack_req: false,
            is_flushing: false,
            is_held_by_driver: false,
            last_received_at: now,
            waiting_since: None,
            paced_until: None,
            settings,
        };
        connection.declare();
        Ok(connection)
    }

    /// As given.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            smoothed_rtt: self.rtt.smoothed().unwrap_or(0),
            rtt_variation: self.rtt.variation().unwrap_or(0),
            ..self.counters
        }
    }

    /// Packets that may be under way, by the rule of congestion alone.
    #[must_use]
    pub fn congestion_window(&self) -> u32 {
        self.congestion.window()
    }

    /// Packets that have left and are not acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        self.packet_tx.next() - self.packet_tx.una()
    }

    /// How long the timer waits now.
    #[must_use]
    pub fn pto(&self) -> Nanos {
        self.rtt.pto()
    }

    /// Takes a message to be sent behind all earlier ones.
    ///
    /// # Errors
    /// [`SendError::Full`]: try again when a message is complete. Else: the message cannot be sent.
    pub fn send(&mut self, send: Send) -> Result<(), SendError> {
        if !self.close.is_open() {
            return Err(SendError::Finished);
        }
        self.message_tx.push(send)
    }

    /// Cuts what leaves from now on into datagrams of so many octets at most, or of as many as before where that is less: the way takes
    /// no longer ones any more. What was cut before keeps its length, and its number, when it leaves again.
    pub fn shorten(&mut self, datagram_len_max: usize) {
        let len = datagram_len_max.max(DATAGRAM_LEN_MIN).min(self.settings.datagram_len_max);
        self.settings.datagram_len_max = len;
        self.message_tx.set_room(self.settings.room());
    }

    /// A receive has taken this message, whether or not it has room for all of it. Its sender is told if it waits for that. The id
    /// of a message that is whole is no longer valid.
    ///
    /// # Errors
    /// There is no such message that waits to be matched: a mistake of the driver; nothing changes.
    pub fn matched(&mut self, arrival: ArrivalId) -> Result<(), NoSuchArrival> {
        let answer = self.message_rx.matched(arrival)?;
        self.answer(answer);
        Ok(())
    }

    /// Nobody wants the octets of this message, whether or not it is matched. Its sender cannot tell that from a match. Nothing
    /// comes of its further packets, and its id is not used again by the driver.
    ///
    /// # Errors
    /// There is no such message: a mistake of the driver; nothing changes.
    pub fn discard(&mut self, arrival: ArrivalId) -> Result<(), NoSuchArrival> {
        let answer = self.message_rx.discard(arrival)?;
        self.answer(answer);
        Ok(())
    }

    /// Takes a message back, or asks the peer for that; then [`Event::Cancelled`] or [`Event::NotCancelled`] follows.
    pub fn cancel(&mut self, token: u64) -> Cancel {
        // Nothing leaves behind our last packet.
        if self.close.is_fin_sent() { Cancel::TooLate } else { self.message_tx.cancel(token) }
    }

    /// A cancellable message will not be taken back, and its token is free, unless that was asked for already.
    pub fn forget(&mut self, token: u64) {
        self.message_tx.forget(token);
    }

    /// Lets the window that the peer has run empty from now on, or no longer: for a driver whose program does not consume.
    /// What the peer was permitted to send before still comes.
    pub fn hold(&mut self, hold: bool) {
        self.is_held_by_driver = hold;
        self.settle();
    }

    /// Asks for an acknowledgment of everything that was sent; see [`is_flushed`](Self::is_flushed).
    pub fn flush(&mut self) {
        self.is_flushing = self.message_tx.has_queued();
        self.has_pure_ack_req |=
            !self.is_flushing && self.packet_tx.next() > self.ack_requested.max(self.packet_tx.una());
    }

    /// Whether something waits until the peer has acknowledged, granted or opened its window.
    #[must_use]
    pub fn has_queued(&self) -> bool {
        self.message_tx.has_queued()
    }

    /// Whether everything that was sent has come.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        !self.message_tx.has_queued() && self.packet_tx.is_empty()
    }

    /// Takes no more sends, ends the connection when those that are there are complete, and fails at `deadline` at the latest.
    /// [`Event::Closed`] or [`Event::Failed`] follows.
    pub fn close(&mut self, deadline: Nanos) {
        self.close.close(deadline);
    }

    /// Ends the connection at once. The peer is told, once; [`Event::Failed`] follows.
    pub fn abort(&mut self) {
        if self.fail(FailureCause::Aborted) {
            self.close.reset_peer();
        }
    }

    /// Whether neither end of the connection has anything to say any more, well or not.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.close.is_over()
    }

    /// Tokens of the messages that are not complete, ascending. When the connection has failed, they never will be.
    #[must_use]
    pub fn pending(&self) -> Vec<u64> {
        self.message_tx.pending()
    }

    /// A datagram has come: its packet, in front of its user data.
    pub fn handle_datagram(&mut self, now: Nanos, packet: &Packet) -> Verdict {
        let extension = &packet.extension;
        if extension.rst {
            self.handle_reset(now, packet);
            return Verdict::Drop;
        }
        if extension.connection != self.settings.ours {
            self.counters.stale += 1;
            return Verdict::Drop;
        }
        if self.close.is_over() {
            return Verdict::Drop;
        }
        self.counters.received += 1;
        self.last_received_at = now;
        self.begin_pass();
        if let Some(ack) = packet.ack() {
            self.handle_ack(now, ack, packet);
        }
        let verdict = match packet.seq() {
            Some(seq) => self.handle_sequenced(now, seq, packet),
            None => {
                self.counters.received_pure += 1;
                if extension.ack_req {
                    self.pending_acks.urge();
                }
                Verdict::Drop
            }
        };
        self.settle();
        self.advance_close(now);
        verdict
    }

    /// All that had come was taken.
    #[inline]
    pub fn handle_drained(&mut self, now: Nanos) {
        self.begin_pass();
        self.pending_acks.handle_drained(now);
    }

    /// What was kept and whose turn it is now: its slot, and what its octets are.
    #[inline]
    pub fn poll_buffered(&mut self, now: Nanos) -> Option<(u16, Delivery)> {
        while let Some((number, content)) = self.packet_rx.poll_buffered() {
            let slot = self.packet_rx.slot(number);
            // An acknowledgment may have left since the repair came, and has said that this one is missing.
            self.pending_acks.urge();
            let delivery = content.and_then(|content| self.accept(&content));
            self.settle();
            self.advance_close(now);
            if let Some(delivery) = delivery {
                return Some((slot, delivery));
            }
        }
        None
    }

    /// What has happened, in order.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do; none if only packets and commands have.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Nanos> {
        if self.close.is_over() {
            return None;
        }
        let acks = earlier(self.pending_acks.deadline(), self.packet_tx.loss_time());
        let windows = earlier(self.send_window.probe_deadline(), self.paced_until);
        let ends = earlier(self.close.deadline(), self.dead_at());
        earlier(earlier(acks, windows), earlier(ends, self.pto_at()))
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Nanos) {
        if self.close.is_over() {
            return;
        }
        self.begin_pass();
        self.pending_acks.expire(now);
        if self.packet_tx.loss_time().is_some_and(|at| at <= now) {
            self.detect(now, false);
        }
        if self.pto_at().is_some_and(|at| at <= now) {
            self.counters.timeouts += 1;
            let is_repeated = self.rtt.expiries() > 0;
            self.probes = self.packet_tx.probes(is_repeated);
            // Two datagrams from the second expiry on, so that the loss of one costs no further backoff (RFC 9002, 6.2.4).
            self.has_pure_ack_req |= is_repeated && self.probes[0].is_some() && self.probes[1].is_none();
            self.rtt.expired();
            // Where nothing can leave, it is not due at once again.
            self.packet_tx.restart_timer(now);
        }
        if self.send_window.probe_deadline().is_some_and(|at| at <= now) {
            self.probe_window(now);
        }
        if self.dead_at().is_some_and(|at| at <= now) {
            self.fail(FailureCause::Silence);
        }
        self.expire_closing(now);
    }

    fn pto_at(&self) -> Option<Nanos> {
        self.packet_tx.edge_since().map(|since| since.saturating_add(self.rtt.pto()))
    }

    /// When the peer is dead (5.8).
    fn dead_at(&self) -> Option<Nanos> {
        let since = self.waiting_since?.max(self.last_received_at);
        Some(since.saturating_add(self.settings.dead_after))
    }

    fn begin_pass(&mut self) {
        self.pacing.pass();
        self.paced_until = None;
    }

    pub(super) fn push_event(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Panics when something is not what it must be after every step.
    pub fn check(&self) {
        self.rtt.check();
        self.packet_tx.check();
        self.packet_rx.check();
        self.congestion.check();
        self.detection.check();
        self.send_window.check(self.packet_tx.una(), self.packet_tx.next());
        self.message_tx.check();
        self.message_rx.check();
        let (load, answers) = (self.message_rx.unmatched_len(), self.message_tx.answers());
        assert!(load <= self.settings.arrivals_max, "{load} messages are kept");
        // No packet comes that needs one when there are that many; all that has come may be matched then.
        let answers_max = self.settings.answers_max() + self.settings.arrivals_max;
        assert!(answers <= answers_max, "{answers} answers are kept");
    }
}

/// A multiple of 2^31: the first numbers are above it, so that there is something below them.
const ABOVE_ZERO: u64 = 1 << 32;
/// The timer asks a silent peer so often at least before it counts as dead.
const PROBES_MIN: u64 = 8;
