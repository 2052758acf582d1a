//! A thread that goes on for a rank whose program computes, where no other rank of its process can.
//!
//! It sleeps until it is called: by a rank that has waited in vain for an answer, by one that has made room for packets that
//! wait here, or by the monitor when a rank has died. Messages that nobody waits for never wake it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::beside::goes_on;
use crate::endpoint::Endpoint;
use crate::transport::shm::HelperBell;

/// How long it sleeps at most, so that it notices that its rank is gone.
const IDLE: Duration = Duration::from_secs(1);

/// Starts the helper of a rank; it ends with the endpoint, or when the rank has finished.
///
/// # Errors
/// The system has no thread left.
pub(crate) fn start(endpoint: &Arc<Endpoint>, mut bell: HelperBell) -> std::io::Result<()> {
    let (name, caller) = (format!("mpjdev-helper-{}", endpoint.rank()), bell.caller());
    let weak = Arc::downgrade(endpoint);
    endpoint.start_beside(name, move || run(&weak, &mut bell), move || caller.call())
}

fn run(endpoint: &Weak<Endpoint>, bell: &mut HelperBell) {
    while goes_on(endpoint) {
        if bell.sleep(IDLE)
            && let Some(endpoint) = endpoint.upgrade()
        {
            endpoint.help();
        }
    }
}
