//! The end of a channel between two hosts: a Fini each way (IMPI 14).
//!
//! ```text
//!   finish: all processes here have          Fini comes: no more data
//!   finished, their pairs are done           from there
//!            |                                       |
//!            v                                       v
//!       Fini leaves, once                     ProtoAcks may still come
//!            |                                       |
//!            +-----------> both: close  <------------+
//! ```
//!
//! The draft has no Fini, so there an end of stream may be either end.

use thiserror::Error;

use super::packet::{Packet, PacketType};
use super::{Dialect, Proc};

/// What one host knows of the end of one channel.
#[derive(Clone, Debug)]
pub struct FiniState {
    dialect: Dialect,
    finished: bool,
    sent: bool,
    received: bool,
}

/// What an end of stream means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum EndOfStream {
    /// The peer's host has finished before.
    Orderly,
    /// It has not: it died, and the job with it.
    Died,
    /// The draft does not say: orderly if nothing that is pending, or begun later, needs the peer.
    Unknown,
}

/// A packet behind the last one.
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

    /// All local processes have finished, and the pairs that use this channel are done: nothing but ProtoAcks leaves
    /// behind the Fini.
    pub const fn finish(&mut self) {
        self.finished = true;
    }

    /// The Fini, once, when it is time. It names no process; we put zeros there (IMPI 7.2).
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        let due = self.finished && !self.sent && self.dialect == Dialect::Final;
        self.sent |= due;
        due.then(|| Packet::new(PacketType::Fini, Proc::default(), Proc::default()))
    }

    /// To be asked for every packet of the channel, before its pair is.
    ///
    /// # Errors
    /// A second Fini, or data behind one. Answers may still be under way then, and are taken.
    #[inline]
    pub const fn handle_packet(&mut self, kind: PacketType) -> Result<(), AfterFini> {
        let is_fini = matches!(kind, PacketType::Fini);
        if self.received && (is_fini || kind.has_data()) {
            return Err(AfterFini { kind });
        }
        self.received |= is_fini;
        Ok(())
    }

    /// The peer has closed the channel, or it is lost.
    pub const fn handle_end_of_stream(&self) -> EndOfStream {
        match (self.dialect, self.received) {
            (Dialect::Draft, _) if !self.finished => EndOfStream::Unknown,
            (Dialect::Draft, _) | (Dialect::Final, true) => EndOfStream::Orderly,
            (Dialect::Final, false) => EndOfStream::Died,
        }
    }
}
