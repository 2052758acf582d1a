//! The membership of a rank in a communicator, which frees the communicator in the end.

use std::sync::Arc;

use crate::packet::engine::PacketEngine;

/// A rank's membership in a communicator other than the world. Dropping the last reference frees the
/// communicator.
#[derive(Debug)]
pub(crate) struct Membership {
    engine: Arc<PacketEngine>,
    context: u64,
}

impl Membership {
    pub(crate) fn new(engine: Arc<PacketEngine>, context: u64) -> Arc<Membership> {
        Arc::new(Membership { engine, context })
    }

    /// Frees the communicator while references remain.
    pub(crate) fn free(&self) {
        self.engine.free_context(self.context, false);
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.engine.free_context(self.context, true);
    }
}
