//! Communicators of finished ranks, which the library still has.

use std::sync::Mutex;

use mpjdev_sys::mpi;

use super::lock;

/// They are freed with those of the session.
static KEPT: Mutex<Vec<mpi::Comm>> = Mutex::new(Vec::new());

/// Keeps communicators of a finished rank until the next session or the end of the process.
pub(super) fn keep(comms: [mpi::Comm; 2]) {
    lock(&KEPT).extend(comms);
}

/// Takes all kept communicators.
pub(super) fn take() -> Vec<mpi::Comm> {
    std::mem::take(&mut lock(&KEPT))
}
