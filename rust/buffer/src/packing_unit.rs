//! Packing units: sections in an array of bytes, and messages of them.

use crate::encoding::Encoding;
use crate::error::{BufferError, Damage};
use crate::header::SectionHeader;
use crate::layout::{
    PRIMARY_HEADER_LEN, SECTION_HEADER_LEN, SECTION_ORDER_OCTET, SECTION_ORDERED_OCTET, SECTION_UNIT_OCTET,
};
use crate::message::Message;
use crate::octets::{Octets, load_word, store_word};
use crate::read::section_at;
use crate::types::Type;

/// The header of a section of a packing unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitHeader {
    /// Type and number of its elements.
    pub section: SectionHeader,
    /// Their byte order, and that of the number.
    pub encoding: Encoding,
}

impl UnitHeader {
    /// Reads and checks the eight octets.
    ///
    /// # Errors
    /// An encoding other than 0 or 1, an unknown type code, or a negative count.
    pub fn parse(octets: [u8; 8]) -> Result<UnitHeader, Damage> {
        let encoding = if octets[SECTION_ORDERED_OCTET] == 0 {
            Encoding::NATIVE
        } else {
            let code = octets[SECTION_ORDER_OCTET];
            Encoding::from_code(code).ok_or(Damage::Encoding { code })?
        };
        Ok(UnitHeader { section: SectionHeader::parse(octets, encoding)?, encoding })
    }

    /// The eight octets of this header.
    pub fn emit(self) -> [u8; 8] {
        let mut octets = self.section.emit(self.encoding);
        [octets[SECTION_ORDERED_OCTET], octets[SECTION_ORDER_OCTET]] = order(self.encoding);
        octets
    }
}

/// The octets of a section header that state the byte order.
fn order(encoding: Encoding) -> [u8; 2] {
    [1, encoding.code()]
}

impl Message {
    fn first_header(&self) -> [u8; 8] {
        match self.primary_len {
            0 => [0; 8],
            _ => load_word(self.primary.words(), PRIMARY_HEADER_LEN),
        }
    }

    /// Marks a message of one section of bytes as one of a packing unit.
    pub fn mark_unit(&mut self) {
        let mut header = self.first_header();
        header[SECTION_UNIT_OCTET] = 1;
        store_word(self.primary.words(), PRIMARY_HEADER_LEN, header);
    }

    /// The octets of the only section, whose header states the byte order: a section of a packing unit.
    pub fn unit_section(&mut self) -> Octets<'_> {
        let mut header = self.first_header();
        [header[SECTION_ORDERED_OCTET], header[SECTION_ORDER_OCTET]] = order(self.encoding);
        store_word(self.primary.words(), PRIMARY_HEADER_LEN, header);
        Octets::new(self.primary.words(), PRIMARY_HEADER_LEN, self.primary_len)
    }

    /// Whether this is a message of one section of bytes that are a packing unit.
    #[must_use]
    pub fn is_unit(&self) -> bool {
        self.first_header()[SECTION_UNIT_OCTET] != 0
    }

    /// The packing unit of a message: the bytes of a marked one, otherwise all sections. It has at most
    /// `room` octets.
    ///
    /// # Errors
    /// Objects, more octets; a damaged section header of a marked message.
    pub fn unit(&self, room: usize) -> Result<Octets<'_>, BufferError> {
        if self.secondary_len > 0 || self.is_unit() {
            return Ok(self.sole_section(Type::Byte, room)?.1);
        }
        if self.primary_len > room {
            return Err(BufferError::TooLong { needed: self.primary_len as u64, capacity: room as u64 });
        }
        Ok(Octets::new(self.primary.words(), PRIMARY_HEADER_LEN, self.primary_len))
    }

    /// Octets that the [unit](Self::unit) of a message in the other byte order needs beside its sections: for
    /// each section their offset in the unit, and two octets.
    pub fn unit_orders(&self) -> impl Iterator<Item = (usize, [u8; 2])> {
        let is_foreign = self.encoding != Encoding::NATIVE && !self.is_unit();
        let mut at = if is_foreign { 0 } else { self.primary_len };
        std::iter::from_fn(move || {
            let section = section_at(self, at).ok()??;
            let octets = at + SECTION_ORDERED_OCTET;
            at += SECTION_HEADER_LEN + section.padded_len();
            Some((octets, order(self.encoding)))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::slab::{PlainSource, SlabSource};
    use crate::write::WriteBuffer;

    fn of_octets(section: SectionHeader, octets: &[u8]) -> Message {
        let mut message = Message::from_empty_slab(PlainSource.take(256).expect("memory"));
        let filled = message.write_sole_section(section, |place| {
            place.put_octets(octets);
            Ok::<_, BufferError>(())
        });
        filled.expect("nothing fails");
        message
    }

    fn octets(range: Octets<'_>) -> Vec<u8> {
        let mut octets = vec![0; range.len()];
        range.get_octets(&mut octets);
        octets
    }

    fn two_sections(encoding: Encoding) -> Message {
        let mut buffer = WriteBuffer::new(Arc::new(PlainSource), 64, encoding).expect("memory");
        buffer.write(&[1_i32]).expect("room");
        buffer.write(&[2_i16]).expect("room");
        buffer.finish().expect("memory").clone()
    }

    #[test]
    fn section_of_a_unit_states_its_byte_order() {
        let section = SectionHeader { element: Type::Short, count: 3 };
        let mut message = of_octets(section, &[1, 2, 3, 4, 5, 6]);
        let native = Encoding::NATIVE.code();
        let unit = octets(message.unit_section());
        assert_eq!(
            (unit[0], &unit[1..4], &unit[8..]),
            (2, &[0, 1, native][..], &[1, 2, 3, 4, 5, 6, 0, 0][..])
        );
        for encoding in [Encoding::Big, Encoding::Little] {
            let header = UnitHeader { section, encoding };
            assert_eq!(UnitHeader::parse(header.emit()), Ok(header));
        }
        assert_eq!(
            UnitHeader::parse([4, 0, 0, 0, 0, 0, 0, 0]).map(|header| header.encoding),
            Ok(Encoding::NATIVE)
        );
        assert_eq!(UnitHeader::parse([4, 0, 1, 2, 0, 0, 0, 0]), Err(Damage::Encoding { code: 2 }));
    }

    #[test]
    fn marked_message_is_its_bytes_and_any_other_is_its_sections() {
        let section = SectionHeader { element: Type::Byte, count: 3 };
        let mut message = of_octets(section, &[7, 8, 9]);
        assert_eq!(octets(message.unit(16).expect("room")).len(), 16);
        assert_eq!(message.unit(15).err(), Some(BufferError::TooLong { needed: 16, capacity: 15 }));
        assert!(!message.is_unit());
        message.mark_unit();
        assert!(message.is_unit());
        assert_eq!(octets(message.unit(3).expect("room")), [7, 8, 9]);
        assert_eq!(message.unit(2).err(), Some(BufferError::TooLong { needed: 11, capacity: 10 }));
        assert_eq!(octets(message.sole_section(Type::Byte, 3).expect("one section").1), [7, 8, 9]);
        assert_eq!(octets(two_sections(Encoding::NATIVE).unit(99).expect("room")).len(), 32);
    }

    #[test]
    fn sections_in_the_other_byte_order_need_a_statement() {
        let other = if Encoding::NATIVE == Encoding::Big { Encoding::Little } else { Encoding::Big };
        let orders = |message: Message| message.unit_orders().collect::<Vec<_>>();
        assert_eq!(orders(two_sections(Encoding::NATIVE)), []);
        let octets = [1, other.code()];
        assert_eq!(orders(two_sections(other)), [(2, octets), (18, octets)]);
    }

    #[test]
    fn message_with_objects_is_no_unit() {
        let mut buffer = WriteBuffer::new(Arc::new(PlainSource), 64, Encoding::NATIVE).expect("memory");
        buffer.stage_secondary(5).expect("memory").put_octets(b"graph");
        buffer.grow_secondary(5);
        let message = buffer.finish().expect("memory").clone();
        assert!(matches!(message.unit(99), Err(BufferError::NotSole { secondary: 5, .. })));
    }
}
