//! The membership of a rank in a communicator, which frees the communicator in the end.

use std::sync::Arc;

use crate::packet::engine::PacketEngine;

/// A rank's membership in a communicator other than the world. Dropping the last reference frees the
/// communicator.
#[derive(Debug)]
pub(crate) struct Membership {
    endpoint: Arc<PacketEngine>,
    context: u64,
}

impl Membership {
    pub(crate) fn new(endpoint: Arc<PacketEngine>, context: u64) -> Arc<Membership> {
        Arc::new(Membership { endpoint, context })
    }

    /// Frees the communicator while references remain.
    pub(crate) fn free(&self) {
        self.endpoint.free_context(self.context, false);
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.endpoint.free_context(self.context, true);
    }
}
