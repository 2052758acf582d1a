//! A thread that goes on for a rank whose program computes, where no other rank of its process can.
//!
//! It sleeps until it is called: by a rank that has waited in vain for an answer, by one that has made room for packets that
//! wait here, or by the monitor when a rank has died. Messages that nobody waits for never wake it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::HelperBell;
use crate::{Progress, goes_on};

/// How long it sleeps at most, so that it notices that its rank is gone.
const IDLE: Duration = Duration::from_secs(1);

/// Starts the helper of a rank; it ends with the rank, or when that has finished.
///
/// # Errors
/// The system has no thread left.
pub fn start(rank: &Arc<impl Progress>, mut bell: HelperBell) -> std::io::Result<()> {
    let (name, caller) = (format!("mpjdev-helper-{}", rank.rank()), bell.caller());
    let weak: Weak<dyn Progress> = Arc::downgrade(rank) as _;
    rank.start_beside(name, Box::new(move || run(&weak, &mut bell)), Box::new(move || caller.call()))
}

fn run(rank: &Weak<dyn Progress>, bell: &mut HelperBell) {
    while goes_on(rank) {
        if bell.sleep(IDLE)
            && let Some(rank) = rank.upgrade()
        {
            rank.help();
        }
    }
}
