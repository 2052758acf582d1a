//! Long messages whose octets leave while they are packed.

use mpjdev_buffer::Slab;

/// Reason why a connection is closed: a packet of a message may have begun, and its other octets are missing.
pub(in super::super) const GIVEN_UP: &str = "this rank could not pack a message to it to the end";

/// Whether these octets of a message are packed.
pub(in super::super) fn is_packed(slab: &Slab, offset: u64, len: u32) -> bool {
    slab.packed_len().is_some_and(|packed| offset + u64::from(len) <= packed as u64)
}

/// Octets of a packet at least, of a message that is being packed. A shorter packet is not worth its system
/// calls.
const PACKED_MIN: u32 = 256 << 10;

/// The octets of a part of a message that may leave: those that are packed. They are none while the part is
/// not whole and has less than a packet at least.
pub(in super::super) fn packed_of(slab: &Slab, offset: u64, len: u32) -> u32 {
    let packed = slab.packed_len().map_or(0, |packed| (packed as u64).saturating_sub(offset));
    let packed = packed.min(u64::from(len)) as u32;
    if packed < len.min(PACKED_MIN) { 0 } else { packed }
}

/// Whether a message will never be packed.
pub(in super::super) fn is_given_up(slab: &Slab) -> bool {
    slab.packed_len().is_none()
}

#[cfg(test)]
mod tests {
    use mpjdev_buffer::SlabSource;

    use super::*;
    use crate::pool::HeapPool;

    #[test]
    fn packed_octets_leave_by_256_kib_or_to_the_end_of_their_part() {
        const LEN: u32 = 600 << 10;
        let slab = HeapPool::new(1 << 30).take(LEN as usize).expect("memory");
        let (packing, packer) = slab.begin_packing(0).expect("a counter");
        let of = |packed: u32, offset: u32, len: u32| {
            packer.publish(packed as usize);
            packed_of(&packing, u64::from(offset), len) >> 10
        };
        let kib = |n: u32| n << 10;
        assert_eq!([of(0, 0, LEN), of(kib(255), 0, LEN), of(kib(256), 0, LEN)], [0, 0, 256]);
        assert_eq!([of(kib(500), 0, LEN), of(kib(500), kib(256), kib(344))], [500, 0]);
        assert_eq!([of(kib(600), kib(512), kib(88)), of(kib(100), kib(96), kib(4))], [88, 4]);
        assert_eq!(of(kib(16), kib(32), kib(4)), 0, "the part begins behind what is packed");
        drop(packer);
        assert_eq!((packed_of(&packing, 0, 8), packed_of(&slab, 0, LEN)), (0, LEN), "broken, and complete");
    }
}
