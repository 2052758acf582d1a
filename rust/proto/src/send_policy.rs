//! Lengths of physical messages at the receiver, and the pairing numbers of split messages.
//!
//! A sender decides between one and two physical messages with [`mpjdev_buffer::layout::is_appended`]. All
//! lengths are octets. `p` is the length of the primary payload, `s` that of the secondary payload (mpjdev
//! 3.1, 4.1).

mod pairs;

pub use pairs::{NoFreePair, Pairs};

use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use thiserror::Error;

/// Octets of the two headers: the shortest message (mpjdev 3.1, D49).
pub const HEADERS_LEN: usize = MESSAGE_OVERHEAD;

/// The lengths and the pairing number in the headers of a first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// p, from octets 4 to 7 of the primary header.
    pub primary_len: usize,
    /// s, from octets 4 to 7 of the secondary header.
    pub secondary_len: usize,
    /// The pairing number, from octets 0 to 3 of the secondary header, in the message's encoding; 0 from a
    /// foreign sender.
    pub pair_number: u32,
}

/// The contents of a first physical message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The message is complete.
    Complete {
        /// Octets of the secondary payload that follow the secondary header; 0 when there is none.
        secondary_len: usize,
    },
    /// A second message must be received.
    NeedsSecond {
        /// The exact length of the second message, s.
        len: usize,
        /// The envelope of the second message.
        pair: Pair,
    },
}

/// The envelope of the second half of a split message, always from the first half's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pair {
    /// On the shadow context ([`crate::context::shadow`]), with the tag of this number (>= 1), see
    /// [`Pairs::tag`].
    Numbered(u32),
    /// From a sender without pairing numbers: on the same context, with the first half's tag (mpjdev 4.4).
    Foreign,
}

/// Lengths that contradict each other or the receiver's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LengthError {
    /// The first message exceeds the receive buffer.
    #[error("message truncated: it needs a capacity of {needed}, the receive buffer has {capacity}")]
    Truncated {
        /// The capacity that the message needs: its physical length without the headers.
        needed: usize,
        /// The receive buffer's declared capacity.
        capacity: usize,
    },
    /// The first message is shorter than its headers.
    #[error("message of {first_len} octets is shorter than its headers, 16 octets")]
    NoHeaders {
        /// The physical length.
        first_len: usize,
    },
    /// The first message ends before the end of its secondary header.
    #[error(
        "message of {first_len} octets is too short for its primary payload of {primary_len} and 16 of \
         headers"
    )]
    PrimaryCut {
        /// The physical length.
        first_len: usize,
        /// p of the primary header.
        primary_len: usize,
    },
    /// The first message ends within the secondary payload: it is neither complete nor a first half.
    #[error(
        "message of {first_len} octets has part of its secondary payload: 16 of headers and a primary \
         payload of {primary_len}, then {secondary_len}"
    )]
    SecondaryCut {
        /// The physical length.
        first_len: usize,
        /// p of the primary header.
        primary_len: usize,
        /// s of the secondary header.
        secondary_len: usize,
    },
    /// The first message has octets after its secondary payload.
    #[error(
        "message of {first_len} octets is longer than its headers say: 16, a primary payload of \
         {primary_len} and a secondary payload of {secondary_len}"
    )]
    Overlong {
        /// The physical length.
        first_len: usize,
        /// p of the primary header.
        primary_len: usize,
        /// s of the secondary header.
        secondary_len: usize,
    },
    /// The second message has another length than the first one states.
    #[error("second message of {actual} octets, the first one announced {expected}")]
    SecondLength {
        /// s of the secondary header.
        expected: usize,
        /// The second message's physical length.
        actual: usize,
    },
}

/// Checks the length of a first message before its headers are read.
///
/// Truncation is decided first, by lengths only, and so equally on every transport: a message of more than
/// `capacity` + 16 octets is too long, whatever its headers.
///
/// # Errors
/// [`LengthError::Truncated`], [`LengthError::NoHeaders`]. The receive fails, and the message is consumed.
#[inline]
pub fn check_first(first_len: usize, capacity: usize) -> Result<(), LengthError> {
    let needed = first_len.saturating_sub(HEADERS_LEN);
    if needed > capacity {
        return Err(LengthError::Truncated { needed, capacity });
    }
    if first_len < HEADERS_LEN {
        return Err(LengthError::NoHeaders { first_len });
    }
    Ok(())
}

/// Checks the length of a second message before memory is allocated for it.
///
/// # Errors
/// [`LengthError::SecondLength`]. The receive fails, and both messages are consumed.
#[inline]
pub fn check_second(expected: usize, actual: usize) -> Result<(), LengthError> {
    if expected == actual { Ok(()) } else { Err(LengthError::SecondLength { expected, actual }) }
}

impl Arrival {
    /// Checks a first message: its physical length against its headers and the receive buffer's declared
    /// capacity.
    ///
    /// Accepts both forms for any s, since a receiver does not know the sender's capacity (mpjdev 4.2, D49).
    /// It begins with [`check_first`], which a caller calls before it reads the headers.
    ///
    /// # Errors
    /// Any [`LengthError`] but [`LengthError::SecondLength`]. The receive fails; the message is consumed, and
    /// a second half that it would need, too.
    #[inline]
    pub fn judge(first_len: usize, headers: Headers, capacity: usize) -> Result<Self, LengthError> {
        check_first(first_len, capacity)?;
        let Headers { primary_len, secondary_len, .. } = headers;
        let after_headers = first_len - HEADERS_LEN;
        let Some(inline_len) = after_headers.checked_sub(primary_len) else {
            return Err(LengthError::PrimaryCut { first_len, primary_len });
        };
        if inline_len == secondary_len {
            return Ok(Self::Complete { secondary_len });
        }
        if inline_len == 0 {
            return Ok(headers.needs_second());
        }
        Err(if inline_len < secondary_len {
            LengthError::SecondaryCut { first_len, primary_len, secondary_len }
        } else {
            LengthError::Overlong { first_len, primary_len, secondary_len }
        })
    }

    /// Finds the second half of a truncated message, which is in flight and must be consumed.
    ///
    /// For a first message that [`check_first`] refuses as truncated. `None` if there is no second half, or
    /// if the headers contradict the length.
    #[must_use]
    pub fn second_of_truncated(first_len: usize, headers: Headers) -> Option<(usize, Pair)> {
        match Self::judge(first_len, headers, usize::MAX) {
            Ok(Self::NeedsSecond { len, pair }) => Some((len, pair)),
            Ok(Self::Complete { .. }) | Err(_) => None,
        }
    }
}

impl Headers {
    #[inline]
    fn needs_second(self) -> Arrival {
        Arrival::NeedsSecond {
            len: self.secondary_len,
            pair: match self.pair_number {
                0 => Pair::Foreign,
                number => Pair::Numbered(number),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpjdev_buffer::layout::is_appended;
    use proptest::prelude::*;

    const EXAMPLE: Headers = Headers { primary_len: 48, secondary_len: 12, pair_number: 9 };

    /// Proves the result for every physical length of the worked example, errors with numbers.
    #[test]
    fn policy_of_every_length_is_that_of_the_worked_example() {
        for first_len in 0..=100 {
            let expected = match first_len {
                0..16 => Err(LengthError::NoHeaders { first_len }),
                16..64 => Err(LengthError::PrimaryCut { first_len, primary_len: 48 }),
                64 => Ok(Arrival::NeedsSecond { len: 12, pair: Pair::Numbered(9) }),
                65..76 => Err(LengthError::SecondaryCut { first_len, primary_len: 48, secondary_len: 12 }),
                76 => Ok(Arrival::Complete { secondary_len: 12 }),
                _ => Err(LengthError::Overlong { first_len, primary_len: 48, secondary_len: 12 }),
            };
            assert_eq!(Arrival::judge(first_len, EXAMPLE, 1000), expected);
        }
    }

    /// Proves that truncation is decided first, at exactly one octet above capacity + 16, whatever the
    /// headers.
    #[test]
    fn truncation_is_reported_before_other_errors() {
        let absurd = Headers { primary_len: usize::MAX, secondary_len: usize::MAX, pair_number: 0 };
        for headers in [EXAMPLE, absurd] {
            assert_eq!(
                Arrival::judge(65, headers, 48),
                Err(LengthError::Truncated { needed: 49, capacity: 48 })
            );
            assert!(!matches!(Arrival::judge(64, headers, 48), Err(LengthError::Truncated { .. })));
        }
        assert_eq!(check_first(16, 0), Ok(()));
        assert_eq!(check_first(15, 0), Err(LengthError::NoHeaders { first_len: 15 }));
        assert_eq!(check_first(17, 0), Err(LengthError::Truncated { needed: 1, capacity: 0 }));
    }

    /// Proves that pairing number 0 means a foreign sender, whose second half has the same context and tag.
    #[test]
    fn pair_number_zero_is_a_foreign_sender() {
        let foreign = Headers { pair_number: 0, ..EXAMPLE };
        assert_eq!(
            Arrival::judge(64, foreign, 48),
            Ok(Arrival::NeedsSecond { len: 12, pair: Pair::Foreign })
        );
    }

    /// Proves that the pairing number of a complete message is ignored.
    #[test]
    fn pair_number_of_a_complete_message_is_ignored() {
        assert_eq!(Arrival::judge(76, EXAMPLE, 60), Ok(Arrival::Complete { secondary_len: 12 }));
        let primary_only = Headers { secondary_len: 0, ..EXAMPLE };
        assert_eq!(Arrival::judge(64, primary_only, 48), Ok(Arrival::Complete { secondary_len: 0 }));
    }

    /// Proves that a truncated first half still gives its second half, so that both can be consumed.
    #[test]
    fn truncated_message_has_the_length_of_its_second_half() {
        assert_eq!(Arrival::second_of_truncated(64, EXAMPLE), Some((12, Pair::Numbered(9))));
        assert_eq!(Arrival::second_of_truncated(76, EXAMPLE), None);
        assert_eq!(Arrival::second_of_truncated(65, EXAMPLE), None);
    }

    /// Proves that a second message of another length is refused.
    #[test]
    fn second_message_of_another_length_is_refused() {
        assert_eq!(check_second(12, 12), Ok(()));
        for actual in [0, 11, 13, usize::MAX] {
            assert_eq!(check_second(12, actual), Err(LengthError::SecondLength { expected: 12, actual }));
        }
    }

    /// Proves that the error texts have the numbers.
    #[test]
    fn error_texts_have_the_numbers() {
        assert_eq!(
            check_first(117, 100).unwrap_err().to_string(),
            "message truncated: it needs a capacity of 101, the receive buffer has 100"
        );
    }

    proptest! {
        /// Proves that a receiver with the sender's capacity accepts every split message.
        #[test]
        fn receiver_agrees_with_sender(
            units in 0..1000usize,
            s in 0..3000usize,
            spare in 0..3000usize,
            pair_number in any::<u32>(),
        ) {
            let p = 8 * units;
            let capacity = p + spare;
            let headers = Headers { primary_len: p, secondary_len: s, pair_number };
            if s == 0 || is_appended(p, s, capacity) {
                let complete = Ok(Arrival::Complete { secondary_len: s });
                prop_assert_eq!(Arrival::judge(16 + p + s, headers, capacity), complete);
            } else {
                let Ok(Arrival::NeedsSecond { len, pair }) = Arrival::judge(16 + p, headers, capacity) else {
                    return Err(TestCaseError::fail("no second message expected"));
                };
                prop_assert_eq!(check_second(len, s), Ok(()));
                prop_assert_eq!(pair == Pair::Foreign, pair_number == 0);
            }
        }

        /// Proves that no lengths cause overflow or panic, and that a message accepted as complete or first
        /// half has exactly the length of its headers.
        #[test]
        fn any_numbers_are_judged_exactly(
            first_len in prop_oneof![0..200usize, any::<usize>()],
            primary_len in prop_oneof![0..200usize, any::<usize>()],
            secondary_len in prop_oneof![0..200usize, any::<usize>()],
            capacity in prop_oneof![0..200usize, any::<usize>()],
        ) {
            let headers = Headers { primary_len, secondary_len, pair_number: 1 };
            let primary_end = 16 + primary_len as u128;
            match Arrival::judge(first_len, headers, capacity) {
                Ok(Arrival::Complete { .. }) => {
                    prop_assert_eq!(first_len as u128, primary_end + secondary_len as u128);
                }
                Ok(Arrival::NeedsSecond { len, .. }) => {
                    prop_assert_eq!(first_len as u128, primary_end);
                    prop_assert_eq!(len, secondary_len);
                    prop_assert!(len > 0);
                }
                Err(_) => {}
            }
        }
    }
}
