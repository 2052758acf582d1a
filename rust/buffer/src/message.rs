//! A finished logical message: headers, primary payload, secondary payload, and its physical messages.

use std::sync::atomic::AtomicU64;

use crate::encoding::Encoding;
use crate::error::{BufferError, Damage, SlabError};
use crate::header::{PrimaryHeader, SecondaryHeader, SectionHeader};
use crate::layout::{
    CAPACITY_MAX, MESSAGE_OVERHEAD, PRIMARY_HEADER_LEN, SECONDARY_HEADER_LEN, SECTION_HEADER_LEN, padding,
};
use crate::octets::{Octets, copy_in, copy_out, copy_words, load_word, store_word};
use crate::slab::{Packer, Slab, SlabSource};

/// Location of the secondary payload of a message.
#[derive(Clone, Debug)]
pub(crate) enum Secondary {
    /// In a slab of its own: the second physical message, unless it is appended when the message is finished.
    Apart(Slab),
    /// In the primary slab, right after the secondary header.
    Inline,
}

/// A logical message by reference. It does not change while another reference exists. Cloning copies nothing,
/// so one finished message can be sent to many destinations.
#[derive(Clone, Debug)]
pub struct Message {
    pub(crate) primary: Slab,
    pub(crate) encoding: Encoding,
    pub(crate) primary_len: usize,
    pub(crate) secondary: Option<Secondary>,
    pub(crate) secondary_len: usize,
    pub(crate) capacity: usize,
    /// The first section's header, if it was sent apart from the slab.
    pub(crate) first: Option<[u8; 8]>,
}

impl Message {
    /// Byte order of headers and primitive data.
    #[inline]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// p: octets of the primary payload.
    #[inline]
    pub fn primary_len(&self) -> usize {
        self.primary_len
    }

    /// s: octets of the secondary payload.
    #[inline]
    pub fn secondary_len(&self) -> usize {
        self.secondary_len
    }

    /// Capacity of the buffer that wrote or received the message.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// An empty message in the same memory.
    #[inline(always)]
    pub(crate) fn restart(&mut self, encoding: Encoding, capacity: usize) {
        self.encoding = encoding;
        self.primary_len = 0;
        self.secondary_len = 0;
        self.capacity = capacity;
        self.first = None;
        self.primary.end_packing();
    }

    /// The same message, received by a buffer of this capacity.
    #[inline]
    #[must_use]
    pub fn received_by(mut self, capacity: usize) -> Message {
        self.capacity = capacity;
        self
    }

    /// Octets of the logical message: 16 + p + s.
    #[inline]
    pub fn logical_len(&self) -> usize {
        MESSAGE_OVERHEAD + self.primary_len + self.secondary_len
    }

    /// Octets of the slabs that the message occupies, which may be much longer than the message.
    #[inline]
    pub fn held_len(&self) -> usize {
        self.primary.len() + self.second_slab().map_or(0, Slab::len)
    }

    /// A copy of the message in slabs of its size.
    ///
    /// # Errors
    /// No memory.
    pub fn compact(&self, source: &dyn SlabSource) -> Result<Message, SlabError> {
        let copy = |from: &Slab, len: usize| {
            let slab = source.take(len)?;
            copy_words(from.words(), 0, slab.words(), 0, len);
            Ok(slab)
        };
        let primary = copy(&self.primary, self.first_len())?;
        let secondary = match &self.secondary {
            Some(Secondary::Apart(slab)) => Some(Secondary::Apart(copy(slab, self.secondary_len)?)),
            inline => inline.clone(),
        };
        Ok(Message { primary, secondary, ..*self })
    }

    /// Whether the secondary payload is sent as a second physical message.
    #[inline]
    pub fn is_split(&self) -> bool {
        matches!(self.secondary, Some(Secondary::Apart(_)))
    }

    /// Octets of the first physical message.
    #[inline]
    pub fn first_len(&self) -> usize {
        match self.secondary {
            Some(Secondary::Inline) => self.logical_len(),
            _ => MESSAGE_OVERHEAD + self.primary_len,
        }
    }

    /// Memory of the first physical message, which is its first [`first_len`](Self::first_len) octets.
    #[inline]
    pub fn first_words(&self) -> &[AtomicU64] {
        self.primary.words()
    }

    /// The slab of the first physical message.
    #[inline]
    pub fn first_slab(&self) -> &Slab {
        &self.primary
    }

    /// Begins to pack a message whose headers are written. Returns the message to send, which is marked as
    /// packing, and its packer. `None` for memory without a counter of packed octets, and for a split
    /// message.
    pub fn begin_packing(&self) -> Option<(Message, Packer)> {
        if self.is_split() {
            return None;
        }
        let (primary, packer) = self.primary.begin_packing(PRIMARY_HEADER_LEN + SECTION_HEADER_LEN)?;
        Some((Message { primary, ..self.clone() }, packer))
    }

    /// The message of a slab that is marked as packing and in which the headers before the first section's
    /// elements are present. `first_len` and `capacity` are as for [`from_physical`](Self::from_physical).
    /// `None` for memory without these headers, and for a message with objects behind the sections. Whether a
    /// second physical message follows is known at the end; see [`check_sole_end`](Self::check_sole_end).
    pub fn from_begun(slab: Slab, first_len: usize, capacity: usize) -> Option<Message> {
        const BEGIN: usize = PRIMARY_HEADER_LEN + SECTION_HEADER_LEN;
        if slab.packed_len()? < BEGIN || first_len > slab.len() {
            return None;
        }
        let PrimaryHeader { encoding, primary_len } =
            PrimaryHeader::parse(load_word(slab.words(), 0)).ok()?;
        let is_all = first_len == MESSAGE_OVERHEAD + primary_len;
        (is_all && (SECTION_HEADER_LEN..=capacity).contains(&primary_len)).then_some(Message {
            primary: slab,
            encoding,
            primary_len,
            secondary: None,
            secondary_len: 0,
            capacity,
            first: None,
        })
    }

    /// Whether the message is marked as packing: its sender may still pack it.
    #[inline(always)]
    pub fn is_packing(&self) -> bool {
        self.primary.is_packing()
    }

    /// Octets of the first physical message, from its start, that may be read; `None` if its sender has
    /// stopped packing it.
    #[inline]
    pub fn packed_len(&self) -> Option<usize> {
        Some(self.primary.packed_len()?.min(self.first_len()))
    }

    /// Whether all octets may be read. Removes the mark of a packed message.
    #[inline]
    pub fn is_packed(&mut self) -> bool {
        if !self.is_packing() {
            return true;
        }
        let is_packed = self.packed_len() == Some(self.first_len());
        if is_packed {
            self.primary.end_packing();
        }
        is_packed
    }

    /// The slab of the second physical message, if there is one.
    #[inline]
    pub fn second_slab(&self) -> Option<&Slab> {
        match &self.secondary {
            Some(Secondary::Apart(slab)) => Some(slab),
            _ => None,
        }
    }

    /// Copies octets of the logical message from `offset` on; returns their number, less than `dest` has at
    /// the end.
    ///
    /// Unused octets of the headers are copied as zero, also where a transport uses them.
    pub fn copy_logical(&self, offset: usize, dest: &mut [u8]) -> usize {
        let secondary_at = MESSAGE_OVERHEAD + self.primary_len;
        let mut done = 0;
        while done < dest.len() && offset + done < self.logical_len() {
            let at = offset + done;
            let rest = &mut dest[done..];
            done += if at < PRIMARY_HEADER_LEN {
                copy_part(&self.primary_header().emit(), at, rest)
            } else if at < PRIMARY_HEADER_LEN + self.primary_len {
                let n = rest.len().min(PRIMARY_HEADER_LEN + self.primary_len - at);
                copy_out(self.primary.words(), at, &mut rest[..n]);
                n
            } else if at < secondary_at {
                let header = SecondaryHeader { secondary_len: self.secondary_len, pair: 0 };
                copy_part(&header.emit(self.encoding), at - PRIMARY_HEADER_LEN - self.primary_len, rest)
            } else {
                self.copy_secondary(at - secondary_at, rest)
            };
        }
        done
    }

    /// Copies octets of the secondary payload from `offset` on; returns their number, less than `dest` has at
    /// the end.
    pub fn copy_secondary(&self, offset: usize, dest: &mut [u8]) -> usize {
        let n = dest.len().min(self.secondary_len.saturating_sub(offset));
        let (words, at) = self.secondary_at(offset);
        copy_out(words, at, &mut dest[..n]);
        n
    }

    /// The range of `len` octets of the secondary payload from `offset` on.
    ///
    /// # Panics
    /// When they are not inside it.
    pub fn secondary_octets(&self, offset: usize, len: usize) -> Octets<'_> {
        assert!(offset + len <= self.secondary_len);
        let (words, at) = self.secondary_at(offset);
        Octets::new(words, at, len)
    }

    /// Memory and offset of the secondary payload's octet `offset`.
    pub(crate) fn secondary_at(&self, offset: usize) -> (&[AtomicU64], usize) {
        match &self.secondary {
            Some(Secondary::Apart(slab)) => (slab.words(), offset),
            _ => (self.primary.words(), MESSAGE_OVERHEAD + self.primary_len + offset),
        }
    }

    /// The first section's header, if there is one and it is valid.
    pub fn first_section(&self) -> Option<SectionHeader> {
        if self.primary_len == 0 {
            return None;
        }
        let octets = self.first.unwrap_or_else(|| load_word(self.primary.words(), PRIMARY_HEADER_LEN));
        SectionHeader::parse(octets, self.encoding).ok()
    }

    fn primary_header(&self) -> PrimaryHeader {
        PrimaryHeader { encoding: self.encoding, primary_len: self.primary_len }
    }

    /// A message copied from the octets of a logical message. `capacity` is that of the receiving buffer.
    ///
    /// # Errors
    /// A damaged header; octets missing or left over; a primary payload larger than the capacity; no memory.
    /// Nothing is allocated before the lengths are checked.
    pub fn from_logical(
        source: &dyn SlabSource,
        capacity: usize,
        octets: &[u8],
    ) -> Result<Message, BufferError> {
        let (primary, secondary) = parse_logical(octets)?;
        let (p, s) = (primary.primary_len, secondary.secondary_len);
        if p > capacity {
            return Err(BufferError::TooLong { needed: p as u64, capacity: capacity as u64 });
        }
        let slab = source.take(MESSAGE_OVERHEAD + p)?;
        copy_in(slab.words(), 0, &octets[..PRIMARY_HEADER_LEN + p]);
        // Emitted again: unused octets of the input must not become a pairing number.
        let header = SecondaryHeader { secondary_len: s, pair: 0 };
        store_word(slab.words(), PRIMARY_HEADER_LEN + p, header.emit(primary.encoding));
        let apart = if s == 0 {
            None
        } else {
            let second = source.take(s)?;
            copy_in(second.words(), 0, &octets[MESSAGE_OVERHEAD + p..]);
            Some(Secondary::Apart(second))
        };
        Ok(Message {
            primary: slab,
            encoding: primary.encoding,
            primary_len: p,
            secondary: apart,
            secondary_len: s,
            capacity,
            first: None,
        })
    }

    /// An empty message in this slab, a target for [`receive`](Self::receive).
    #[inline]
    pub fn from_empty_slab(primary: Slab) -> Message {
        let encoding = Encoding::NATIVE;
        Message {
            primary,
            encoding,
            primary_len: 0,
            secondary: None,
            secondary_len: 0,
            capacity: 0,
            first: None,
        }
    }

    /// The slab of the first physical message.
    #[inline]
    pub fn into_slab(self) -> Slab {
        self.primary
    }

    /// Octets that the slab of the first physical message has.
    #[inline]
    pub fn room(&self) -> usize {
        self.primary.len()
    }

    /// Becomes the message whose only physical message was copied into the slab: `first_len` octets.
    /// `capacity` is the receiving buffer's.
    ///
    /// # Errors
    /// A damaged header, or lengths that contradict each other. Then the contents are invalid.
    #[inline(always)]
    pub fn receive(&mut self, first_len: usize, capacity: usize) -> Result<(), BufferError> {
        let (primary, secondary) = parse_first(self.primary.words(), first_len)?;
        let (p, s) = (primary.primary_len, secondary.secondary_len);
        if first_len != MESSAGE_OVERHEAD + p + s {
            return Err(lengths(first_len, MESSAGE_OVERHEAD + p + s, p));
        }
        self.encoding = primary.encoding;
        self.primary_len = p;
        self.secondary_len = s;
        self.capacity = capacity;
        self.first = None;
        if s > 0 {
            self.secondary = Some(Secondary::Inline);
        } else if self.secondary.is_some() {
            self.secondary = None;
        }
        Ok(())
    }

    /// The headers that a receiver needs first: primary, secondary, first section's (zero without a section).
    #[inline]
    pub fn header_words(&self) -> [[u8; 8]; 3] {
        let words = self.primary.words();
        let first = if self.primary_len > 0 { load_word(words, PRIMARY_HEADER_LEN) } else { [0; 8] };
        [load_word(words, 0), load_word(words, PRIMARY_HEADER_LEN + self.primary_len), first]
    }

    /// A message of one physical message whose [headers](Self::header_words) a transport received apart, so
    /// that the slab is not read.
    ///
    /// # Errors
    /// As for [`from_physical`](Self::from_physical).
    pub fn from_headed(
        slab: Slab,
        first_len: usize,
        [primary, secondary, first]: [[u8; 8]; 3],
        capacity: usize,
    ) -> Result<Message, BufferError> {
        let primary = PrimaryHeader::parse(primary).map_err(|d| d.at(0))?;
        let (encoding, p) = (primary.encoding, primary.primary_len);
        let at = PRIMARY_HEADER_LEN + p;
        let s = SecondaryHeader::parse(secondary, encoding).map_err(|d| d.at(at))?.secondary_len;
        let whole = MESSAGE_OVERHEAD + p + s;
        if first_len != whole || whole > slab.len() {
            return Err(lengths(first_len.min(slab.len()), whole, p));
        }
        let (secondary, secondary_len) = if s > 0 { (Some(Secondary::Inline), s) } else { (None, 0) };
        let first = (p > 0).then_some(first);
        Ok(Message { primary: slab, encoding, primary_len: p, secondary, secondary_len, capacity, first })
    }

    /// A message of physical messages that a transport received: the first in `slab`, and the second in
    /// `second` when one followed.
    ///
    /// `first_len` octets of `slab` were received. `capacity` is the receiving buffer's.
    ///
    /// # Errors
    /// A damaged header, or lengths that contradict each other. Each header word is copied once, so the
    /// checked value is the used one.
    #[inline]
    pub fn from_physical(
        slab: Slab,
        first_len: usize,
        second: Option<(Slab, usize)>,
        capacity: usize,
    ) -> Result<Message, BufferError> {
        let (primary, secondary) = parse_first(slab.words(), first_len)?;
        let (p, s) = (primary.primary_len, secondary.secondary_len);
        let whole = MESSAGE_OVERHEAD + p + s;
        let secondary = match second {
            Some((slab, len)) if len == s && first_len == MESSAGE_OVERHEAD + p => {
                Some(Secondary::Apart(slab))
            }
            None if s == 0 && first_len == whole => None,
            None if first_len == whole => Some(Secondary::Inline),
            Some(_) if first_len != MESSAGE_OVERHEAD + p => {
                return Err(lengths(first_len, MESSAGE_OVERHEAD + p, p));
            }
            Some((_, len)) => return Err(lengths(first_len + len, whole, p)),
            None => return Err(lengths(first_len, whole, p)),
        };
        Ok(Message {
            primary: slab,
            encoding: primary.encoding,
            primary_len: p,
            secondary,
            secondary_len: s,
            capacity,
            first: None,
        })
    }
}

/// Both headers of a first physical message of `first_len` octets, checked.
///
/// # Errors
/// Fewer octets than 16, or than 16 + p; a damaged header.
#[inline]
pub fn parse_first(
    words: &[AtomicU64],
    first_len: usize,
) -> Result<(PrimaryHeader, SecondaryHeader), BufferError> {
    let short = |need| Damage::Short { have: first_len as u64, need: need as u64 }.at(first_len);
    if first_len < MESSAGE_OVERHEAD {
        return Err(short(MESSAGE_OVERHEAD));
    }
    let primary = PrimaryHeader::parse(load_word(words, 0)).map_err(|d| d.at(0))?;
    let p = primary.primary_len;
    if first_len < MESSAGE_OVERHEAD + p {
        return Err(short(MESSAGE_OVERHEAD + p));
    }
    let at = PRIMARY_HEADER_LEN + p;
    let secondary = SecondaryHeader::parse(load_word(words, at), primary.encoding).map_err(|d| d.at(at))?;
    Ok((primary, secondary))
}

/// The header of the first section, by the first 16 octets of a physical message. `None` without a section,
/// and if a header is damaged.
pub fn parse_first_section([primary, section]: [[u8; 8]; 2]) -> Option<SectionHeader> {
    let primary = PrimaryHeader::parse(primary).ok().filter(|primary| primary.primary_len > 0)?;
    SectionHeader::parse(section, primary.encoding).ok()
}

/// Both headers of a logical message, checked against its number of octets.
///
/// # Errors
/// A damaged header; octets missing or left over.
pub fn parse_logical(octets: &[u8]) -> Result<(PrimaryHeader, SecondaryHeader), BufferError> {
    let have = octets.len();
    let short = |need: usize| Damage::Short { have: have as u64, need: need as u64 }.at(have);
    let word = |at: usize| -> [u8; 8] { octets[at..at + 8].try_into().expect("eight octets") };
    if have < PRIMARY_HEADER_LEN {
        return Err(short(MESSAGE_OVERHEAD));
    }
    let primary = PrimaryHeader::parse(word(0)).map_err(|d| d.at(0))?;
    let at = PRIMARY_HEADER_LEN + primary.primary_len;
    if have < at + SECONDARY_HEADER_LEN {
        return Err(short(at + SECONDARY_HEADER_LEN));
    }
    let secondary = SecondaryHeader::parse(word(at), primary.encoding).map_err(|d| d.at(at))?;
    let whole = at + SECONDARY_HEADER_LEN + secondary.secondary_len;
    if have < whole {
        return Err(short(whole));
    }
    if have > whole {
        return Err(Damage::Long { have: have as u64, need: whole as u64 }.at(whole));
    }
    Ok((primary, secondary))
}

#[cold]
fn lengths(have: usize, need: usize, p: usize) -> BufferError {
    let (have, need) = (have as u64, need as u64);
    let damage = if have < need { Damage::Short { have, need } } else { Damage::Long { have, need } };
    damage.at(PRIMARY_HEADER_LEN + p)
}

fn copy_part(header: &[u8; 8], from: usize, dest: &mut [u8]) -> usize {
    let n = dest.len().min(8 - from);
    dest[..n].copy_from_slice(&header[from..from + n]);
    n
}

/// Checks a capacity that a caller asks for, and rounds it up to a multiple of 8.
///
/// Sections end at multiples of 8, so no section could use the octets behind the last multiple.
///
/// # Errors
/// Negative, or above the largest capacity.
pub fn check_capacity(capacity: i64) -> Result<usize, BufferError> {
    match usize::try_from(capacity) {
        Ok(c) if c <= CAPACITY_MAX => Ok(c + padding(c)),
        _ => Err(BufferError::Capacity { asked: capacity, max: CAPACITY_MAX as u64 }),
    }
}
