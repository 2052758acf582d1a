//! Progress thread of a rank whose program computes while no other rank of its process can drive its
//! progress.
//!
//! The thread sleeps until it is woken: by a rank that has waited for an answer without success, by a rank
//! that has made room for pending packets, or by the monitor when a rank has died. Messages that no rank
//! waits for never wake it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::ProgressFutex;
use crate::Progress;
use crate::progress::{self, WeakRank};

/// Longest sleep. After it the thread notices that its rank no longer exists.
const IDLE: Duration = Duration::from_secs(1);

/// Starts the progress thread of a rank. It ends with the rank, or when the rank has finished.
///
/// # Errors
/// The system has no thread left.
pub fn start(rank: &Arc<impl Progress>, mut futex: ProgressFutex) -> io::Result<()> {
    let waker = futex.waker();
    let turn = move |rank: &WeakRank| {
        if futex.sleep(IDLE) {
            rank.drive();
        }
    };
    progress::start("shm", rank, turn, move || waker.wake())
}
