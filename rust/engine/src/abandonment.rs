//! The state of abandoned collective operations on a communicator.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use mpjdev_buffer::{Type, capacity::section_capacity};
use mpjdev_sys::sync::{LockRank, Mutex, MutexGuard};

use crate::error::DeviceError;
use crate::request::RequestId;

/// Octets of a notice: the reason of the abandonment, and the world rank that caused it.
pub(crate) const NOTICE_LEN: usize = 8;
/// Capacity of the receive of a notice.
pub(crate) const NOTICE_CAPACITY: usize = section_capacity(Type::Byte, NOTICE_LEN as u32) as usize;

/// The receive of a notice that has arrived in part, and the world rank of its sender.
type Arriving = Option<(RequestId, u32)>;

/// The abandoned operations of a communicator.
#[derive(Debug)]
pub(crate) struct Abandonment {
    /// The error of all further collective operations, once one was abandoned.
    error: OnceLock<DeviceError>,
    /// Rank 0 has left an operation: its decisions in that operation do not arrive any more.
    has_root_left: AtomicBool,
    arriving: Mutex<Arriving>,
}

impl Default for Abandonment {
    fn default() -> Self {
        Abandonment {
            error: OnceLock::new(),
            has_root_left: AtomicBool::new(false),
            arriving: Mutex::new(LockRank::Notice, None),
        }
    }
}

impl Abandonment {
    /// The error of all further collective operations, once one was abandoned.
    pub(crate) fn error(&self) -> Option<&DeviceError> {
        self.error.get()
    }

    /// Sets the error of all further collective operations; false if there was one before.
    pub(crate) fn set_error(&self, error: DeviceError) -> bool {
        self.error.set(error).is_ok()
    }

    /// The error of all further collective operations, which is `error` unless an earlier one is set.
    pub(crate) fn error_or(&self, error: impl FnOnce() -> DeviceError) -> &DeviceError {
        self.error.get_or_init(error)
    }

    /// Records that rank 0 has left an operation.
    pub(crate) fn note_root_left(&self) {
        self.has_root_left.store(true, Ordering::Relaxed);
    }

    /// Whether rank 0 has left an operation.
    #[cfg(not(loom))]
    pub(crate) fn has_root_left(&self) -> bool {
        self.has_root_left.load(Ordering::Relaxed)
    }

    /// The receive of a notice that has arrived in part, for one thread at a time.
    pub(crate) fn arriving(&self) -> MutexGuard<'_, Arriving> {
        self.arriving.lock()
    }
}
