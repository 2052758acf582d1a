//! The end of a connection (5.8).
//!
//! ```text
//! OPEN --close--> CLOSING --all complete--> FIN_SENT --own FIN acked, peer's received--> LINGER --> CLOSED
//!                    |                         |                                           | FIN again:
//!                    +---------deadline--------+--------> FAILED                           | acked again
//! any: nothing received for dead_after, or RST ---------> FAILED           LINGER: RST ----------> CLOSED
//! ```
//!
//! The last acks of an end that lingered may all be lost. Later packets for it are answered with a RST, as
//! for any unknown connection, but with DUPLICATE and its last ack number. That RST closes the other end in
//! order (a choice of ours).

use super::super::packet::Packet;
use super::super::sequence::FullSequence;
use super::close_state::{State, linger_end};
use super::connection::{Connection, Event};
use super::error::{Cause, Failure};
use super::packet_tx::Ack;
use super::time::Nanos;

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
