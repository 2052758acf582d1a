//! Connection to one host.

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::dispatch::What;
use super::rx_stream::Reading;
use super::tx_stream::Writing;

/// One connection, with both directions.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) socket: OwnedFd,
    /// The ranks at its other end.
    pub(super) ranks: Vec<u32>,
    reading: Mutex<Reading<What>>,
    writing: Mutex<Writing>,
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
    pub(super) is_cut: AtomicBool,
    /// The channel is closed.
    pub(super) is_closed: AtomicBool,
}

impl Channel {
    pub(super) fn new(socket: OwnedFd, ranks: Vec<u32>, reading: Reading<What>, writing: Writing) -> Channel {
        let no = || AtomicBool::new(false);
        Channel {
            socket,
            ranks,
            reading: Mutex::new(reading),
            writing: Mutex::new(writing),
            is_ready: no(),
            has_waiting: no(),
            is_full: no(),
            has_refused: no(),
            has_finished: no(),
            fault: OnceLock::new(),
            is_cut: no(),
            is_closed: no(),
        }
    }

    /// The receiving direction.
    pub(super) fn reading(&self) -> MutexGuard<'_, Reading<What>> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The receiving direction, unless another thread polls it already.
    pub(super) fn try_reading(&self) -> Option<MutexGuard<'_, Reading<What>>> {
        self.reading.try_lock().ok()
    }

    /// The sending direction.
    pub(super) fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
