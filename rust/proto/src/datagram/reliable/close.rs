//! The end of a connection (5.8).
//!
//! ```text
//! OPEN --close--> CLOSING --all is complete--> FIN_SENT --own FIN acked, peer's FIN received--------> LINGER --> CLOSED
//!                    |                            |                                                     | FIN again:
//!                    +---------deadline-----------+--------> FAILED                                     | acked again
//! any: nothing received for dead_after, or RST ------------> FAILED                     LINGER: RST ----------> CLOSED
//! ```
//!
//! The last acks of an end that lingered may all be lost. Later packets for it are answered with a RST, as
//! for any unknown connection, but with DUPLICATE and its last ack number. That RST closes the other end in
//! order (a choice of ours).

use super::super::packet::Packet;
use super::super::sequence::FullSequence;
use super::connection::{Connection, Event};
use super::error::{Cause, Failure};
use super::packet_tx::Ack;
use super::time::{MILLISECOND, Nanos};

/// Least time for which a closed end answers (5.8).
const LINGER_MIN: Nanos = 50 * MILLISECOND;
/// The same in PTOs (5.8).
const LINGER_PTOS: u64 = 3;

/// The state of the close.
#[derive(Clone, Copy, Debug)]
pub(super) struct CloseState {
    state: State,
    peer_finished: bool,
    /// When [`Connection::close`] gives up.
    deadline: Option<Nanos>,
    /// Whether a RST is to be sent.
    resets_peer: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Closing,
    FinSent { number: u64 },
    Linger { until: Nanos },
    Closed,
    Failed,
}

impl CloseState {
    pub(super) const fn new() -> Self {
        Self { state: State::Open, peer_finished: false, deadline: None, resets_peer: false }
    }

    #[inline]
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    #[inline]
    pub(super) const fn is_over(&self) -> bool {
        matches!(self.state, State::Closed | State::Failed)
    }

    #[inline]
    pub(super) const fn is_closing(&self) -> bool {
        matches!(self.state, State::Closing)
    }

    pub(super) const fn is_fin_sent(&self) -> bool {
        !matches!(self.state, State::Open | State::Closing)
    }

    pub(super) const fn close(&mut self, deadline: Nanos) {
        if self.is_open() {
            self.state = State::Closing;
            self.deadline = Some(deadline);
        }
    }

    /// The FIN is sent.
    pub(super) const fn fin_sent(&mut self, number: u64) {
        self.state = State::FinSent { number };
    }

    /// The peer's FIN was received; `None` if it was before.
    pub(super) fn peer_finished(&mut self) -> Option<()> {
        (!std::mem::replace(&mut self.peer_finished, true)).then_some(())
    }

    #[inline]
    pub(super) const fn has_peer_finished(&self) -> bool {
        self.peer_finished
    }

    /// The peer did not receive the last ack: lingers longer, but not beyond the deadline.
    pub(super) fn extend_linger(&mut self, now: Nanos, pto: Nanos) {
        if let State::Linger { until } = &mut self.state {
            let longer = linger_end(now, pto);
            *until = longer.min(self.deadline.unwrap_or(longer)).max(*until);
        }
    }

    #[inline]
    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    pub(super) const fn reset_peer(&mut self) {
        self.resets_peer = true;
    }

    pub(super) const fn poll_reset(&mut self) -> bool {
        std::mem::replace(&mut self.resets_peer, false)
    }

    /// When the state changes without a packet.
    pub(super) const fn deadline(&self) -> Option<Nanos> {
        match self.state {
            State::Linger { until } => Some(until),
            State::Closing | State::FinSent { .. } => self.deadline,
            State::Open | State::Closed | State::Failed => None,
        }
    }
}

fn linger_end(now: Nanos, pto: Nanos) -> Nanos {
    now.saturating_add(pto.saturating_mul(LINGER_PTOS).max(LINGER_MIN))
}

impl Connection {
    /// Begins to linger when both FINs are acked.
    pub(super) fn advance_close(&mut self, now: Nanos) {
        if let State::FinSent { number } = self.close.state
            && self.packet_tx.una() > number
            && self.close.peer_finished
        {
            self.close.state = State::Linger { until: linger_end(now, self.rtt.base_pto()) };
            self.waiting_since = None;
        }
    }

    pub(super) fn expire_closing(&mut self, now: Nanos) {
        match self.close.state {
            State::Linger { until } if until <= now => self.finish_close(),
            State::Closing | State::FinSent { .. } if self.close.deadline.is_some_and(|at| at <= now) => {
                self.fail(Cause::Deadline);
            }
            _ => {}
        }
    }

    /// A RST: the peer has closed, or does not know the connection.
    pub(super) fn handle_reset(&mut self, now: Nanos, packet: &Packet) {
        if packet.extension.connection != self.settings.theirs || self.close.is_over() {
            self.counters.stale += 1;
            return;
        }
        let ack = packet.ack().filter(|_| packet.extension.duplicate);
        let next = self.packet_tx.next();
        if matches!(self.close.state, State::Linger { .. }) {
            // All is acked both ways. The RST may come from another process at the port of a peer that has
            // exited.
            self.finish_close();
        } else if self.close.is_fin_sent() && ack.is_some_and(|ack| ack.expand(next) == next) {
            self.apply_ack(now, &Ack { ack: next, ..Ack::default() });
            self.finish_close();
        } else if self.settings.trusts_resets {
            self.fail(Cause::Reset);
        } else {
            self.counters.ignored_resets += 1;
        }
    }

    fn finish_close(&mut self) {
        self.close.state = State::Closed;
        self.push_event(Event::Closed);
    }

    /// Fails the connection; false if it was over before.
    pub(super) fn fail(&mut self, cause: Cause) -> bool {
        if self.close.is_over() {
            return false;
        }
        self.close.state = State::Failed;
        self.push_event(Event::Failed(Failure {
            cause,
            unacknowledged: self.message_tx.unacknowledged(),
            first: FullSequence::of(self.packet_tx.una()).bits(),
            peer_finished: self.close.peer_finished,
        }));
        true
    }
}
