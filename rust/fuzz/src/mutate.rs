//! Random mutations of inputs, the same for the same seed.

use oorandom::Rand64;

/// Octets and 32-bit numbers at the limits of parsers.
const NUMBERS: [i32; 14] = [0, 1, 2, 7, 8, 9, 16, 255, 256, i32::MAX, i32::MAX - 7, i32::MIN, -1, -8];

/// A seeded source of mutations.
#[derive(Debug)]
pub struct Mutator(Rand64);

impl Mutator {
    /// A source for this seed.
    pub fn new(seed: u64) -> Self {
        Mutator(Rand64::new(seed.into()))
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.rand_range(0..bound as u64) as usize
    }

    /// An input with one to four changes of `input`, into which parts of `other` may be spliced.
    pub fn mutate(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut octets = input.to_vec();
        for _ in 0..1 + self.below(4) {
            self.change(&mut octets, other);
        }
        octets
    }

    fn change(&mut self, octets: &mut Vec<u8>, other: &[u8]) {
        let len = octets.len();
        if len == 0 {
            octets.push(self.below(256) as u8);
            return;
        }
        let at = self.below(len);
        match self.below(8) {
            0 => octets[at] ^= 1 << self.below(8),
            1 => octets[at] = self.below(256) as u8,
            2 => octets[at] = self.below(10) as u8,
            3 => octets.truncate(at),
            4 => octets.insert(at, self.below(256) as u8),
            5 => drop(octets.remove(at)),
            6 => self.number(octets),
            _ => {
                let from = self.below(other.len() + 1);
                octets.truncate(at / 8 * 8);
                octets.extend(&other[from / 8 * 8..]);
            }
        }
    }

    /// Writes a number at a limit of parsers into a field of four octets.
    fn number(&mut self, octets: &mut [u8]) {
        let at = self.below(octets.len()) / 4 * 4;
        let number = NUMBERS[self.below(NUMBERS.len())];
        let field = if self.below(2) == 0 { number.to_be_bytes() } else { number.to_le_bytes() };
        let n = field.len().min(octets.len() - at);
        octets[at..at + n].copy_from_slice(&field[..n]);
    }
}
