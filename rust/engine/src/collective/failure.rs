//! The message of a rank that has no vector, because the operation has failed.

use mpjdev_buffer::{Encoding, Message, Octets, SectionHeader, Type};

/// Octets of primary payload of such a message.
pub(super) const FAILURE_MAX: usize = 24;

/// The first of its two numbers. The second is the world rank where the operation has failed.
const FAILED: i64 = 0x6d70_6a66;

/// The section of the message. Its type is one that the operation does not send.
pub(super) fn failure_section(element: Type) -> SectionHeader {
    let element = if element == Type::Long { Type::Int } else { Type::Long };
    SectionHeader { element, count: 2 }
}

pub(super) fn put_failure(place: Octets<'_>, element: Type, rank: u32) {
    match element {
        Type::Int => place.put_slice(Encoding::NATIVE, &[FAILED as i32, rank.cast_signed()]),
        _ => place.put_slice(Encoding::NATIVE, &[FAILED, i64::from(rank)]),
    }
}

/// The world rank at which the operation has failed; `None` if it is another message.
pub(super) fn failure(message: &Message, element: Type) -> Option<u32> {
    let section = failure_section(element);
    let (count, octets) = message.sole_section(section.element, section.count).ok()?;
    let mut numbers = [0_i64; 2];
    match section.element {
        Type::Int => {
            let mut ints = [0_i32; 2];
            octets.get_slice(message.encoding(), &mut ints);
            numbers = ints.map(i64::from);
        }
        _ => octets.get_slice(message.encoding(), &mut numbers),
    }
    (count == 2 && numbers[0] == FAILED).then(|| u32::try_from(numbers[1]).ok())?
}
