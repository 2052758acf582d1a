//! Communicators of finished ranks, which the library still has.

use mpjdev_sys::mpi;
use mpjdev_sys::sync::{LockRank, Mutex};

/// The kept communicators, which are freed with those of the next session.
static KEPT: Mutex<Vec<mpi::Comm>> = Mutex::new(LockRank::Leaf, Vec::new());

/// Keeps communicators of a finished rank until the next session or the end of the process.
pub(super) fn keep(comms: [mpi::Comm; 2]) {
    KEPT.lock().extend(comms);
}

/// Takes all kept communicators.
pub(super) fn take() -> Vec<mpi::Comm> {
    std::mem::take(&mut KEPT.lock())
}
