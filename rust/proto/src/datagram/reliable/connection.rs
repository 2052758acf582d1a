//! One end of a connection between two ranks.
//!
//! In each pass a driver does the following, in this order:
//!
//! - for each datagram, [`Packet::parse`] and [`Connection::handle_datagram`]; the disposition says where the
//!   user data go. Then [`Connection::poll_buffered`] until it returns `None`: buffered packets that are now
//!   in order;
//! - when the socket is empty, [`Connection::handle_drained`]; at [`Connection::next_timeout`],
//!   [`Connection::handle_timeout`];
//! - after any of these, and after commands: [`Connection::poll_event`] and [`Connection::poll_transmit`]
//!   until they return `None`. Each transmit is one datagram. The next pass reads the socket before it sends
//!   more.
//!
//! Both ends must have their connection before either sends: a packet of an unknown connection is answered
//! with a reset.

use std::collections::VecDeque;

use super::super::packet::Packet;
use super::close_state::CloseState;
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

/// The state between two ranks. It has no clock. A time before an earlier one delays timers and does no other
/// harm.
///
/// Commands: [`send`](Self::send), [`matched`](Self::matched), [`discard`](Self::discard),
/// [`cancel`](Self::cancel), [`hold`](Self::hold), [`shorten`](Self::shorten), [`flush`](Self::flush),
/// [`close`](Self::close), [`abort`](Self::abort). Inputs:
/// [`handle_datagram`](Self::handle_datagram), [`handle_drained`](Self::handle_drained),
/// [`handle_timeout`](Self::handle_timeout). Outputs: [`poll_buffered`](Self::poll_buffered),
/// [`poll_event`](Self::poll_event), [`poll_transmit`](Self::poll_transmit),
/// [`next_timeout`](Self::next_timeout).
///
/// No packet of a peer causes a panic, and all that is stored has a limit. What no honest peer sends is
/// counted and ignored.
#[derive(Debug)]
pub struct Connection {
    pub(super) settings: Settings,
    pub(super) rtt: Rtt,
    pub(super) packet_tx: PacketTx<Content>,
    /// Packets received out of order; `None` for a fragment that was delivered on arrival.
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
    /// Sequence numbers that the PTO timer sends again as probes.
    pub(super) probes: [Option<u64>; 2],
    /// Whether one lost packet may be sent beyond the congestion window, right after a cut (RFC 9002, 7.3.2).
    pub(super) has_retransmit_allowance: bool,
    /// One more than the number of the last packet that requested an ack.
    pub(super) ack_requested: u64,
    /// Whether the next pure ack requests an ack.
    pub(super) has_pure_ack_req: bool,
    pub(super) is_flushing: bool,
    pub(super) is_held_by_driver: bool,
    last_received_at: Nanos,
    /// The time since which an ack or a window of the peer is due.
    pub(super) waiting_since: Option<Nanos>,
    /// When pacing permits the next packet, if nothing else holds it.
    pub(super) paced_until: Option<Nanos>,
}

/// The destination of a packet's user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Disposition {
    /// Deliver them.
    Deliver(Delivery),
    /// Store them until [`Connection::poll_buffered`] returns the same slot.
    Buffer {
        /// The slot, below `receive_window`; no two stored packets share one.
        slot: u16,
    },
    /// There are none, or they are not needed.
    Drop,
}

/// An event for the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The octets of this message are no longer needed. A standard message is complete and its token is free.
    Released {
        /// Of the send.
        token: u64,
    },
    /// The peer has matched a synchronous or long message or a rendezvous.
    Matched {
        /// Of the send.
        token: u64,
    },
    /// The message is cancelled: it is complete, its octets and its token are free.
    Cancelled {
        /// Of the send.
        token: u64,
    },
    /// The message could not be cancelled, and is delivered.
    NotCancelled {
        /// Of the send.
        token: u64,
    },
    /// The peer has cancelled a message that no receive has matched: the driver drops it.
    Withdraw {
        /// Of [`Delivery::Arrived`]; no longer valid.
        arrival: ArrivalId,
    },
    /// The peer has sent its last message.
    PeerFinished,
    /// The connection is closed: all that was sent is acked, and the peer may release the connection too.
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
        // However far the timer backs off, it sends several probes before the peer counts as dead.
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

    /// The settings, with the datagram length as it is now.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The counters so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            smoothed_rtt: self.rtt.smoothed().unwrap_or(0),
            rtt_variation: self.rtt.variation().unwrap_or(0),
            congestion_window: self.congestion.window(),
            ..self.counters
        }
    }

    /// Packets that are sent and not acked.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        self.packet_tx.next() - self.packet_tx.una()
    }

    /// The probe timeout, with backoff.
    #[must_use]
    pub fn pto(&self) -> Nanos {
        self.rtt.pto()
    }

    /// Queues a message behind all earlier ones.
    ///
    /// # Errors
    /// [`SendError::Full`]: try again when a message is complete. Else: the message cannot be sent.
    pub fn send(&mut self, send: Send) -> Result<(), SendError> {
        if !self.close.is_open() {
            return Err(SendError::Finished);
        }
        self.message_tx.push(send)
    }

    /// Lowers the limit of datagrams, because the path no longer carries longer ones. A limit above the
    /// present one changes nothing. Packets that were sent before keep their length and number when they are
    /// retransmitted.
    pub fn shorten(&mut self, datagram_len_max: usize) {
        let len = datagram_len_max.max(DATAGRAM_LEN_MIN).min(self.settings.datagram_len_max);
        self.settings.datagram_len_max = len;
        self.message_tx.set_room(self.settings.room());
    }

    /// A receive has matched this message, whether or not it has room for all of it. A sender that waits for
    /// the match gets a grant. The id of a complete message becomes invalid.
    ///
    /// # Errors
    /// No message with this id waits to be matched: a mistake of the driver; nothing changes.
    pub fn matched(&mut self, arrival: ArrivalId) -> Result<(), NoSuchArrival> {
        let answer = self.message_rx.matched(arrival)?;
        self.answer(answer);
        Ok(())
    }

    /// The octets of this message are not needed, whether or not it is matched. Its sender sees a match. Its
    /// further packets are dropped, and the driver does not use its id again.
    ///
    /// # Errors
    /// There is no such message: a mistake of the driver; nothing changes.
    pub fn discard(&mut self, arrival: ArrivalId) -> Result<(), NoSuchArrival> {
        let answer = self.message_rx.discard(arrival)?;
        self.answer(answer);
        Ok(())
    }

    /// Cancels a message, or asks the peer to; then [`Event::Cancelled`] or [`Event::NotCancelled`] follows.
    pub fn cancel(&mut self, token: u64) -> Cancel {
        self.message_tx.cancel(token)
    }

    /// Stops or resumes the advance of the receive window, for a driver whose program does not consume. What
    /// the peer was permitted to send before still arrives.
    pub fn hold(&mut self, hold: bool) {
        self.is_held_by_driver = hold;
        self.settle();
    }

    /// Requests an ack of all that was sent; see [`is_flushed`](Self::is_flushed).
    pub fn flush(&mut self) {
        self.is_flushing = self.message_tx.has_queued();
        self.has_pure_ack_req |=
            !self.is_flushing && self.packet_tx.next() > self.ack_requested.max(self.packet_tx.una());
    }

    /// Whether something waits for an ack, a grant or the window of the peer.
    #[must_use]
    pub fn has_queued(&self) -> bool {
        self.message_tx.has_queued()
    }

    /// Whether all that was sent is acked.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        !self.message_tx.has_queued() && self.packet_tx.is_empty()
    }

    /// Refuses further sends, closes when the queued ones are complete, and fails at `deadline` at the
    /// latest. [`Event::Closed`] or [`Event::Failed`] follows.
    pub fn close(&mut self, deadline: Nanos) {
        self.close.close(deadline);
    }

    /// Ends the connection at once and sends one RST; [`Event::Failed`] follows.
    pub fn abort(&mut self) {
        if self.fail(FailureCause::Aborted) {
            self.close.reset_peer();
        }
    }

    /// Whether the connection is closed or has failed.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.close.is_over()
    }

    /// Tokens of the messages that are not complete, ascending. When the connection has failed, they never
    /// will be.
    #[must_use]
    pub fn pending(&self) -> Vec<u64> {
        self.message_tx.pending()
    }

    /// A datagram was received: its packet, without the user data.
    pub fn handle_datagram(&mut self, now: Nanos, packet: &Packet) -> Disposition {
        let extension = &packet.extension;
        if extension.rst {
            self.handle_reset(now, packet);
            return Disposition::Drop;
        }
        if extension.connection != self.settings.ours {
            self.counters.stale += 1;
            return Disposition::Drop;
        }
        if self.close.is_over() {
            return Disposition::Drop;
        }
        self.counters.received += 1;
        self.last_received_at = now;
        self.begin_pass();
        if let Some(ack) = packet.ack() {
            self.handle_ack(now, ack, packet);
        }
        let disposition = match packet.seq() {
            Some(seq) => self.handle_sequenced(now, seq, packet),
            None => {
                self.counters.received_pure += 1;
                if extension.ack_req {
                    self.pending_acks.urge();
                }
                Disposition::Drop
            }
        };
        self.settle();
        self.advance_close(now);
        disposition
    }

    /// The socket is empty.
    #[inline]
    pub fn handle_drained(&mut self, now: Nanos) {
        self.begin_pass();
        self.pending_acks.handle_drained(now);
    }

    /// A buffered packet that is now in order: its slot, and what its octets are.
    #[inline]
    pub fn poll_buffered(&mut self, now: Nanos) -> Option<(u16, Delivery)> {
        while let Some((number, content)) = self.packet_rx.poll_buffered() {
            let slot = self.packet_rx.slot(number);
            // An ack that was sent since the gap was filled reported this packet as missing.
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

    /// The next event, in order.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout); `None` if no timer runs.
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
            // Two datagrams from the second expiry on, so that the loss of one costs no further backoff (RFC
            // 9002, 6.2.4).
            self.has_pure_ack_req |= is_repeated && self.probes[0].is_some() && self.probes[1].is_none();
            self.rtt.expired();
            // If nothing can be sent, the timer must not expire again at once.
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

    /// When the peer counts as dead (5.8).
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

    /// Panics when an invariant does not hold. For tests, after every step.
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
        // The window holds back packets that need an answer; all messages that have arrived may still be
        // matched.
        let answers_max = self.settings.answers_max() + self.settings.arrivals_max;
        assert!(answers <= answers_max, "{answers} answers are kept");
    }
}

/// A multiple of 2^31 below the first numbers, so that numbers before them exist.
const ABOVE_ZERO: u64 = 1 << 32;
/// Probes that a peer can miss before it counts as dead, at least.
const PROBES_MIN: u64 = 8;
