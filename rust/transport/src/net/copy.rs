//! Copying of unaligned octets.

use std::sync::atomic::AtomicU64;

use mpjdev_buffer::octets::{copy_in, copy_out, copy_words};

/// Copies octets from and to any offset.
pub(in super::super) fn copy_octets(
    from: &[AtomicU64],
    from_at: usize,
    to: &[AtomicU64],
    to_at: usize,
    len: usize,
) {
    let whole = if from_at.is_multiple_of(8) && to_at.is_multiple_of(8) { len / 8 * 8 } else { 0 };
    copy_words(from, from_at, to, to_at, whole);
    let mut octets = [0; 512];
    let mut at = whole;
    while at < len {
        let n = (len - at).min(octets.len());
        copy_out(from, from_at + at, &mut octets[..n]);
        copy_in(to, to_at + at, &octets[..n]);
        at += n;
    }
}
