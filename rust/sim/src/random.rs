//! Pseudorandom numbers of the simulated network.

use super::Chance;

/// A seeded generator: SplitMix64 (Steele, Lea, Flood 2014). Every seed is good. Recorded seeds of
/// simulations and impairments depend on its sequence, so no library whose sequence may change replaces it.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number from 0 to `max`.
    pub const fn up_to(&mut self, max: u64) -> u64 {
        if max == 0 {
            return 0;
        }
        ((self.bits() as u128 * (max as u128 + 1)) >> 64) as u64
    }

    /// Whether an event of this chance occurs. The chances 0 and 1 draw no number.
    pub const fn happens(&mut self, chance: Chance) -> bool {
        match chance.billionths() {
            0 => false,
            Chance::ALWAYS_BILLIONTHS => true,
            billionths => self.up_to(Chance::ALWAYS_BILLIONTHS as u64 - 1) < billionths as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that the authors' own program gives for this seed.
    #[test]
    fn generator_is_splitmix64() {
        let mut random = Random::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(expected.map(|_| random.bits()), expected);
    }

    #[test]
    fn numbers_reach_their_bounds_and_stay_within() {
        let mut random = Random::new(7);
        let mut seen = [0; 5];
        for _ in 0..1000 {
            seen[random.up_to(4) as usize] += 1;
        }
        assert!(seen.iter().all(|count| (150..250).contains(count)), "{seen:?}");
        assert_eq!(random.up_to(0), 0);
        assert!((0..100).any(|_| random.up_to(u64::MAX) > u64::MAX / 2));
    }

    #[test]
    fn chance_is_the_stated_frequency() {
        let mut random = Random::new(3);
        let third = Chance::from_billionths(333_333_333).expect("a chance");
        let count = (0..100_000).filter(|_| random.happens(third)).count();
        assert!((33_000..33_700).contains(&count), "{count}");
        assert!(!random.happens(Chance::NEVER) && random.happens(Chance::ALWAYS));
    }
}
