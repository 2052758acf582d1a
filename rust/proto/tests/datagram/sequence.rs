//! Sequence numbers around their wraps, that of a header and that of a reliable packet.

use mpjdev_proto::datagram::sequence::{FullSequence, Sequence};
use proptest::prelude::*;

const COUNT: u64 = 1 << 15;

/// Proves that next visits all numbers of 15 bits once.
#[test]
fn next_number_wraps() {
    let mut sequence = Sequence::default();
    for number in 0..2 * COUNT {
        assert_eq!((sequence, u64::from(sequence.bits())), (Sequence::of(number), number % COUNT));
        assert_eq!(Sequence::from_bits(sequence.bits() | 1 << 15), sequence);
        sequence = sequence.next();
    }
}

/// Proves that each of the 2^15 numbers expands to the nearest one, for references before, at and after the
/// wrap.
#[test]
fn each_number_expands_to_the_nearest() {
    let references = [0, 1, 16383, 16384, 16385, 32767, 32768, 3 * COUNT - 1, 3 * COUNT, 1 << 40, u64::MAX];
    for reference in references {
        for bits in 0..COUNT {
            let sequence = Sequence::of(bits);
            let found = sequence.expand(reference);
            assert_eq!(Sequence::of(found), sequence);
            // The nearest existing number, and of two the larger one.
            let round = reference / COUNT;
            let candidates = (round.saturating_sub(1)..=round.saturating_add(1))
                .filter_map(|round| round.checked_mul(COUNT)?.checked_add(bits));
            let nearest = candidates.min_by_key(|n| (n.abs_diff(reference), *n < reference));
            assert_eq!(Some(found), nearest, "{bits} at {reference}");
        }
    }
}

/// Proves that the 31 bits of a reliable packet wrap as the 15 of a header, and that numbers 2^15 apart
/// differ.
#[test]
fn full_numbers_wrap_at_2_to_the_31() {
    const FULL_COUNT: u64 = 1 << 31;
    for reference in [FULL_COUNT - 1, FULL_COUNT, FULL_COUNT + 1, 5 * FULL_COUNT - 1, 1 << 40] {
        for offset in [-(1 << 30) + 1, -(1 << 15), -1, 0, 1, 1 << 15, (1 << 30) - 1] {
            let number = reference.checked_add_signed(offset).expect("above zero");
            let sequence = FullSequence::of(number);
            assert_eq!(sequence.expand(reference), number, "{reference} and {offset}");
            assert_eq!(sequence.next(), FullSequence::of(number + 1));
            assert_ne!(sequence, FullSequence::of(number + COUNT));
            assert_eq!(sequence, FullSequence::of(number + FULL_COUNT));
        }
    }
}

proptest! {
    /// Proves that a number within the window of its reference survives truncation and expansion.
    #[test]
    fn expansion_is_the_inverse_of_truncation(reference in any::<u64>(), offset in -16383i64..=16384) {
        if let Some(number) = reference.checked_add_signed(offset) {
            prop_assert_eq!(Sequence::of(number).expand(reference), number);
        }
    }

    /// Proves the same for the numbers of reliable packets.
    #[test]
    fn full_expansion_is_the_inverse_of_truncation(
        reference in any::<u64>(),
        offset in -(1i64 << 30) + 1..=1 << 30,
    ) {
        if let Some(number) = reference.checked_add_signed(offset) {
            prop_assert_eq!(FullSequence::of(number).expand(reference), number);
        }
    }
}
