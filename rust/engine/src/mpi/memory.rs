//! Message memory in the form that the library uses.

use std::sync::atomic::AtomicU64;

use mpjdev_buffer::octets::{copy_in, copy_out};
use mpjdev_buffer::{Slab, SlabError, SlabSource};
use mpjdev_proto::rts::{RTS_LEN, Rts, RtsError};

/// A slab that an operation of the library keeps.
#[derive(Debug)]
pub(super) struct Octets(pub(super) Slab);

impl AsRef<[AtomicU64]> for Octets {
    #[inline]
    fn as_ref(&self) -> &[AtomicU64] {
        self.0.words()
    }
}

/// Memory for unwanted octets, beyond the limit on message memory; `None` when the system refuses.
pub(super) fn words(len: usize) -> Option<Vec<AtomicU64>> {
    let count = len.div_ceil(8);
    let mut words = Vec::new();
    words.try_reserve_exact(count).ok()?;
    words.resize_with(count, AtomicU64::default);
    Some(words)
}

/// An RTS in memory of its own.
///
/// # Errors
/// No memory.
pub(super) fn write(rts: &Rts, source: &dyn SlabSource) -> Result<Slab, SlabError> {
    let slab = source.take(RTS_LEN)?;
    copy_in(slab.words(), 0, &rts.emit());
    Ok(slab)
}

/// The RTS in this memory.
///
/// # Errors
/// The octets are no RTS.
pub(super) fn read(slab: &Slab) -> Result<Rts, RtsError> {
    let mut octets = [0; RTS_LEN];
    copy_out(slab.words(), 0, &mut octets);
    Rts::parse(&octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_an_impossible_length_is_refused() {
        assert_eq!(words(9).map(|words| words.len()), Some(2));
        for len in [isize::MAX as usize, usize::MAX] {
            assert!(words(len).is_none(), "{len} octets");
        }
    }
}
