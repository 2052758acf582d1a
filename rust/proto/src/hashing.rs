//! A small hasher for the crate's integer keys.

use std::hash::{BuildHasherDefault, Hasher};

/// Builds [`Fold`] hashers; holds no state, so equal keys hash alike in every run.
pub(crate) type BuildFold = BuildHasherDefault<Fold>;

/// Folds each integer into the state by one 64 x 64 -> 128 bit multiplication.
///
/// A choice of ours: the keys are three small integers, for which the standard library's default hasher costs more than
/// the queue operation around it. It is not keyed: a peer can choose tags that collide, and then slows the receives of
/// its own messages down to a linear search, no more.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fold(u64);

impl Hasher for Fold {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value ^ SPREAD) * u128::from(MULTIPLIER);
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write(&mut self, octets: &[u8]) {
        for octet in octets {
            self.write_u64(u64::from(*octet));
        }
    }
}

/// Odd, half its bits set: 2^64 / golden ratio, the multiplier of Fibonacci hashing (Knuth, TAOCP 3, 6.4).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Keeps a zero key from multiplying to zero: the first 16 hexadecimal digits of pi's fraction.
const SPREAD: u64 = 0x243f_6a88_85a3_08d3;
