//! The end of a channel between two hosts: a Fini in each direction (IMPI 14).
//!
//! ```text
//!   finish: all processes here have          Fini received: no more data
//!   finished, their pairs are done           from there
//!            |                                       |
//!            v                                       v
//!       Fini is sent, once                    ProtoAcks may still follow
//!            |                                       |
//!            +-----------> both: close  <------------+
//! ```
//!
//! The draft has no Fini, so there an end of stream may be an orderly end or a failure.

use thiserror::Error;

use super::packet::{Packet, PacketType};
use super::{Dialect, Proc};

/// The state of the end of one channel at one host.
#[derive(Clone, Debug)]
pub struct FiniState {
    dialect: Dialect,
    finished: bool,
    sent: bool,
    received: bool,
}

/// The meaning of an end of stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum EndOfStream {
    /// The peer's host had finished.
    Orderly,
    /// It had not finished: it failed, and the job fails.
    Died,
    /// Unknown in the draft: orderly if no pending or later operation needs the peer.
    Unknown,
}

/// A packet after the Fini.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{kind:?} after Fini")]
pub struct AfterFini {
    /// Its type.
    pub kind: PacketType,
}

impl FiniState {
    /// Neither end has finished.
    pub const fn new(dialect: Dialect) -> Self {
        Self { dialect, finished: false, sent: false, received: false }
    }

    /// All local processes have finished, and the pairs that use this channel are done: only ProtoAcks follow
    /// the Fini.
    pub const fn finish(&mut self) {
        self.finished = true;
    }

    /// The Fini, once, after [`finish`](Self::finish). It names no process; both process ids are zero (IMPI
    /// 7.2).
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        let due = self.finished && !self.sent && self.dialect == Dialect::Final;
        self.sent |= due;
        due.then(|| Packet::new(PacketType::Fini, Proc::default(), Proc::default()))
    }

    /// Checks each packet of the channel, before its pair handles it.
    ///
    /// # Errors
    /// A second Fini, or data after a Fini. Answers that are still in flight are accepted.
    #[inline]
    pub const fn handle_packet(&mut self, kind: PacketType) -> Result<(), AfterFini> {
        let is_fini = matches!(kind, PacketType::Fini);
        if self.received && (is_fini || kind.has_data()) {
            return Err(AfterFini { kind });
        }
        self.received |= is_fini;
        Ok(())
    }

    /// The stream has ended: the peer has closed the channel, or it is lost.
    pub const fn handle_end_of_stream(&self) -> EndOfStream {
        match (self.dialect, self.received) {
            (Dialect::Draft, _) if !self.finished => EndOfStream::Unknown,
            (Dialect::Draft, _) | (Dialect::Final, true) => EndOfStream::Orderly,
            (Dialect::Final, false) => EndOfStream::Died,
        }
    }
}
