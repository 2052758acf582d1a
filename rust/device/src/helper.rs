//! A thread that goes on for a rank whose program computes, where no other rank of its process can.
//!
//! It sleeps until something is due: packets wait for room, or a rank that has waited in vain for an answer calls. Messages
//! that nobody waits for never wake it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::transport::shm::HelperBell;

/// How often it looks for room while packets wait for it: nobody tells.
const ROOM: Duration = Duration::from_micros(300);
/// How long it sleeps at most, so that it notices that its rank is gone.
const IDLE: Duration = Duration::from_secs(1);

/// Starts the helper of a rank; it ends with the endpoint.
///
/// # Errors
/// The system has no thread left.
pub(crate) fn start(endpoint: &Arc<Endpoint>, bell: HelperBell) -> std::io::Result<()> {
    let name = format!("mpjdev-helper-{}", endpoint.rank());
    let endpoint = Arc::downgrade(endpoint);
    std::thread::Builder::new().name(name).spawn(move || run(&endpoint, &bell)).map(drop)
}

fn run(endpoint: &Weak<Endpoint>, bell: &HelperBell) {
    let mut called = false;
    while let Some(endpoint) = endpoint.upgrade() {
        let is_due = || endpoint.queued_count.load(Ordering::Acquire) > 0;
        if called || is_due() {
            endpoint.help();
        }
        let most = if is_due() { ROOM } else { IDLE };
        drop(endpoint);
        called = bell.sleep(most);
    }
}
