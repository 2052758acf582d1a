//! A bitmap of a window: one bit for each packet received out of order.

/// Bits by number. All set bits lie within a range that moves upwards and is never longer than the one given.
#[derive(Clone, Debug)]
pub(super) struct Bitmap {
    /// A ring, empty until a bit is set. Its length is a power of two and exceeds the range by a word, so
    /// that a word read from anywhere in the range does not wrap to the beginning of the range.
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    pub(super) const fn new(range: usize) -> Self {
        let len = (range / WORD + 2).next_power_of_two();
        Self { words: Vec::new(), len }
    }

    pub(super) fn set(&mut self, number: u64) {
        if self.words.is_empty() {
            self.words.resize(self.len, 0);
        }
        let place = self.place(number);
        self.words[place] |= 1 << (number % WORD as u64);
    }

    pub(super) fn clear(&mut self, number: u64) {
        let place = self.place(number);
        if let Some(word) = self.words.get_mut(place) {
            *word &= !(1 << (number % WORD as u64));
        }
    }

    /// The bits of 64 numbers from `first` on, the first as the lowest.
    pub(super) fn word(&self, first: u64) -> u64 {
        let place = self.place(first);
        let Some(low) = self.words.get(place) else { return 0 };
        match first % WORD as u64 {
            0 => *low,
            shift => low >> shift | self.words[(place + 1) % self.len] << (WORD as u64 - shift),
        }
    }

    const fn place(&self, number: u64) -> usize {
        (number / WORD as u64) as usize & (self.len - 1)
    }

    pub(super) fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }
}

const WORD: usize = u64::BITS as usize;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn words_hold_the_bits_of_a_moving_range() {
        for range in [1, 63, 64, 65, 1024, 8192] {
            let (mut bits, mut model) = (Bitmap::new(range), BTreeSet::new());
            assert_eq!(bits.word(5), 0);
            let mut random = 1_u64;
            for first in (1 << 40)..(1 << 40) + 3 * range as u64 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let number = first + (random >> 33) % range as u64;
                bits.set(number);
                model.insert(number);
                let at = first + (random >> 20) % range as u64;
                let expected = (0..64).filter(|k| model.contains(&(at + k))).fold(0, |word, k| word | 1 << k);
                assert_eq!(bits.word(at), expected, "{range} numbers from {first}, at {at}");
                assert_eq!(bits.count(), model.len());
                bits.clear(first);
                model.remove(&first);
            }
        }
    }
}
