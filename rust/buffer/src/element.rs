//! Elements of arrays: the Rust types that sections hold, and the loops that copy them to and from words.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::encoding::Encoding;
use crate::types::Type;

/// A Rust type whose values are elements of a primitive section.
///
/// `i8` stands for Java's byte, `u16` for char, `i16` short, `bool` boolean, `i32` int, `i64` long,
/// `f32` float, `f64` double.
pub trait Element: Copy + Default {
    /// The section type of these elements.
    const TYPE: Type;

    /// The octets of this value, in the lowest [`Type::size`] places of the result.
    fn to_octets(self, encoding: Encoding) -> [u8; 8];

    /// The value of the octets in the lowest [`Type::size`] places.
    fn from_octets(octets: [u8; 8], encoding: Encoding) -> Self;

    /// Stores elements, as many as the words hold.
    fn store_all(words: &[AtomicU64], elements: &[Self], encoding: Encoding);

    /// Copies elements out, as many as the words hold.
    fn load_all(words: &[AtomicU64], elements: &mut [Self], encoding: Encoding);
}

// The loops of each type are compiled with this crate, so a debug build of another one runs optimised loops.
macro_rules! loops {
    () => {
        fn store_all(words: &[AtomicU64], elements: &[Self], encoding: Encoding) {
            // The byte order is a constant in each loop.
            match encoding {
                Encoding::Big => store_words(words, elements, Encoding::Big),
                Encoding::Little => store_words(words, elements, Encoding::Little),
            }
        }

        fn load_all(words: &[AtomicU64], elements: &mut [Self], encoding: Encoding) {
            match encoding {
                Encoding::Big => load_words(words, elements, Encoding::Big),
                Encoding::Little => load_words(words, elements, Encoding::Little),
            }
        }
    };
}

macro_rules! element {
    ($rust:ty, $type:ident, $size:literal) => {
        impl Element for $rust {
            const TYPE: Type = Type::$type;

            #[inline(always)]
            fn to_octets(self, encoding: Encoding) -> [u8; 8] {
                let own = match encoding {
                    Encoding::Big => self.to_be_bytes(),
                    Encoding::Little => self.to_le_bytes(),
                };
                let mut octets = [0; 8];
                octets[..$size].copy_from_slice(&own);
                octets
            }

            #[inline(always)]
            fn from_octets(octets: [u8; 8], encoding: Encoding) -> Self {
                let mut own = [0; $size];
                own.copy_from_slice(&octets[..$size]);
                match encoding {
                    Encoding::Big => Self::from_be_bytes(own),
                    Encoding::Little => Self::from_le_bytes(own),
                }
            }

            loops!();
        }
    };
}

element!(i8, Byte, 1);
element!(u16, Char, 2);
element!(i16, Short, 2);
element!(i32, Int, 4);
element!(i64, Long, 8);
element!(f32, Float, 4);
element!(f64, Double, 8);

impl Element for bool {
    const TYPE: Type = Type::Boolean;

    #[inline(always)]
    fn to_octets(self, _: Encoding) -> [u8; 8] {
        [u8::from(self), 0, 0, 0, 0, 0, 0, 0]
    }

    #[inline(always)]
    fn from_octets(octets: [u8; 8], _: Encoding) -> Self {
        octets[0] != 0
    }

    loops!();
}

/// Words that are copied in one step of a loop.
const STEP: usize = 8;

/// Stores elements, as many as the words hold. A step without a branch leaves the processor to its loads and
/// stores: the copy takes as long as a copy of memory.
#[inline(always)]
fn store_words<T: Element>(words: &[AtomicU64], elements: &[T], encoding: Encoding) {
    let each = 8 / T::TYPE.size();
    let store = |word: &AtomicU64, elements: &[T]| {
        let mut octets = [0; 8];
        for (slot, element) in octets.chunks_exact_mut(T::TYPE.size()).zip(elements) {
            slot.copy_from_slice(&element.to_octets(encoding)[..T::TYPE.size()]);
        }
        word.store(u64::from_ne_bytes(octets), Relaxed);
    };
    let (steps, last) = words.as_chunks::<STEP>();
    let groups = elements.chunks_exact(STEP * each);
    let rest = groups.remainder();
    for (words, group) in steps.iter().zip(groups) {
        for (word, elements) in words.iter().zip(group.chunks_exact(each)) {
            store(word, elements);
        }
    }
    for (word, elements) in last.iter().zip(rest.chunks_exact(each)) {
        store(word, elements);
    }
}

/// Copies elements out, as many as the words hold.
#[inline(always)]
fn load_words<T: Element>(words: &[AtomicU64], elements: &mut [T], encoding: Encoding) {
    let each = 8 / T::TYPE.size();
    let load = |word: &AtomicU64, elements: &mut [T]| {
        let word = word.load(Relaxed).to_ne_bytes();
        for (slot, element) in word.chunks_exact(T::TYPE.size()).zip(elements) {
            let mut octets = [0; 8];
            octets[..T::TYPE.size()].copy_from_slice(slot);
            *element = T::from_octets(octets, encoding);
        }
    };
    let (steps, last) = words.as_chunks::<STEP>();
    let mut groups = elements.chunks_exact_mut(STEP * each);
    for (words, group) in steps.iter().zip(&mut groups) {
        for (word, elements) in words.iter().zip(group.chunks_exact_mut(each)) {
            load(word, elements);
        }
    }
    for (word, elements) in last.iter().zip(groups.into_remainder().chunks_exact_mut(each)) {
        load(word, elements);
    }
}
