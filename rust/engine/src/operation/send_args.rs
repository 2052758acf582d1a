//! The arguments of a send.

use mpjdev_buffer::Message;

use super::mode::Mode;

/// The arguments of a send, checked by the communicator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendArgs<'a> {
    pub(crate) message: &'a Message,
    /// Destination, numbered in the communicator.
    #[cfg_attr(loom, allow(dead_code))]
    pub(crate) member: u32,
    /// Destination, numbered in the world.
    pub(crate) world: u32,
    pub(crate) context: u64,
    pub(crate) tag: i32,
    pub(crate) mode: Mode,
}
