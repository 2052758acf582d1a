//! The write buffer: consecutive sections of the primary payload, and the secondary payload.
//!
//! A section is written in two steps. [`WriteBuffer::stage`] checks it and returns the memory for its data;
//! [`WriteBuffer::commit`] adds the section to the message. A failure in between leaves the buffer unchanged.
//! With separate steps the JNI boundary copies array regions directly to that memory; the methods that take
//! slices do both steps.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::element::Element;
use crate::encoding::Encoding;
use crate::error::BufferError;
use crate::header::{PrimaryHeader, SecondaryHeader, SectionHeader};
use crate::layout::{COUNT_MAX, MESSAGE_OVERHEAD, PRIMARY_HEADER_LEN, SECTION_HEADER_LEN, is_appended};
use crate::message::{Message, Secondary};
use crate::octets::{Octets, copy_words, store_word, zero_padding};
use crate::patch::{Patch, check_indices};
use crate::slab::{Slab, SlabSource};
use crate::types::Type;
use crate::view::{ViewedSlab, ViewedSlabs};

/// Smallest slab for a secondary payload, in octets.
const SECONDARY_MIN: usize = 4096;

/// A message being written. Not shared between threads.
#[derive(Debug)]
pub struct WriteBuffer {
    source: Arc<dyn SlabSource>,
    order: Encoding,
    nominal: usize,
    capacity: usize,
    message: Option<Message>,
    sections: usize,
    /// The section that was staged and that `commit` adds to the message.
    staged: Option<SectionHeader>,
    finished: bool,
    stream: Option<Slab>,
    stream_len: usize,
    stream_foreign: bool,
    /// Octets behind `stream_len` may belong to a message sent before: they must not be overwritten.
    stream_cut: bool,
    viewed: ViewedSlabs,
    /// The session of the last clear.
    session: u32,
}

impl WriteBuffer {
    /// An empty buffer for `capacity` octets of primary payload. Memory is taken at the first write.
    ///
    /// # Errors
    /// A capacity that is negative or above the largest one.
    pub fn new(source: Arc<dyn SlabSource>, capacity: i64, order: Encoding) -> Result<Self, BufferError> {
        let capacity = crate::message::check_capacity(capacity)?;
        Ok(WriteBuffer {
            source,
            order,
            nominal: capacity,
            capacity,
            message: None,
            sections: 0,
            staged: None,
            finished: false,
            stream: None,
            stream_len: 0,
            stream_foreign: false,
            stream_cut: false,
            viewed: ViewedSlabs::default(),
            session: 0,
        })
    }

    /// The largest primary payload in octets.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// p: octets of primary payload written so far, padding included.
    #[inline]
    pub fn primary_len(&self) -> usize {
        self.message.as_ref().map_or(0, |m| m.primary_len)
    }

    /// s: octets of secondary payload written so far.
    pub fn secondary_len(&self) -> usize {
        self.stream_len
    }

    /// Number of sections written so far, without those of an adopted message.
    pub fn section_count(&self) -> usize {
        self.sections
    }

    /// Byte order of the message being written.
    pub fn encoding(&self) -> Encoding {
        self.message.as_ref().map_or(self.order, |m| m.encoding)
    }

    /// Empties the buffer. An exclusive slab is kept for the next message.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.clear_keeping(false, self.session);
    }

    /// As [`clear`](Self::clear), but keeps no memory of another session. With `shared_only` it keeps no
    /// memory that no other process can see, so the next message is written to shared memory.
    #[inline(always)]
    pub fn clear_keeping(&mut self, shared_only: bool, session: u32) {
        self.sections = 0;
        self.staged = None;
        self.finished = false;
        match &mut self.message {
            Some(m)
                if m.secondary.is_none()
                    && self.stream.is_none()
                    && self.session == session
                    && m.primary.is_reusable(1, shared_only)
                    && m.primary.len() >= self.capacity + MESSAGE_OVERHEAD =>
            {
                m.restart(self.order, self.capacity);
            }
            _ => self.clear_slowly(shared_only, session),
        }
    }

    /// Slow path: there is a secondary payload, memory that is not kept, or a view.
    #[cold]
    fn clear_slowly(&mut self, shared_only: bool, session: u32) {
        if std::mem::replace(&mut self.session, session) != session {
            (self.message, self.stream) = (None, None);
            self.viewed.forget(false);
        }
        if shared_only {
            self.viewed.forget(true);
        }
        if let Some(m) = &mut self.message {
            m.secondary = None;
            let is_large_enough = m.primary.len() >= self.capacity + MESSAGE_OVERHEAD;
            if is_large_enough && self.viewed.is_alone(&m.primary, shared_only) {
                m.restart(self.order, self.capacity);
            } else {
                self.message = None;
            }
        }
        self.forget_stream(shared_only);
    }

    /// Raises the capacity to at least `capacity` until [`restore_capacity`](Self::restore_capacity). The
    /// contents are discarded in any case (S).
    ///
    /// # Errors
    /// A capacity that is negative or above the largest one; then nothing is discarded.
    pub fn ensure_capacity(&mut self, capacity: i64) -> Result<(), BufferError> {
        let wanted = crate::message::check_capacity(capacity)?;
        self.capacity = self.capacity.max(wanted);
        self.clear();
        Ok(())
    }

    /// Restores the initial capacity; the contents are discarded, extra memory is released (S).
    pub fn restore_capacity(&mut self) {
        if self.capacity != self.nominal {
            self.capacity = self.nominal;
            self.message = None;
            self.viewed.forget(false);
        }
        self.clear();
    }

    /// Empties the buffer for a receive; returns its slab if it is the only reference.
    pub fn take_spare(&mut self) -> Option<Slab> {
        self.clear();
        self.message.take().map(|m| m.primary).filter(Slab::is_exclusive)
    }

    /// Adopts a received message; later writes continue it, in its byte order.
    pub fn adopt(&mut self, message: Message) {
        self.clear();
        self.stream = None;
        self.stream_len = message.secondary_len;
        self.stream_foreign = message.secondary_len > 0;
        self.message = Some(message);
        self.finished = true;
    }

    /// Writes one section: `fill` stores the data of `count` elements, in the given encoding.
    ///
    /// # Errors
    /// The section does not fit the capacity; no memory; an error of `fill`. Then nothing is written.
    #[inline(always)]
    pub fn section<E: From<BufferError>>(
        &mut self,
        element: Type,
        count: usize,
        fill: impl FnOnce(Octets<'_>, Encoding) -> Result<(), E>,
    ) -> Result<(), E> {
        let header = self.admit(element, count)?;
        self.own()?;
        self.staged = None;
        let Some(message) = &mut self.message else { unreachable!("owned") };
        let at = PRIMARY_HEADER_LEN + message.primary_len;
        let words = message.primary.words();
        fill(Octets::new(words, at + SECTION_HEADER_LEN, header.data_len()), message.encoding)?;
        put_section(words, at, header, message.encoding);
        message.primary_len += SECTION_HEADER_LEN + header.padded_len();
        self.sections += 1;
        Ok(())
    }

    /// Prepares a section; returns the memory for the data of `count` elements.
    ///
    /// # Errors
    /// The section does not fit the capacity; no memory.
    pub fn stage(&mut self, element: Type, count: usize) -> Result<Octets<'_>, BufferError> {
        let header = self.admit(element, count)?;
        self.own()?;
        self.staged = Some(header);
        let at = PRIMARY_HEADER_LEN + self.primary_len() + SECTION_HEADER_LEN;
        Ok(Octets::new(self.words(), at, header.data_len()))
    }

    /// Checks that a section fits; returns its header.
    #[inline(always)]
    fn admit(&self, element: Type, count: usize) -> Result<SectionHeader, BufferError> {
        let header = SectionHeader { element, count };
        // A count above the limit could overflow the product, and fits no capacity.
        let needed = if count > COUNT_MAX { usize::MAX } else { SECTION_HEADER_LEN + header.padded_len() };
        let used = self.primary_len();
        if needed > self.capacity.saturating_sub(used) || count > COUNT_MAX {
            return Err(self.overflow(needed, used));
        }
        Ok(header)
    }

    /// Adds the staged section to the message, if there is one.
    pub fn commit(&mut self) {
        let Some(message) = &mut self.message else { return };
        if let Some(header) = self.staged.take() {
            let at = PRIMARY_HEADER_LEN + message.primary_len;
            put_section(message.primary.words(), at, header, message.encoding);
            message.primary_len += SECTION_HEADER_LEN + header.padded_len();
            self.sections += 1;
        }
    }

    /// Prepares a section whose elements a view writes later; returns the slab and the offset of the first
    /// element. While the returned reference exists only this buffer uses the slab.
    ///
    /// # Errors
    /// As for [`stage`](Self::stage).
    pub fn stage_view(
        &mut self,
        element: Type,
        count: usize,
    ) -> Result<(Arc<ViewedSlab>, usize), BufferError> {
        self.stage(element, count)?;
        let at = PRIMARY_HEADER_LEN + self.primary_len() + SECTION_HEADER_LEN;
        let message = self.message.as_ref().expect("owned since it was staged");
        Ok((self.viewed.add_view(&message.primary), at))
    }

    /// Writes the headers, decides between one and two physical messages, and returns the finished message.
    ///
    /// Cheap if nothing has changed since the last call. The secondary payload is appended to the primary one
    /// if together they are shorter than the capacity (S; D49 permits it).
    ///
    /// # Errors
    /// No memory.
    #[inline]
    pub fn finish(&mut self) -> Result<&Message, BufferError> {
        if !self.finished {
            self.own()?;
            self.staged = None;
            self.seal();
        }
        Ok(self.message.as_ref().expect("a finished buffer has a message"))
    }

    fn seal(&mut self) {
        let message = self.message.as_mut().expect("owned before sealing");
        let (p, s) = (message.primary_len, self.stream_len);
        let primary = PrimaryHeader { encoding: message.encoding, primary_len: p };
        let secondary = SecondaryHeader { secondary_len: s, pair: 0 };
        let words = message.primary.words();
        store_word(words, 0, primary.emit());
        store_word(words, PRIMARY_HEADER_LEN + p, secondary.emit(message.encoding));
        message.secondary_len = s;
        message.capacity = self.capacity;
        message.secondary = match &self.stream {
            Some(slab) if is_appended(p, s, self.capacity) => {
                copy_words(slab.words(), 0, words, MESSAGE_OVERHEAD + p, s);
                Some(Secondary::Inline)
            }
            Some(slab) if s > 0 => Some(Secondary::Apart(slab.clone())),
            _ => None,
        };
        self.finished = true;
    }

    /// Whether object sections may be written: not after the objects of a received message.
    pub fn takes_objects(&self) -> bool {
        !self.stream_foreign
    }

    /// The memory for `len` more octets of secondary payload; [`grow_secondary`](Self::grow_secondary) adds
    /// them.
    ///
    /// # Errors
    /// The payload belongs to a received message; it would exceed 2³¹−1 octets; no memory.
    pub fn stage_secondary(&mut self, len: usize) -> Result<Octets<'_>, BufferError> {
        if self.stream_foreign {
            return Err(BufferError::ForeignStream);
        }
        let need = (self.stream_len as u64).saturating_add(len as u64);
        if need > COUNT_MAX as u64 {
            return Err(BufferError::SecondaryOverflow {
                len: self.stream_len as u64,
                more: len as u64,
                max: COUNT_MAX as u64,
            });
        }
        let need = need as usize;
        let have = self.stream.as_ref().map_or(0, Slab::len);
        let cut = self.stream_cut && self.stream.as_ref().is_some_and(|s| !s.is_exclusive());
        if have < need || cut || self.stream.is_none() {
            let wanted = if have < need { need.max(have * 2) } else { need };
            let larger = self.source.take(wanted.clamp(SECONDARY_MIN, COUNT_MAX))?;
            if let Some(old) = &self.stream {
                copy_words(old.words(), 0, larger.words(), 0, self.stream_len);
            }
            self.stream = Some(larger);
        }
        self.stream_cut = false;
        let slab = self.stream.as_ref().expect("just taken");
        Ok(Octets::new(slab.words(), self.stream_len, len))
    }

    /// Adds `len` staged octets to the secondary payload. A message sent before is not affected: it refers to
    /// its own first octets only.
    pub fn grow_secondary(&mut self, len: usize) {
        if self.stream_foreign {
            return;
        }
        self.stream_len += len;
        self.unseal();
    }

    /// Shortens the secondary payload to `len` octets, to undo a failed object write.
    pub fn truncate_secondary(&mut self, len: usize) {
        if len < self.stream_len && !self.stream_foreign {
            self.stream_len = len;
            self.stream_cut = true;
            self.unseal();
        }
    }

    /// Writes one section of all elements of `source`.
    ///
    /// # Errors
    /// As for [`stage`](Self::stage).
    pub fn write<T: Element>(&mut self, source: &[T]) -> Result<(), BufferError> {
        self.section(T::TYPE, source.len(), |octets, encoding| {
            octets.put_slice(encoding, source);
            Ok(())
        })
    }

    /// Writes one section of the elements `source[base + indices[k]]`.
    ///
    /// # Errors
    /// An index outside the array; as for [`stage`](Self::stage).
    pub fn gather<T: Element>(
        &mut self,
        source: &[T],
        base: i64,
        indices: &[i32],
    ) -> Result<(), BufferError> {
        check_indices(indices, base, source.len(), 0)?;
        let elements = indices.iter().map(|&i| source[(i64::from(i) + base) as usize]);
        self.section(T::TYPE, indices.len(), |octets, encoding| {
            octets.put(encoding, elements);
            Ok(())
        })
    }

    /// Writes one section of a strided patch of `source`.
    ///
    /// # Errors
    /// As for [`stage`](Self::stage). The patch was checked against an array of this length.
    pub fn str_gather<T: Element>(&mut self, source: &[T], patch: &Patch) -> Result<(), BufferError> {
        let elements = patch.runs(usize::MAX).flat_map(|run| {
            (0..run.count).map(move |i| source[(run.start as i64 + run.stride * i as i64) as usize])
        });
        self.section(T::TYPE, patch.count(), |octets, encoding| {
            octets.put(encoding, elements);
            Ok(())
        })
    }

    /// Ensures an exclusive slab for the primary payload.
    #[inline(always)]
    fn own(&mut self) -> Result<(), BufferError> {
        // An adopted message may be larger than this buffer.
        let room = self.capacity.max(self.primary_len()) + MESSAGE_OVERHEAD;
        match &self.message {
            Some(m) if m.primary.is_exclusive() && m.primary.len() >= room => {
                if self.finished {
                    self.reopen()?;
                }
                Ok(())
            }
            _ => self.own_slowly(room),
        }
    }

    #[cold]
    fn own_slowly(&mut self, room: usize) -> Result<(), BufferError> {
        if let Some(m) = &self.message
            && m.primary.len() >= room
            && self.viewed.is_alone(&m.primary, false)
        {
            return if self.finished { self.reopen() } else { Ok(()) };
        }
        let primary = match self.viewed.take(room, &*self.source) {
            Some(slab) => slab,
            None => self.source.take(room)?,
        };
        if self.message.is_some() {
            self.reopen()?;
        }
        let (encoding, primary_len) = (self.encoding(), self.primary_len());
        if let Some(m) = &self.message {
            copy_words(m.primary.words(), 0, primary.words(), 0, PRIMARY_HEADER_LEN + primary_len);
        }
        self.message = Some(Message {
            primary,
            encoding,
            primary_len,
            secondary: None,
            secondary_len: 0,
            capacity: self.capacity,
            first: None,
        });
        Ok(())
    }

    /// Makes a finished message writable: moves an inline secondary payload to a slab of its own.
    #[cold]
    fn reopen(&mut self) -> Result<(), BufferError> {
        let Some(m) = &self.message else { return Ok(()) };
        if self.stream.is_none() && m.secondary_len > 0 {
            let slab = match &m.secondary {
                Some(Secondary::Apart(slab)) => slab.clone(),
                _ => {
                    let slab = self.source.take(m.secondary_len)?;
                    let (words, at) = m.secondary_at(0);
                    copy_words(words, at, slab.words(), 0, m.secondary_len);
                    slab
                }
            };
            self.stream = Some(slab);
        }
        self.finished = false;
        Ok(())
    }

    fn unseal(&mut self) {
        // A stream whose length changes has its own slab, so nothing is moved.
        self.finished = false;
        if let Some(m) = &mut self.message {
            m.secondary = None;
        }
    }

    #[inline]
    fn forget_stream(&mut self, shared_only: bool) {
        if self.stream.as_ref().is_some_and(|s| !s.is_reusable(1, shared_only)) {
            self.stream = None;
        }
        self.stream_len = 0;
        self.stream_foreign = false;
        self.stream_cut = false;
    }

    #[inline(always)]
    fn words(&self) -> &[AtomicU64] {
        self.message.as_ref().expect("owned").primary.words()
    }

    #[cold]
    fn overflow(&self, needed: usize, used: usize) -> BufferError {
        BufferError::Overflow {
            needed: needed as u64,
            available: self.capacity.saturating_sub(used) as u64,
            capacity: self.capacity as u64,
        }
    }
}

/// Writes the header of the section at offset `at`, and zeroes the padding behind its data.
#[inline(always)]
fn put_section(words: &[AtomicU64], at: usize, header: SectionHeader, encoding: Encoding) {
    store_word(words, at, header.emit(encoding));
    zero_padding(words, at + SECTION_HEADER_LEN + header.data_len());
}
