//! One connection to a host.

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::handling::What;
use super::reading::Reading;
use super::writing::Writing;

/// One connection, with both ways.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) socket: OwnedFd,
    /// The ranks behind it.
    pub(super) ranks: Vec<u32>,
    reading: Mutex<Reading<What>>,
    writing: Mutex<Writing>,
    /// There is something to take.
    pub(super) is_ready: AtomicBool,
    /// Octets wait for the socket, or for whoever looks next.
    pub(super) has_waiting: AtomicBool,
    /// They wait because the socket took no more.
    pub(super) is_full: AtomicBool,
    /// Somebody found no room.
    pub(super) has_refused: AtomicBool,
    /// The host has said that nothing more comes.
    pub(super) has_finished: AtomicBool,
    /// What the system has said of it that is no end of a stream.
    pub(super) fault: OnceLock<String>,
    /// The system has given the other machine up: what that has not acknowledged is lost.
    pub(super) is_cut: AtomicBool,
    /// It is gone.
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

    /// The way in.
    pub(super) fn reading(&self) -> MutexGuard<'_, Reading<What>> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way in, unless somebody looks already.
    pub(super) fn try_reading(&self) -> Option<MutexGuard<'_, Reading<What>>> {
        self.reading.try_lock().ok()
    }

    /// The way out.
    pub(super) fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
