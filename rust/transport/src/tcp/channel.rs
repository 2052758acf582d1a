//! Connection to one host.

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::body_action::BodyAction;
use super::rx_stream::RxStream;
use super::tx_stream::TxStream;

/// One connection, with both directions.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) socket: OwnedFd,
    /// The ranks at its other end.
    pub(super) ranks: Vec<u32>,
    rx: Mutex<RxStream<BodyAction>>,
    tx: Mutex<TxStream>,
    /// A header or a body can be taken.
    pub(super) is_ready: AtomicBool,
    /// Octets wait for the socket, or for the next poll.
    pub(super) has_waiting: AtomicBool,
    /// Octets wait because the socket buffer is full.
    pub(super) is_full: AtomicBool,
    /// A send found no room.
    pub(super) has_refused: AtomicBool,
    /// The host has announced the end of its packets.
    pub(super) has_finished: AtomicBool,
    /// An error of the system that is no end of a stream.
    pub(super) fault: OnceLock<String>,
    /// The system has given up the other machine. Its unacknowledged octets are lost.
    pub(super) is_unreachable: AtomicBool,
    /// The channel is closed.
    pub(super) is_closed: AtomicBool,
}

impl Channel {
    pub(super) fn new(socket: OwnedFd, ranks: Vec<u32>, rx: RxStream<BodyAction>, tx: TxStream) -> Channel {
        let no = || AtomicBool::new(false);
        Channel {
            socket,
            ranks,
            rx: Mutex::new(rx),
            tx: Mutex::new(tx),
            is_ready: no(),
            has_waiting: no(),
            is_full: no(),
            has_refused: no(),
            has_finished: no(),
            fault: OnceLock::new(),
            is_unreachable: no(),
            is_closed: no(),
        }
    }

    /// The receiving direction.
    pub(super) fn rx(&self) -> MutexGuard<'_, RxStream<BodyAction>> {
        self.rx.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The receiving direction, unless another thread polls it already.
    pub(super) fn try_rx(&self) -> Option<MutexGuard<'_, RxStream<BodyAction>>> {
        self.rx.try_lock().ok()
    }

    /// The sending direction.
    pub(super) fn tx(&self) -> MutexGuard<'_, TxStream> {
        self.tx.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
