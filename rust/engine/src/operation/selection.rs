//! The messages that a receive or a probe selects.

use std::sync::Arc;

use mpjdev_proto::envelope::Selector;

/// The messages that a receive or a probe asks for, checked by the communicator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection<'a> {
    /// The envelope pattern; the source is numbered in the world.
    pub(crate) selector: Selector,
    /// The source, numbered in the communicator.
    #[cfg_attr(loom, allow(dead_code))]
    pub(crate) member: Option<u32>,
    /// World ranks of the communicator.
    pub(crate) members: &'a Arc<[u32]>,
}
