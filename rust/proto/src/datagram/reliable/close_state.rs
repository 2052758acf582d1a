//! The state of a connection's close; [`super::close`] has the diagram.

use super::time::{MILLISECOND, Nanos};

/// Least time for which a closed end answers (5.8).
const LINGER_MIN: Nanos = 50 * MILLISECOND;
/// The same in PTOs (5.8).
const LINGER_PTOS: u64 = 3;

/// The state of the close.
#[derive(Clone, Copy, Debug)]
pub(super) struct CloseState {
    pub(super) state: State,
    pub(super) peer_finished: bool,
    /// When [`Connection::close`](super::connection::Connection::close) times out.
    pub(super) deadline: Option<Nanos>,
    /// Whether a RST is to be sent.
    resets_peer: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
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

pub(super) fn linger_end(now: Nanos, pto: Nanos) -> Nanos {
    now.saturating_add(pto.saturating_mul(LINGER_PTOS).max(LINGER_MIN))
}
