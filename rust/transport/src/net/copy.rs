//! Copying of unaligned octets.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use mpjdev_buffer::octets::{copy_in, copy_out, copy_words};

/// Copies octets from and to any offset.
pub(in super::super) fn copy_octets(
    from: &[AtomicU64],
    from_at: usize,
    to: &[AtomicU64],
    to_at: usize,
    len: usize,
) {
    let whole = match (from_at % 8, to_at % 8) {
        (0, 0) => {
            copy_words(from, from_at, to, to_at, len / 8 * 8);
            len / 8 * 8
        }
        (shift, 0) => copy_shifted(&from[from_at / 8..], shift, &to[to_at / 8..], len / 8) * 8,
        _ => 0,
    };
    let mut octets = [0; 512];
    let mut at = whole;
    while at < len {
        let n = (len - at).min(octets.len());
        copy_out(from, from_at + at, &mut octets[..n]);
        copy_in(to, to_at + at, &octets[..n]);
        at += n;
    }
}

/// Copies words that begin `shift` octets inside the first word. Returns their number: `count`.
fn copy_shifted(from: &[AtomicU64], shift: usize, to: &[AtomicU64], count: usize) -> usize {
    if count == 0 {
        return 0;
    }
    let bits = 8 * shift as u32;
    let mut before = u64::from_le_bytes(from[0].load(Relaxed).to_ne_bytes());
    for (to, from) in to[..count].iter().zip(&from[1..=count]) {
        let next = u64::from_le_bytes(from.load(Relaxed).to_ne_bytes());
        let word = before >> bits | next << (64 - bits);
        to.store(u64::from_ne_bytes(word.to_le_bytes()), Relaxed);
        before = next;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_from_and_to_any_offset_arrive_and_the_others_stay() {
        let words = |first: u8| -> Vec<AtomicU64> {
            let octet = |at: usize| first.wrapping_add(at as u8);
            (0..80)
                .map(|i| AtomicU64::new(u64::from_ne_bytes(std::array::from_fn(|j| octet(8 * i + j)))))
                .collect()
        };
        let octets = |words: &[AtomicU64]| -> Vec<u8> {
            words.iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect()
        };
        let source = words(1);
        let expected_source = octets(&source);
        for from_at in 0..17 {
            for to_at in 0..9 {
                for len in [0, 1, 7, 8, 9, 63, 64, 65, 511, 512, 600] {
                    let target = words(100);
                    let mut expected = octets(&target);
                    expected[to_at..to_at + len].copy_from_slice(&expected_source[from_at..from_at + len]);
                    copy_octets(&source, from_at, &target, to_at, len);
                    assert_eq!(octets(&target), expected, "{len} octets from {from_at} to {to_at}");
                }
            }
        }
    }
}
