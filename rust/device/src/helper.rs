//! A thread that goes on for a rank whose program computes, where no other rank of its process can.
//!
//! It sleeps until it is called: by a rank that has waited in vain for an answer, by one that has made room for packets that
//! wait here, or by the monitor when a rank has died. Messages that nobody waits for never wake it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::transport::shm::HelperBell;

/// How long it sleeps at most, so that it notices that its rank is gone.
const IDLE: Duration = Duration::from_secs(1);

/// Starts the helper of a rank; it ends with the endpoint.
///
/// # Errors
/// The system has no thread left.
pub(crate) fn start(endpoint: &Arc<Endpoint>, mut bell: HelperBell) -> std::io::Result<()> {
    let name = format!("mpjdev-helper-{}", endpoint.rank());
    let endpoint = Arc::downgrade(endpoint);
    std::thread::Builder::new().name(name).spawn(move || run(&endpoint, &mut bell)).map(drop)
}

fn run(endpoint: &Weak<Endpoint>, bell: &mut HelperBell) {
    loop {
        let called = bell.sleep(IDLE);
        let Some(endpoint) = endpoint.upgrade() else { return };
        if called {
            endpoint.help();
        }
    }
}
