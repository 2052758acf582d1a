//! Octets of message memory: words of eight that another thread or process may change at any time.
//!
//! Message memory is `&[AtomicU64]`. Relaxed loads and stores cost as much as plain ones. A faulty peer that
//! writes to its own segment can change values at any time, but causes no undefined behaviour. A header is
//! one word, copied out once and then checked.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::element::Element;
use crate::encoding::Encoding;

/// The eight octets of the word at `offset`, a multiple of 8.
#[inline(always)]
pub fn load_word(words: &[AtomicU64], offset: usize) -> [u8; 8] {
    words[offset / 8].load(Relaxed).to_ne_bytes()
}

/// Stores eight octets in the word at `offset`, a multiple of 8.
#[inline(always)]
pub fn store_word(words: &[AtomicU64], offset: usize, octets: [u8; 8]) {
    words[offset / 8].store(u64::from_ne_bytes(octets), Relaxed);
}

/// Octets before the first whole word of `len` octets from `offset` on.
#[inline(always)]
fn head_len(offset: usize, len: usize) -> usize {
    (offset.next_multiple_of(8) - offset).min(len)
}

/// These words from the octet `at` on: one bounds check for all of them. No words may lie anywhere.
#[inline(always)]
fn whole(words: &[AtomicU64], at: usize, count: usize) -> &[AtomicU64] {
    if count == 0 { &[] } else { &words[at / 8..][..count] }
}

/// Copies `source` to the octets from `offset` on.
///
/// # Panics
/// They are not inside the words.
pub fn copy_in(words: &[AtomicU64], offset: usize, source: &[u8]) {
    let (head, rest) = source.split_at(head_len(offset, source.len()));
    let (body, tail) = rest.as_chunks::<8>();
    put_part(words, offset, head);
    let at = offset + head.len();
    for (word, octets) in whole(words, at, body.len()).iter().zip(body) {
        word.store(u64::from_ne_bytes(*octets), Relaxed);
    }
    put_part(words, at + 8 * body.len(), tail);
}

/// Copies octets into a part of one word.
#[inline(always)]
fn put_part(words: &[AtomicU64], offset: usize, source: &[u8]) {
    if !source.is_empty() {
        let start = offset % 8;
        let mut octets = load_word(words, offset - start);
        octets[start..start + source.len()].copy_from_slice(source);
        store_word(words, offset - start, octets);
    }
}

/// Copies the octets from `offset` on into `dest`.
///
/// # Panics
/// They are not inside the words.
pub fn copy_out(words: &[AtomicU64], offset: usize, dest: &mut [u8]) {
    let (head, rest) = dest.split_at_mut(head_len(offset, dest.len()));
    let at = offset + head.len();
    let (body, tail) = rest.as_chunks_mut::<8>();
    get_part(words, offset, head);
    for (word, octets) in whole(words, at, body.len()).iter().zip(body.iter_mut()) {
        *octets = word.load(Relaxed).to_ne_bytes();
    }
    get_part(words, at + 8 * body.len(), tail);
}

/// Copies octets out of a part of one word.
#[inline(always)]
fn get_part(words: &[AtomicU64], offset: usize, dest: &mut [u8]) {
    if !dest.is_empty() {
        let start = offset % 8;
        dest.copy_from_slice(&load_word(words, offset - start)[start..start + dest.len()]);
    }
}

/// Copies `len` octets between two offsets that are multiples of 8; whole words are copied.
#[inline]
pub fn copy_words(from: &[AtomicU64], from_offset: usize, to: &[AtomicU64], to_offset: usize, len: usize) {
    let n = len.div_ceil(8);
    let source = &from[from_offset / 8..][..n];
    let dest = &to[to_offset / 8..][..n];
    for (d, s) in dest.iter().zip(source) {
        d.store(s.load(Relaxed), Relaxed);
    }
}

/// Zeroes the octets from `end` up to the next multiple of 8: the padding of a section.
#[inline(always)]
pub fn zero_padding(words: &[AtomicU64], end: usize) {
    let used = end % 8;
    if used != 0 {
        let mut octets = load_word(words, end - used);
        octets[used..].fill(0);
        store_word(words, end - used, octets);
    }
}

/// A range of octets in message memory, such as the data of a section.
#[derive(Clone, Copy, Debug)]
pub struct Octets<'a> {
    words: &'a [AtomicU64],
    start: usize,
    len: usize,
}

impl<'a> Octets<'a> {
    /// The `len` octets from `offset` on.
    ///
    /// # Panics
    /// When they reach past the end of the memory: a bug of the caller.
    #[inline(always)]
    pub fn new(words: &'a [AtomicU64], offset: usize, len: usize) -> Self {
        let words = &words[offset / 8..(offset + len).div_ceil(8)];
        Octets { words, start: offset % 8, len }
    }

    /// Number of octets.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no octets.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The `len` octets from `offset` on.
    ///
    /// # Panics
    /// When they are not inside this range: a bug of the caller.
    #[inline(always)]
    pub fn range(&self, offset: usize, len: usize) -> Octets<'a> {
        assert!(offset + len <= self.len, "a range inside");
        Octets::new(self.words, self.start + offset, len)
    }

    /// Address of the first octet, for the boundary that copies array regions by pointer.
    ///
    /// While the borrow lasts the octets may be read, and the owner of the buffer may write them.
    #[inline(always)]
    pub fn as_ptr(&self) -> *mut u8 {
        self.words.as_ptr().cast::<u8>().cast_mut().wrapping_add(self.start)
    }

    /// Copies octets in, up to the shorter of both lengths.
    pub fn put_octets(&self, source: &[u8]) {
        copy_in(self.words, self.start, &source[..source.len().min(self.len)]);
    }

    /// Copies octets out, up to the shorter of both lengths.
    pub fn get_octets(&self, dest: &mut [u8]) {
        let n = dest.len().min(self.len);
        copy_out(self.words, self.start, &mut dest[..n]);
    }

    /// Stores consecutive elements, as many as fit.
    pub fn put_slice<T: Element>(&self, encoding: Encoding, source: &[T]) {
        let (words, elements) = self.whole_words::<T>(source.len());
        let (whole, rest) = source.split_at(elements);
        T::store_all(words, whole, encoding);
        self.after(words.len()).put(encoding, rest.iter().copied());
    }

    /// Copies the first elements into `dest`, as many as there are and as it has room for.
    pub fn get_slice<T: Element>(&self, encoding: Encoding, dest: &mut [T]) {
        let (words, elements) = self.whole_words::<T>(dest.len());
        let (whole, rest) = dest.split_at_mut(elements);
        T::load_all(words, whole, encoding);
        let mut slots = rest.iter_mut();
        self.after(words.len()).get(encoding, |value| {
            if let Some(slot) = slots.next() {
                *slot = value;
            }
        });
    }

    /// The words that hold the first of `count` elements and no other octets, and the number of these
    /// elements. None when the elements begin inside a word.
    #[inline(always)]
    fn whole_words<T: Element>(&self, count: usize) -> (&'a [AtomicU64], usize) {
        let each = 8 / T::TYPE.size();
        let n = if self.start == 0 { (self.len / 8).min(count / each) } else { 0 };
        (&self.words[..n], n * each)
    }

    /// These octets without their first words.
    #[inline(always)]
    fn after(&self, words: usize) -> Octets<'a> {
        Octets { words: &self.words[words..], start: self.start, len: self.len - 8 * words }
    }

    /// Stores consecutive elements, as many as fit.
    pub fn put<T: Element>(&self, encoding: Encoding, source: impl IntoIterator<Item = T>) {
        let size = T::TYPE.size();
        let mut source = source.into_iter();
        let mut at = self.start;
        let end = self.start + self.len;
        // Whole words while the offset is aligned. The last elements, and ranges that start inside a word,
        // are copied octet by octet.
        while at.is_multiple_of(8) && at + 8 <= end {
            let mut word = [0; 8];
            for slot in (0..8).step_by(size) {
                let Some(value) = source.next() else {
                    copy_in(self.words, at, &word[..slot]);
                    return;
                };
                word[slot..slot + size].copy_from_slice(&value.to_octets(encoding)[..size]);
            }
            store_word(self.words, at, word);
            at += 8;
        }
        while at + size <= end {
            let Some(value) = source.next() else { return };
            copy_in(self.words, at, &value.to_octets(encoding)[..size]);
            at += size;
        }
    }

    /// Passes the elements to `sink`, in order.
    pub fn get<T: Element>(&self, encoding: Encoding, mut sink: impl FnMut(T)) {
        let size = T::TYPE.size();
        let mut at = self.start;
        let end = self.start + self.len;
        while at.is_multiple_of(8) && at + 8 <= end {
            let word = load_word(self.words, at);
            for slot in (0..8).step_by(size) {
                let mut octets = [0; 8];
                octets[..size].copy_from_slice(&word[slot..slot + size]);
                sink(T::from_octets(octets, encoding));
            }
            at += 8;
        }
        while at + size <= end {
            let mut octets = [0; 8];
            copy_out(self.words, at, &mut octets[..size]);
            sink(T::from_octets(octets, encoding));
            at += size;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Slices are stored and read as the elements one by one: at any offset, of any length, with any room.
    fn slices_are_as_elements<T: Element + PartialEq + std::fmt::Debug>(element: impl Fn(u8) -> T) {
        const ROOM: usize = 40;
        let memory = || (0..ROOM).map(|_| AtomicU64::new(u64::MAX)).collect::<Vec<_>>();
        let size = T::TYPE.size();
        for encoding in [Encoding::Big, Encoding::Little] {
            for (start, count) in (0..8).step_by(size).flat_map(|start| (0..ROOM).map(move |n| (start, n))) {
                let values: Vec<T> = (0..count as u8).map(&element).collect();
                let len = (count * size).min(8 * (ROOM - 1)).saturating_sub(size * (count % 3));
                let (slice, single) = (memory(), memory());
                let octets = Octets::new(&slice, start, len);
                octets.put_slice(encoding, &values);
                Octets::new(&single, start, len).put(encoding, values.iter().copied());
                let words = |memory: &[AtomicU64]| memory.iter().map(|w| w.load(Relaxed)).collect::<Vec<_>>();
                assert_eq!(words(&slice), words(&single), "{count} from {start}");
                let mut read = vec![T::default(); count];
                octets.get_slice(encoding, &mut read);
                let there = (len / size).min(count);
                assert_eq!(read[..there], values[..there], "{count} from {start}");
                assert!(read[there..].iter().all(|value| *value == T::default()), "{count} from {start}");
            }
        }
    }

    #[test]
    fn octets_are_copied_from_and_to_any_offset() {
        for (offset, len) in (0..20).flat_map(|offset| (0..28).map(move |len| (offset, len))) {
            let words: Vec<AtomicU64> = (0..6).map(|_| AtomicU64::new(u64::MAX)).collect();
            let source: Vec<u8> = (1..=len as u8).collect();
            copy_in(&words, offset, &source);
            let all: Vec<u8> = words.iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect();
            let mut expected = vec![u8::MAX; 48];
            expected[offset..offset + len].copy_from_slice(&source);
            assert_eq!(all, expected, "{len} octets to {offset}");
            let mut read = vec![0; len];
            copy_out(&words, offset, &mut read);
            assert_eq!(read, source, "{len} octets from {offset}");
        }
    }

    #[test]
    fn slices_of_all_types_are_as_their_elements() {
        slices_are_as_elements(|i| i as i8 - 7);
        slices_are_as_elements(|i| i % 3 == 0);
        slices_are_as_elements(|i| u16::from(i) * 1001);
        slices_are_as_elements(|i| i16::from(i) * -301);
        slices_are_as_elements(|i| i32::from(i) * -70_001);
        slices_are_as_elements(|i| i64::from(i) << 33);
        slices_are_as_elements(|i| f32::from(i) / 3.0);
        slices_are_as_elements(|i| f64::from(i) / 3.0);
    }
}
