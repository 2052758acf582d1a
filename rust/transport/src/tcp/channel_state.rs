//! States of a channel, and their transitions.
//!
//! A channel has one state of each kind. Its two streams have a state of their own under their locks.
//!
//! | kind | written by | read |
//! |---|---|---|
//! | [`Backlog`] | the thread that holds the sending direction | by polls and sleepers, without a lock |
//! | [`HostState`] | the thread that holds the sending direction | by polls and sends, without a lock |
//! | [`TxState`], [`Fault`] | the thread that holds the sending direction | by a thread that holds it |
//!
//! | [`TxState`] | [`Backlog`] | [`HostState`] | situation |
//! |---|---|---|---|
//! | `Open` | any | `Open` | both directions are in use |
//! | `Open` | any | `Finished` | the host sends no packets any more, and its system still takes octets |
//! | `Broken` | `Empty` | `Open`, `Finished` | nothing can be written; octets of before are still read |
//! | `Closed` | `Empty` | `Closed`, `FinishedClosed` | nothing is read or written any more |

use std::io;

use mpjdev_proto::impi::Dialect;

use crate::net::atomic_state::impl_state;

/// Octets that were put into a channel and not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backlog {
    /// There are none.
    Empty,
    /// They wait for the next poll, which writes them.
    Deferred,
    /// They wait because the socket buffer is full.
    Full,
}

impl Backlog {
    /// After packets were put or dropped, and none was written.
    pub(super) fn after_put(self, waiting_len: usize) -> Backlog {
        match self {
            _ if waiting_len == 0 => Backlog::Empty,
            Backlog::Empty | Backlog::Deferred => Backlog::Deferred,
            Backlog::Full => Backlog::Full,
        }
    }

    /// After a write of as many octets as the socket took.
    pub(super) fn after_write(waiting_len: usize) -> Backlog {
        if waiting_len == 0 { Backlog::Empty } else { Backlog::Full }
    }
}

impl_state!(Backlog { Empty, Deferred, Full });

/// Packets of the host at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostState {
    /// More may arrive.
    Open,
    /// All have arrived: the host has announced the end of its packets.
    Finished,
    /// None is taken any more: the host has failed, or has violated the protocol.
    Closed,
    /// All have arrived, and none is taken any more: the host has violated the protocol after its end.
    FinishedClosed,
}

impl HostState {
    /// After the end of the host's packets. A closed channel stays closed.
    pub(super) fn finished(self) -> HostState {
        match self {
            HostState::Open | HostState::Finished => HostState::Finished,
            HostState::Closed | HostState::FinishedClosed => self,
        }
    }

    /// After the end of the channel. A host that has finished stays finished.
    pub(super) fn closed(self) -> HostState {
        match self {
            HostState::Open | HostState::Closed => HostState::Closed,
            HostState::Finished | HostState::FinishedClosed => HostState::FinishedClosed,
        }
    }

    /// Whether the host has announced the end of its packets.
    pub(super) fn has_finished(self) -> bool {
        matches!(self, HostState::Finished | HostState::FinishedClosed)
    }

    /// Whether no packets are taken any more.
    pub(super) fn is_closed(self) -> bool {
        matches!(self, HostState::Closed | HostState::FinishedClosed)
    }
}

impl_state!(HostState { Open, Finished, Closed, FinishedClosed });

/// State of the sending direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TxState {
    /// Packets are accepted and written.
    Open,
    /// Nothing is written any more, and later packets are dropped. The sessions stay for octets of the other
    /// end.
    Broken,
    /// As broken, and the sessions have ended.
    Closed,
}

impl TxState {
    /// After the end of writing.
    pub(super) fn broken(self) -> TxState {
        match self {
            TxState::Open | TxState::Broken => TxState::Broken,
            TxState::Closed => TxState::Closed,
        }
    }
}

/// Error of a connection that the system has reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// No error. The stream may have ended without one.
    None,
    /// The other process has ended without a finish, as far as the dialect shows.
    Reset(String),
    /// The system has timed out the other machine. Its unacknowledged octets are lost.
    Unreachable(String),
}

impl Fault {
    /// After another error. The text of the first one stays.
    pub(super) fn after(self, error: &io::Error, dialect: Dialect) -> Fault {
        let is_reset = matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe);
        let text = || format!("its connection is broken: {error}");
        match self {
            // A process that ends with unread octets resets its connections. In the draft dialect that is a
            // regular end.
            Fault::None if is_reset && dialect == Dialect::Draft => Fault::None,
            Fault::None if is_reset => Fault::Reset(text()),
            Fault::None => Fault::Unreachable(text()),
            Fault::Reset(first) if is_reset => Fault::Reset(first),
            Fault::Reset(first) | Fault::Unreachable(first) => Fault::Unreachable(first),
        }
    }

    /// The reason of a failure, if there is a fault.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Fault::None => None,
            Fault::Reset(text) | Fault::Unreachable(text) => Some(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use io::ErrorKind;

    use super::*;

    #[test]
    fn backlog_stays_full_until_a_write_empties_it() {
        use Backlog::{Deferred, Empty, Full};
        for (before, waiting_len, after) in [
            (Empty, 0, Empty),
            (Empty, 1, Deferred),
            (Deferred, 0, Empty),
            (Deferred, 1, Deferred),
            (Full, 0, Empty),
            (Full, 1, Full),
        ] {
            assert_eq!(before.after_put(waiting_len), after, "{before:?}, {waiting_len} octets");
        }
        assert_eq!((Backlog::after_write(0), Backlog::after_write(1)), (Empty, Full));
    }

    #[test]
    fn host_finishes_only_before_its_channel_is_closed_and_stays_finished() {
        use HostState::{Closed, Finished, FinishedClosed, Open};
        for (before, finished, closed) in [
            (Open, Finished, Closed),
            (Finished, Finished, FinishedClosed),
            (Closed, Closed, Closed),
            (FinishedClosed, FinishedClosed, FinishedClosed),
        ] {
            assert_eq!((before.finished(), before.closed()), (finished, closed), "{before:?}");
        }
        let has_ended = [Open, Finished, Closed, FinishedClosed].map(|s| (s.has_finished(), s.is_closed()));
        assert_eq!(has_ended, [(false, false), (true, false), (false, true), (true, true)]);
    }

    #[test]
    fn closed_stream_is_never_reopened_by_a_failed_write() {
        use TxState::{Broken, Closed, Open};
        assert_eq!([Open, Broken, Closed].map(TxState::broken), [Broken, Broken, Closed]);
    }

    #[test]
    fn fault_keeps_the_first_text_and_the_loss_of_the_machine() {
        let after = |fault: Fault, kind, dialect| fault.after(&io::Error::new(kind, "why"), dialect);
        let (text, first) = ("its connection is broken: why".to_owned(), "first".to_owned());
        let (reset, unreachable) = (Fault::Reset(first.clone()), Fault::Unreachable(first));
        for (before, kind, dialect, expected) in [
            (Fault::None, ErrorKind::BrokenPipe, Dialect::Draft, Fault::None),
            (Fault::None, ErrorKind::ConnectionReset, Dialect::Final, Fault::Reset(text.clone())),
            (Fault::None, ErrorKind::TimedOut, Dialect::Draft, Fault::Unreachable(text)),
            (reset.clone(), ErrorKind::BrokenPipe, Dialect::Final, reset.clone()),
            (reset, ErrorKind::TimedOut, Dialect::Final, unreachable.clone()),
            (unreachable.clone(), ErrorKind::BrokenPipe, Dialect::Final, unreachable),
        ] {
            assert_eq!(after(before.clone(), kind, dialect), expected, "{before:?}, {kind:?}, {dialect:?}");
        }
    }
}
