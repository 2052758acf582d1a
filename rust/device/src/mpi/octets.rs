//! Message memory as the library gets it.

use std::sync::atomic::AtomicU64;

use mpjdev_buffer::octets::{copy_in, copy_out};
use mpjdev_buffer::{Slab, SlabError, SlabSource};
use mpjdev_proto::announcement::{ANNOUNCEMENT_LEN, Announcement, BadAnnouncement};

/// A slab that an operation of the library keeps.
#[derive(Debug)]
pub(super) struct Octets(pub(super) Slab);

impl AsRef<[AtomicU64]> for Octets {
    #[inline]
    fn as_ref(&self) -> &[AtomicU64] {
        self.0.words()
    }
}

/// An announcement in memory of its own.
///
/// # Errors
/// No memory.
pub(super) fn write(announcement: &Announcement, source: &dyn SlabSource) -> Result<Slab, SlabError> {
    let slab = source.take(ANNOUNCEMENT_LEN)?;
    copy_in(slab.words(), 0, &announcement.emit());
    Ok(slab)
}

/// The announcement in this memory.
///
/// # Errors
/// It is none.
pub(super) fn read(slab: &Slab) -> Result<Announcement, BadAnnouncement> {
    let mut octets = [0; ANNOUNCEMENT_LEN];
    copy_out(slab.words(), 0, &mut octets);
    Announcement::parse(&octets)
}
