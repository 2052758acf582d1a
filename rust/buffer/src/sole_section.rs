//! Messages of exactly one section, written and read without a buffer.

use std::sync::atomic::AtomicU64;

use crate::encoding::Encoding;
use crate::error::BufferError;
use crate::header::{PrimaryHeader, SecondaryHeader, SectionHeader};
use crate::layout::{CAPACITY_MAX, COUNT_MAX, MESSAGE_OVERHEAD, PRIMARY_HEADER_LEN, SECTION_HEADER_LEN};
use crate::message::Message;
use crate::octets::{Octets, load_word, store_word, zero_padding};
use crate::read::section_at;
use crate::types::Type;

/// Octets of primary payload of a message of this section alone.
///
/// # Errors
/// They exceed the largest capacity.
#[inline(always)]
pub fn primary_len(section: SectionHeader) -> Result<usize, BufferError> {
    let len = SECTION_HEADER_LEN + section.padded_len();
    if section.count > COUNT_MAX || len > CAPACITY_MAX {
        return Err(BufferError::Capacity { asked: len as i64, max: CAPACITY_MAX as u64 });
    }
    Ok(len)
}

/// The byte order of the messages written here.
const ORDER: Encoding = Encoding::NATIVE;
/// The offset of the elements.
const DATA: usize = PRIMARY_HEADER_LEN + SECTION_HEADER_LEN;

/// Writes the three headers of a message of this section alone, and its padding.
#[inline(always)]
fn put_headers(words: &[AtomicU64], section: SectionHeader) {
    let primary_len = SECTION_HEADER_LEN + section.padded_len();
    zero_padding(words, DATA + section.data_len());
    store_word(words, 0, PrimaryHeader { encoding: ORDER, primary_len }.emit());
    store_word(words, PRIMARY_HEADER_LEN, section.emit(ORDER));
    let end = SecondaryHeader { secondary_len: 0, pair: 0 };
    store_word(words, PRIMARY_HEADER_LEN + primary_len, end.emit(ORDER));
}

/// Writes a message of this section alone, in the machine's byte order: `fill` stores the elements.
///
/// # Errors
/// An error of `fill`. Then the contents are invalid.
///
/// # Panics
/// There are fewer words than the headers and the [payload](primary_len) need.
#[inline(always)]
pub fn write_words<E>(
    words: &[AtomicU64],
    section: SectionHeader,
    fill: impl FnOnce(Octets<'_>) -> Result<(), E>,
) -> Result<(), E> {
    fill(Octets::new(words, DATA, section.data_len()))?;
    put_headers(words, section);
    Ok(())
}

/// The number and the memory of the elements of a message of `len` octets at the start of these words, if it
/// is what [`write_words`] writes: one section of at most `count_max` elements of this type in the machine's
/// byte order. Each header is read once: the sender may still change the words.
#[inline(always)]
pub fn read_words(
    words: &[AtomicU64],
    len: usize,
    element: Type,
    count_max: usize,
) -> Option<(usize, Octets<'_>)> {
    let primary_len = len.checked_sub(MESSAGE_OVERHEAD).filter(|_| len <= 8 * words.len())?;
    let end = SecondaryHeader { secondary_len: 0, pair: 0 };
    if load_word(words, 0) != (PrimaryHeader { encoding: ORDER, primary_len }).emit()
        || load_word(words, PRIMARY_HEADER_LEN + primary_len) != end.emit(ORDER)
    {
        return None;
    }
    let section = SectionHeader::parse(load_word(words, PRIMARY_HEADER_LEN), ORDER).ok()?;
    let is_it = section.element == element
        && section.count <= count_max
        && primary_len == SECTION_HEADER_LEN + section.padded_len();
    is_it.then(|| (section.count, Octets::new(words, DATA, section.data_len())))
}

impl Message {
    /// Becomes a message of this section alone, in the machine's byte order: `fill` stores the elements. The
    /// slab is exclusive and has room for the headers and the [payload](primary_len).
    ///
    /// # Errors
    /// An error of `fill`. Then the contents are invalid.
    ///
    /// # Panics
    /// The memory is too small.
    #[inline(always)]
    pub fn write_sole_section<E>(
        &mut self,
        section: SectionHeader,
        fill: impl FnOnce(Octets<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        write_words(self.restart_with(section), section, fill)
    }

    /// Becomes a message of this section alone: writes headers and padding. The elements are stored later, in
    /// the memory that [`sole_section`](Self::sole_section) returns.
    ///
    /// # Panics
    /// The memory is too small.
    pub fn write_headers_of(&mut self, section: SectionHeader) {
        put_headers(self.restart_with(section), section);
    }

    /// Sets the lengths to those of this section; returns the words of the message.
    #[inline(always)]
    fn restart_with(&mut self, section: SectionHeader) -> &[AtomicU64] {
        let primary_len = SECTION_HEADER_LEN + section.padded_len();
        self.restart(ORDER, primary_len);
        self.secondary = None;
        self.primary_len = primary_len;
        &self.primary.words()[..(MESSAGE_OVERHEAD + primary_len) / 8]
    }

    /// The number and the memory of the elements of a message of one section, which holds at most `count_max`
    /// elements of this type.
    ///
    /// # Errors
    /// Another number of sections, another type, or more elements; a damaged section header.
    #[inline(always)]
    pub fn sole_section(&self, element: Type, count_max: usize) -> Result<(usize, Octets<'_>), BufferError> {
        let Some(section) = section_at(self, 0)? else { return Err(self.other_content(element)) };
        let is_sole = self.primary_len == SECTION_HEADER_LEN + section.padded_len();
        if section.element != element || !is_sole || self.secondary_len > 0 {
            return Err(self.other_content(element));
        }
        if section.count > count_max {
            let needed = |count| (SECTION_HEADER_LEN + count * element.size()) as u64;
            return Err(BufferError::TooLong { needed: needed(section.count), capacity: needed(count_max) });
        }
        Ok((section.count, Octets::new(self.primary.words(), DATA, section.data_len())))
    }

    /// Checks that nothing follows the section of a message that was read before its end was received.
    ///
    /// # Errors
    /// Objects follow; a damaged secondary header.
    pub fn check_sole_end(&self, element: Type) -> Result<(), BufferError> {
        let at = PRIMARY_HEADER_LEN + self.primary_len;
        let octets = load_word(self.primary.words(), at);
        let header = SecondaryHeader::parse(octets, self.encoding).map_err(|damage| damage.at(at))?;
        match header.secondary_len {
            0 => Ok(()),
            len => Err(BufferError::NotSole { wanted: element, sections: 1, secondary: len as u64 }),
        }
    }

    /// The error for a message that is not one section of this type.
    #[cold]
    fn other_content(&self, wanted: Type) -> BufferError {
        let (mut at, mut sections) = (0, 0);
        let mut first = None;
        loop {
            match section_at(self, at) {
                Ok(Some(section)) => {
                    at += SECTION_HEADER_LEN + section.padded_len();
                    sections += 1;
                    first.get_or_insert(section);
                }
                Ok(None) => break,
                Err(damaged) => return damaged,
            }
        }
        match first {
            Some(first) if sections == 1 && first.element != wanted => {
                BufferError::TypeMismatch { wanted, found: first.element, section: 0 }
            }
            _ => BufferError::NotSole { wanted, sections, secondary: self.secondary_len as u64 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::ReadBuffer;
    use crate::slab::{PlainSource, SlabSource};
    use crate::write::WriteBuffer;
    use std::sync::Arc;

    const ROOM: usize = 256;

    fn of_ints(values: &[i32]) -> Message {
        let mut message = Message::from_empty_slab(PlainSource.take(ROOM).expect("memory"));
        let section = SectionHeader { element: Type::Int, count: values.len() };
        let filled = message.write_sole_section(section, |octets| {
            octets.put(Encoding::NATIVE, values.iter().copied());
            Ok::<_, BufferError>(())
        });
        filled.expect("nothing fails");
        message
    }

    fn ints(message: &Message, count_max: usize) -> Result<Vec<i32>, BufferError> {
        let (count, octets) = message.sole_section(Type::Int, count_max)?;
        let mut values = Vec::new();
        octets.get(message.encoding(), |value: i32| values.push(value));
        assert_eq!(values.len(), count);
        Ok(values)
    }

    fn written(write: impl FnOnce(&mut WriteBuffer)) -> Message {
        let mut buffer = WriteBuffer::new(Arc::new(PlainSource), ROOM as i64, Encoding::Big).expect("memory");
        write(&mut buffer);
        buffer.finish().expect("memory").clone()
    }

    /// The octets of the message.
    fn logical(message: &Message) -> Vec<u8> {
        let mut octets = vec![0; message.logical_len()];
        assert_eq!(message.copy_logical(0, &mut octets), octets.len());
        octets
    }

    #[test]
    fn sole_section_has_the_octets_of_a_buffer() {
        for values in [&[][..], &[7], &[1, -2, 3]] {
            let mut buffer =
                WriteBuffer::new(Arc::new(PlainSource), ROOM as i64, Encoding::NATIVE).expect("memory");
            buffer.write(values).expect("room");
            let message = of_ints(values);
            assert_eq!(logical(&message), logical(buffer.finish().expect("memory")));
            let mut reader = ReadBuffer::new(Arc::new(PlainSource), ROOM as i64).expect("memory");
            reader.adopt(message.clone());
            let mut read = vec![0; values.len()];
            reader.read(&mut read).expect("one section");
            assert_eq!((read.as_slice(), ints(&message, 3)), (values, Ok(values.to_vec())));
        }
    }

    #[test]
    fn headers_and_elements_written_apart_make_the_same_message() {
        let section = SectionHeader { element: Type::Int, count: 3 };
        let mut message = of_ints(&[-1; 9]);
        message.write_headers_of(section);
        message.sole_section(Type::Int, 3).expect("one section").1.put(Encoding::NATIVE, [1, 2, 3]);
        assert_eq!(logical(&message), logical(&of_ints(&[1, 2, 3])));
    }

    #[test]
    fn message_is_written_over_an_earlier_one() {
        let mut message = of_ints(&[1, 2, 3, 4, 5]);
        let section = SectionHeader { element: Type::Byte, count: 3 };
        let filled = message.write_sole_section(section, |octets| {
            octets.put_octets(&[9, 8, 7]);
            Ok::<_, BufferError>(())
        });
        filled.expect("nothing fails");
        assert_eq!(logical(&message)[8 + 8..][..8], [9, 8, 7, 0, 0, 0, 0, 0], "padding is zero");
    }

    #[test]
    fn shorter_section_and_other_byte_order_are_taken() {
        let message = written(|buffer| buffer.write(&[5, 6]).expect("room"));
        assert_eq!(ints(&message, 2), Ok(vec![5, 6]));
        assert_eq!(ints(&message, 100), Ok(vec![5, 6]));
    }

    #[test]
    fn longer_section_is_refused_though_its_padding_fits() {
        let too_long = ints(&of_ints(&[1, 2]), 1);
        assert_eq!(too_long, Err(BufferError::TooLong { needed: 16, capacity: 12 }));
    }

    #[test]
    fn unfit_content_is_refused_by_name() {
        let doubles = written(|buffer| buffer.write(&[1.0]).expect("room"));
        let mismatch = BufferError::TypeMismatch { wanted: Type::Int, found: Type::Double, section: 0 };
        assert_eq!(ints(&doubles, 9), Err(mismatch));
        let not_sole = |sections, secondary| BufferError::NotSole { wanted: Type::Int, sections, secondary };
        assert_eq!(ints(&written(|_| ()), 9), Err(not_sole(0, 0)));
        let two = written(|buffer| {
            buffer.write(&[1]).expect("room");
            buffer.write(&[2]).expect("room");
        });
        assert_eq!(ints(&two, 9), Err(not_sole(2, 0)));
        let objects = written(|buffer| {
            buffer.write(&[1]).expect("room");
            buffer.stage_secondary(5).expect("memory").put_octets(b"graph");
            buffer.grow_secondary(5);
        });
        assert_eq!(ints(&objects, 9), Err(not_sole(1, 5)));
    }

    #[test]
    fn words_are_read_as_one_section_or_not_at_all() {
        let read = |message: &Message, len, count_max| {
            let (count, octets) = read_words(message.first_words(), len, Type::Int, count_max)?;
            let mut values = Vec::new();
            octets.get(Encoding::NATIVE, |value: i32| values.push(value));
            assert_eq!(values.len(), count);
            Some(values)
        };
        for values in [&[][..], &[7], &[1, -2, 3]] {
            let message = of_ints(values);
            let len = message.first_len();
            assert_eq!(read(&message, len, 3).as_deref(), Some(values));
            for other in (0..len).chain(len + 1..2 * ROOM) {
                assert_eq!(read(&message, other, 100), None, "{other} octets");
            }
        }
        assert_eq!(read(&of_ints(&[1, 2, 3]), of_ints(&[1, 2, 3]).first_len(), 2), None, "too long");
        let swapped = match Encoding::NATIVE {
            Encoding::Little => Encoding::Big,
            _ => Encoding::Little,
        };
        for (encoding, write) in [
            (swapped, (|buffer| buffer.write(&[1]).expect("room")) as fn(&mut WriteBuffer)),
            (Encoding::NATIVE, |buffer| buffer.write(&[1.0]).expect("room")),
            (Encoding::NATIVE, |_| ()),
            (Encoding::NATIVE, |buffer| [1, 2].iter().for_each(|x| buffer.write(&[*x]).expect("room"))),
            (Encoding::NATIVE, |buffer| {
                buffer.write(&[1]).expect("room");
                buffer.stage_secondary(8).expect("memory").put_octets(b"a graph!");
                buffer.grow_secondary(8);
            }),
        ] {
            let mut buffer = WriteBuffer::new(Arc::new(PlainSource), ROOM as i64, encoding).expect("memory");
            write(&mut buffer);
            let message = buffer.finish().expect("memory");
            assert_eq!(read(message, message.first_len(), 100), None);
        }
    }

    /// Any change of a header is seen: no octet of it is ignored but the unused ones of the section header.
    #[test]
    fn words_with_a_damaged_header_are_not_read() {
        let message = of_ints(&[1, 2]);
        let (words, len) = (message.first_words(), message.first_len());
        for header in [0, PRIMARY_HEADER_LEN, len - 8] {
            let sound = load_word(words, header);
            for bit in 0..64 {
                let mut damaged = sound;
                damaged[bit / 8] ^= 1 << (bit % 8);
                store_word(words, header, damaged);
                let read = read_words(words, len, Type::Int, 100).map(|(count, _)| count);
                let section = SectionHeader::parse(load_word(words, PRIMARY_HEADER_LEN), ORDER);
                let is_unused = header == PRIMARY_HEADER_LEN
                    && section.is_ok_and(|section| section.element == Type::Int && section.padded_len() == 8);
                assert_eq!(read.is_some(), is_unused, "bit {bit} of the header at {header}");
            }
            store_word(words, header, sound);
        }
    }

    #[test]
    fn section_beyond_the_largest_capacity_is_refused() {
        let most = SectionHeader { element: Type::Long, count: (CAPACITY_MAX - 8) / 8 };
        assert_eq!(primary_len(most), Ok(CAPACITY_MAX));
        let more = SectionHeader { count: most.count + 1, ..most };
        assert!(matches!(primary_len(more), Err(BufferError::Capacity { .. })));
    }
}
