//! Answers of native methods that receive into an array.

use std::cell::Cell;

use mpjdev_engine::Status;

use crate::boundary::{Env, NativeStatus};
use crate::comm::envelope;

/// Size of a message and number of elements in one number.
#[inline(always)]
fn detail(status: &Status, count: usize) -> i64 {
    (status.size as i64) << 32 | count as i64
}

/// Makes the answer of a receive from its status and its number of elements.
pub(super) trait Reply: Copy {
    fn reply(self, env: &mut Env, status: &Status, count: usize) -> i64;
}

/// Returns the envelope, and the details in an object.
#[derive(Clone, Copy)]
pub(super) struct WithEnvelope(pub(super) NativeStatus);

impl Reply for WithEnvelope {
    #[inline(always)]
    fn reply(self, env: &mut Env, status: &Status, count: usize) -> i64 {
        self.0.set(env, detail(status, count));
        envelope(status)
    }
}

/// Returns the envelope, and stores the details.
#[derive(Clone, Copy)]
pub(super) struct Both<'a>(pub(super) &'a Cell<i64>);

impl Reply for Both<'_> {
    fn reply(self, _: &mut Env, status: &Status, count: usize) -> i64 {
        self.0.set(detail(status, count));
        envelope(status)
    }
}

/// Returns the details.
#[derive(Clone, Copy)]
pub(super) struct Detail;

impl Reply for Detail {
    #[inline(always)]
    fn reply(self, _: &mut Env, status: &Status, count: usize) -> i64 {
        detail(status, count)
    }
}

#[cfg(test)]
mod tests {
    use mpjdev_buffer::{SectionHeader, Type, layout, sole_section};

    use super::*;
    use crate::comm::CONSTANTS;

    fn detail_of(size: usize, count: usize) -> i64 {
        detail(&Status { source: 0, tag: 0, size, first: None }, count)
    }

    #[test]
    fn size_and_count_of_the_longest_messages_fit_one_number() {
        for element in Type::ALL.into_iter().filter(|element| *element != Type::Object) {
            let most = (layout::CAPACITY_MAX - layout::SECTION_HEADER_LEN) / element.size();
            for count in [0, 1, 1 << 27, (1 << 28) - 1, 1 << 28, (1 << 28) + 1, most - 1, most] {
                let Ok(size) = sole_section::primary_len(SectionHeader { element, count }) else {
                    assert!(count > most, "{element:?} {count}");
                    continue;
                };
                let detail = detail_of(size, count);
                assert_eq!(
                    (detail >> 32, i64::from(detail as i32)),
                    (size as i64, count as i64),
                    "{element:?}"
                );
            }
        }
    }

    #[test]
    fn size_and_count_never_equal_a_reserved_answer() {
        let largest = detail_of(i32::MAX as usize, i32::MAX as usize);
        assert_eq!((largest >> 32, largest as i32), (i64::from(i32::MAX), i32::MAX));
        let reserved = CONSTANTS.iter().filter(|(name, _)| ["PENDING", "SENT"].contains(name));
        assert!(detail_of(0, 0) >= 0 && largest > 0 && reserved.clone().count() == 2);
        assert!(reserved.into_iter().all(|(_, answer)| *answer < 0));
    }
}
