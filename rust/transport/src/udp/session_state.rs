//! State of a session with a peer, from this rank's side, and its transitions.
//!
//! The thread that holds the session changes and reads it. The end of the peer's packets is independent of it
//! and needs no lock: `Peer::has_finished`.
//!
//! | state | peer has finished | situation |
//! |---|---|---|
//! | `Open` | no | messages go both ways |
//! | `Open` | yes | the peer sends no messages any more, and takes none |
//! | `Draining` | any | this rank has finished; its last packets are not all sent |
//! | `FinSent` | no | all packets are sent; this rank waits for their acks |
//! | `FinSent` | yes | both have finished; the peer may ask for an ack again |
//! | `Closed` | any | nothing is sent any more, and later messages are dropped |

/// State of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionState {
    /// Messages are accepted and sent.
    Open,
    /// No more messages are accepted. The end of this rank's packets is not sent yet.
    Draining,
    /// The end of this rank's packets was sent.
    FinSent,
    /// Nothing is sent any more.
    Closed(Lost),
}

/// Messages, and their octets, that were unacked when the machine of a peer became unreachable. Zero if the
/// peer has ended: it takes nothing more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) messages: usize,
    pub(super) octets: u64,
}

impl SessionState {
    /// After the finish of this rank.
    pub(super) fn finished(self) -> SessionState {
        match self {
            SessionState::Open | SessionState::Draining => SessionState::Draining,
            SessionState::FinSent | SessionState::Closed(_) => self,
        }
    }

    /// After a packet was sent that ends this rank's packets.
    pub(super) fn fin_sent(self) -> SessionState {
        match self {
            SessionState::Open | SessionState::Draining | SessionState::FinSent => SessionState::FinSent,
            SessionState::Closed(_) => self,
        }
    }

    /// After the peer has ended or has become unreachable. What is lost is decided by the first such event.
    pub(super) fn closed(self, lost: Lost) -> SessionState {
        match self {
            SessionState::Open | SessionState::Draining | SessionState::FinSent => SessionState::Closed(lost),
            SessionState::Closed(_) => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SessionState::{Closed, Draining, FinSent, Open};
    use super::*;

    const NOTHING: Lost = Lost { messages: 0, octets: 0 };
    const SOME: Lost = Lost { messages: 2, octets: 300 };

    #[test]
    fn finish_drains_an_open_session_and_no_other() {
        let after = [Open, Draining, FinSent, Closed(SOME)].map(SessionState::finished);
        assert_eq!(after, [Draining, Draining, FinSent, Closed(SOME)]);
    }

    #[test]
    fn closed_session_is_not_reopened_by_a_sent_fin() {
        let after = [Open, Draining, FinSent, Closed(SOME)].map(SessionState::fin_sent);
        assert_eq!(after, [FinSent, FinSent, FinSent, Closed(SOME)]);
    }

    #[test]
    fn first_close_decides_which_messages_are_lost() {
        let after = [Open, Draining, FinSent, Closed(NOTHING)].map(|state| state.closed(SOME));
        assert_eq!(after, [Closed(SOME), Closed(SOME), Closed(SOME), Closed(NOTHING)]);
    }
}
