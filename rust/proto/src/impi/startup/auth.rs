//! Methods of authentication (IMPI 3.2, 5.2).

use std::fmt;

use super::layout::{AUTH_KEY, AUTH_NONE};

/// The key of a job. It is never printed.
#[derive(Clone, Copy)]
pub struct Key(pub u64);

impl Key {
    /// Whether the keys are equal, in constant time.
    #[must_use]
    pub fn is(self, other: Key) -> bool {
        let pairs = self.0.to_be_bytes().into_iter().zip(other.0.to_be_bytes());
        // Prevents the compiler from stopping at the first difference.
        let different = pairs.fold(0, |different, (a, b)| std::hint::black_box(different | (a ^ b)));
        different == 0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The methods of authentication that the user has enabled (IMPI 5.2).
#[derive(Clone, Copy, Debug, Default)]
pub struct Auth {
    /// No authentication at all.
    pub none: bool,
    /// A key, sent in clear.
    pub key: Option<Key>,
}

impl Auth {
    /// Whether there is no method; a client without one must not send anything (IMPI 5.2).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mask() == 0
    }

    /// auth_mask: a bit for each method.
    #[must_use]
    pub fn mask(&self) -> u32 {
        u32::from(self.none) << AUTH_NONE | u32::from(self.key.is_some()) << AUTH_KEY
    }

    /// The number of the strongest method in common with an offered mask: the server's choice (IMPI 5.2).
    #[must_use]
    pub fn strongest(&self, offered_mask: u32) -> Option<i32> {
        [AUTH_KEY, AUTH_NONE].into_iter().find(|method| self.mask() & offered_mask & (1 << method) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_equals_itself_only_and_is_not_printed() {
        let key = Key(0x0123_4567_89ab_cdef);
        assert!(key.is(Key(0x0123_4567_89ab_cdef)));
        (0..64).for_each(|bit| assert!(!key.is(Key(key.0 ^ 1 << bit)), "bit {bit}"));
        assert_eq!(
            format!("{:?}", Auth { none: true, key: Some(key) }),
            "Auth { none: true, key: Some(Key(..)) }"
        );
    }

    /// Proves the choice for all sets of methods at both ends (IMPI 5.2).
    #[test]
    fn strongest_common_method_is_chosen() {
        let set = |mask: u32| Auth { none: mask & 1 != 0, key: (mask & 2 != 0).then_some(Key(5)) };
        let chosen = |own: u32| [0, 1, 2, 3, 0xffff_fffc].map(|offered| set(own).strongest(offered));
        assert_eq!(chosen(0), [None; 5]);
        assert_eq!(chosen(1), [None, Some(0), None, Some(0), None]);
        assert_eq!(chosen(2), [None, None, Some(1), Some(1), None]);
        assert_eq!(chosen(3), [None, Some(0), Some(1), Some(1), None]);
        assert!((0..4).all(|mask| set(mask).mask() == mask));
    }
}
