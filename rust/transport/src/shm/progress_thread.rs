//! Progress thread of a rank whose program computes while no other rank of its process can drive its
//! progress.
//!
//! The thread sleeps until it is woken: by a rank that has waited for an answer without success, by a rank
//! that has made room for pending packets, or by the monitor when a rank has died. Messages that no rank
//! waits for never wake it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::ProgressFutex;
use crate::{Progress, is_running};

/// Longest sleep. After it the thread notices that its rank no longer exists.
const IDLE: Duration = Duration::from_secs(1);

/// Starts the progress thread of a rank. It ends with the rank, or when the rank has finished.
///
/// # Errors
/// The system has no thread left.
pub fn start(rank: &Arc<impl Progress>, mut futex: ProgressFutex) -> std::io::Result<()> {
    let (name, waker) = (format!("mpjdev-shm-{}", rank.rank()), futex.waker());
    let weak: Weak<dyn Progress> = Arc::downgrade(rank) as _;
    rank.spawn_progress_thread(name, Box::new(move || run(&weak, &mut futex)), Box::new(move || waker.wake()))
}

fn run(rank: &Weak<dyn Progress>, futex: &mut ProgressFutex) {
    while is_running(rank) {
        if futex.sleep(IDLE)
            && let Some(rank) = rank.upgrade()
        {
            rank.drive_progress();
        }
    }
}
