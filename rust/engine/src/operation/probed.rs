//! The result of a probe.

use mpjdev_buffer::SectionHeader;
use mpjdev_proto::envelope::Envelope;

/// A message that a probe has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probed {
    /// Its envelope. The source is numbered in the world.
    pub envelope: Envelope,
    /// Capacity that receiving it needs.
    pub size: usize,
    /// Type and count of its first section. `None` without a section, and if it has not arrived.
    pub first: Option<SectionHeader>,
}
