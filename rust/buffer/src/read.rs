//! The read buffer: sections of a received message, in order; the reader makes right.
//!
//! A section is read in two steps: [`ReadBuffer::stage`] checks it and returns its data,
//! [`ReadBuffer::commit`] moves past it. A failure in between leaves the position unchanged. Messages are not
//! trusted: each header word is copied once, checked, and then used.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::element::Element;
use crate::encoding::Encoding;
use crate::error::{BufferError, Damage};
use crate::header::SectionHeader;
use crate::layout::{PRIMARY_HEADER_LEN, SECTION_HEADER_LEN};
use crate::message::{Message, check_capacity};
use crate::octets::{Octets, load_word};
use crate::patch::{Patch, check_indices};
use crate::slab::{Slab, SlabSource};
use crate::types::Type;

/// A buffer that receives messages and reads them. Not shared between threads.
#[derive(Debug)]
pub struct ReadBuffer {
    source: Arc<dyn SlabSource>,
    nominal: usize,
    capacity: usize,
    message: Option<Message>,
    /// Octets of primary payload before the next section.
    at: usize,
    sections_read: usize,
    /// The section that was staged and that `commit` moves past.
    staged: Option<SectionHeader>,
    /// The session of the last receive.
    session: u32,
}

impl ReadBuffer {
    /// An empty buffer for messages of up to `capacity` octets of primary payload.
    ///
    /// # Errors
    /// A capacity that is negative or above the largest one.
    pub fn new(source: Arc<dyn SlabSource>, capacity: i64) -> Result<Self, BufferError> {
        let capacity = check_capacity(capacity)?;
        Ok(ReadBuffer {
            source,
            nominal: capacity,
            capacity,
            message: None,
            at: 0,
            sections_read: 0,
            staged: None,
            session: 0,
        })
    }

    /// The largest primary payload in octets.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The message in this buffer; `None` while it is empty.
    #[inline]
    pub fn message(&self) -> Option<&Message> {
        self.message.as_ref()
    }

    /// Byte order of the message; that of this machine without a message.
    #[inline]
    pub fn encoding(&self) -> Encoding {
        self.message.as_ref().map_or(Encoding::NATIVE, Message::encoding)
    }

    /// Empties the buffer and drops the message.
    #[inline]
    pub fn clear(&mut self) {
        self.message = None;
        self.reset();
    }

    /// Raises the capacity to at least `capacity` until [`restore_capacity`](Self::restore_capacity). The
    /// contents are discarded in any case (S).
    ///
    /// # Errors
    /// A capacity that is negative or above the largest one; then nothing is discarded.
    pub fn ensure_capacity(&mut self, capacity: i64) -> Result<(), BufferError> {
        self.capacity = self.capacity.max(check_capacity(capacity)?);
        self.clear();
        Ok(())
    }

    /// Restores the initial capacity; the contents are discarded (S).
    pub fn restore_capacity(&mut self) {
        self.capacity = self.nominal;
        self.clear();
    }

    /// Empties the buffer for a receive; returns its slab if it is the only reference.
    #[inline]
    pub fn take_spare(&mut self) -> Option<Slab> {
        self.reset();
        self.message.take().map(|m| m.primary).filter(Slab::is_exclusive)
    }

    /// As [`take_spare`](Self::take_spare), but returns no memory of another session.
    #[inline]
    pub fn take_spare_of(&mut self, session: u32) -> Option<Slab> {
        let is_same = std::mem::replace(&mut self.session, session) == session;
        self.take_spare().filter(|_| is_same)
    }

    /// Empties the buffer for a receive and returns its message slot. The slot has an exclusive slab of this
    /// session to [receive into](Message::receive), or `None`. The receive may also store another message
    /// there.
    #[inline]
    pub fn recv_target(&mut self, session: u32) -> &mut Option<Message> {
        self.reset();
        let is_same = std::mem::replace(&mut self.session, session) == session;
        if self.message.as_ref().is_some_and(|message| !is_same || !message.primary.is_exclusive()) {
            self.message = None;
        }
        &mut self.message
    }

    /// Stores a received message; reading begins at its first section.
    #[inline]
    pub fn adopt(&mut self, message: Message) {
        self.message = Some(message);
        self.reset();
    }

    /// Stores a copy of the octets of a logical message.
    ///
    /// # Errors
    /// A damaged message; a primary payload larger than the capacity; no memory. Then the buffer is
    /// unchanged.
    pub fn load(&mut self, octets: &[u8]) -> Result<(), BufferError> {
        let message = Message::from_logical(&*self.source, self.capacity, octets)?;
        self.adopt(message);
        Ok(())
    }

    /// Moves to the first section.
    #[inline]
    pub fn reset(&mut self) {
        self.at = 0;
        self.sections_read = 0;
        self.staged = None;
    }

    /// Type and count of the next section without reading it; `None` after the last one.
    ///
    /// # Errors
    /// A damaged section header.
    #[inline]
    pub fn peek(&self) -> Result<Option<SectionHeader>, BufferError> {
        match &self.message {
            Some(m) => section_at(m, self.at),
            None => Ok(None),
        }
    }

    /// Number of sections of the whole message.
    ///
    /// # Errors
    /// A damaged section header anywhere in the message.
    pub fn section_count(&self) -> Result<usize, BufferError> {
        let Some(m) = &self.message else { return Ok(0) };
        let (mut at, mut n) = (0, 0);
        while let Some(header) = section_at(m, at)? {
            at += SECTION_HEADER_LEN + header.padded_len();
            n += 1;
        }
        Ok(n)
    }

    /// Number of sections read so far.
    pub fn sections_read(&self) -> usize {
        self.sections_read
    }

    /// Reads the next section, which must hold exactly `count` elements of this type: `take` gets its data
    /// and their encoding.
    ///
    /// # Errors
    /// No further section; another type; another count; a damaged section header; an error of `take`. Then
    /// the position is unchanged.
    #[inline(always)]
    pub fn section<E: From<BufferError>>(
        &mut self,
        element: Type,
        count: usize,
        take: impl FnOnce(Octets<'_>, Encoding) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(message) = &self.message else { return Err(self.end(element).into()) };
        let words = message.primary.words();
        let header = self.admit(words, message, element, count)?;
        let at = PRIMARY_HEADER_LEN + self.at + SECTION_HEADER_LEN;
        take(Octets::new(words, at, header.data_len()), message.encoding)?;
        self.staged = None;
        self.pass(header);
        Ok(())
    }

    /// Prepares the next section, which must hold exactly `count` elements of this type; returns its data.
    ///
    /// # Errors
    /// As for [`section`](Self::section).
    pub fn stage(&mut self, element: Type, count: usize) -> Result<Octets<'_>, BufferError> {
        let Some(message) = &self.message else { return Err(self.end(element)) };
        let header = self.admit(message.primary.words(), message, element, count)?;
        self.staged = Some(header);
        Ok(self.payload(self.at + SECTION_HEADER_LEN, header.data_len()))
    }

    /// Checks the type and count of the next section; returns its header.
    #[inline(always)]
    fn admit(
        &self,
        words: &[AtomicU64],
        message: &Message,
        element: Type,
        count: usize,
    ) -> Result<SectionHeader, BufferError> {
        let Some(header) = section_in(words, message, self.at)? else { return Err(self.end(element)) };
        if header.element != element {
            return Err(self.other_type(element, header.element, self.sections_read));
        }
        if header.count != count {
            return Err(BufferError::SizeMismatch {
                wanted: count as u64,
                found: header.count as u64,
                section: self.sections_read,
            });
        }
        Ok(header)
    }

    /// Moves past a section.
    #[inline(always)]
    fn pass(&mut self, header: SectionHeader) {
        self.at += SECTION_HEADER_LEN + header.padded_len();
        self.sections_read += 1;
    }

    /// Moves past the staged section, if there is one.
    pub fn commit(&mut self) {
        if let Some(header) = self.staged.take() {
            self.pass(header);
        }
    }

    /// Reads the next section into all of `dest`.
    ///
    /// # Errors
    /// As for [`stage`](Self::stage); `dest` is as it was.
    pub fn read<T: Element>(&mut self, dest: &mut [T]) -> Result<(), BufferError> {
        self.section(T::TYPE, dest.len(), |octets, encoding| {
            octets.get_slice(encoding, dest);
            Ok(())
        })
    }

    /// Reads the next section into the elements `dest[base + indices[k]]`.
    ///
    /// # Errors
    /// An index outside the array; as for [`stage`](Self::stage); `dest` is as it was.
    pub fn scatter<T: Element>(
        &mut self,
        dest: &mut [T],
        base: i64,
        indices: &[i32],
    ) -> Result<(), BufferError> {
        check_indices(indices, base, dest.len(), 0)?;
        let mut slots = indices.iter().map(|&i| (i64::from(i) + base) as usize);
        self.section(T::TYPE, indices.len(), |octets, encoding| {
            octets.get(encoding, |value| {
                if let Some(slot) = slots.next() {
                    dest[slot] = value;
                }
            });
            Ok(())
        })
    }

    /// Reads the next section into a strided patch of `dest`.
    ///
    /// # Errors
    /// As for [`stage`](Self::stage); `dest` is as it was. The patch was checked against an array of this
    /// length.
    pub fn str_scatter<T: Element>(&mut self, dest: &mut [T], patch: &Patch) -> Result<(), BufferError> {
        let mut slots = patch
            .runs(usize::MAX)
            .flat_map(|run| (0..run.count).map(move |i| (run.start as i64 + run.stride * i as i64) as usize));
        self.section(T::TYPE, patch.count(), |octets, encoding| {
            octets.get(encoding, |value| {
                if let Some(slot) = slots.next() {
                    dest[slot] = value;
                }
            });
            Ok(())
        })
    }

    #[inline(always)]
    fn payload(&self, payload_offset: usize, len: usize) -> Octets<'_> {
        let words = self.message.as_ref().expect("a section was found").primary.words();
        Octets::new(words, PRIMARY_HEADER_LEN + payload_offset, len)
    }

    #[cold]
    fn end(&self, wanted: Type) -> BufferError {
        BufferError::EndOfSections { wanted, sections: self.sections_read }
    }

    #[cold]
    fn other_type(&self, wanted: Type, found: Type, section: usize) -> BufferError {
        BufferError::TypeMismatch { wanted, found, section }
    }
}

/// The header of the section that starts `at` octets into the primary payload; `None` at its end.
///
/// # Errors
/// A damaged header, or a section that reaches past the primary payload.
pub fn section_at(message: &Message, at: usize) -> Result<Option<SectionHeader>, BufferError> {
    section_in(message.first_words(), message, at)
}

/// As [`section_at`], with the message's words as an argument.
#[inline(always)]
fn section_in(
    words: &[AtomicU64],
    message: &Message,
    at: usize,
) -> Result<Option<SectionHeader>, BufferError> {
    let left = message.primary_len - at;
    if left == 0 {
        return Ok(None);
    }
    let offset = PRIMARY_HEADER_LEN + at;
    let header =
        SectionHeader::parse(load_word(words, offset), message.encoding).map_err(|d| d.at(offset))?;
    let needed = SECTION_HEADER_LEN + header.padded_len();
    if needed > left {
        return Err(Damage::SectionLen { needed: needed as u64, available: left as u64 }.at(offset));
    }
    Ok(Some(header))
}
