//! A second, simple implementation of the format: whole messages as `Vec<u8>`, without code of the engine.

use mpjdev_buffer::{Element, Encoding};

/// An element type with its code and size.
pub(crate) trait Naive: Element + PartialEq + std::fmt::Debug {
    /// Type code on the wire.
    const CODE: u8;

    /// Appends the octets of this element.
    fn push(self, big: bool, out: &mut Vec<u8>);

    /// A random element. Extreme values are frequent.
    fn sample(seed: u64) -> Self;

    /// The bit pattern, which distinguishes NaNs and zeros.
    fn pattern(self) -> Vec<u8> {
        let mut out = Vec::new();
        self.push(true, &mut out);
        out
    }
}

macro_rules! naive {
    ($($rust:ty, $code:literal, $number:ty, $of:expr;)*) => { $(
        impl Naive for $rust {
            const CODE: u8 = $code;

            fn push(self, big: bool, out: &mut Vec<u8>) {
                if big { out.extend(self.to_be_bytes()) } else { out.extend(self.to_le_bytes()) }
            }

            fn sample(seed: u64) -> Self {
                let bits = match seed % 5 {
                    0 => <$number>::MIN,
                    1 => <$number>::MAX,
                    _ => mix(seed) as $number,
                };
                $of(bits)
            }
        }
    )* };
}

naive! {
    i8, 0, i8, |b| b;
    u16, 1, u16, |b| b;
    i16, 2, i16, |b| b;
    i32, 4, i32, |b| b;
    i64, 5, i64, |b| b;
    f32, 6, u32, f32::from_bits;
    f64, 7, u64, f64::from_bits;
}

impl Naive for bool {
    const CODE: u8 = 3;

    fn push(self, _: bool, out: &mut Vec<u8>) {
        out.push(if self { 1 } else { 0 });
    }

    fn sample(seed: u64) -> Self {
        mix(seed) & 1 == 1
    }
}

/// A pseudorandom number (the finaliser of splitmix64).
pub(crate) fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A message as two vectors.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    /// Byte order.
    pub(crate) big: bool,
    /// The primary payload.
    pub(crate) primary: Vec<u8>,
    /// The secondary payload.
    pub(crate) secondary: Vec<u8>,
}

impl Message {
    /// A message without sections.
    pub(crate) fn new(big: bool) -> Self {
        Message { big, primary: Vec::new(), secondary: Vec::new() }
    }

    /// The byte order as the engine names it.
    pub(crate) fn order(&self) -> Encoding {
        if self.big { Encoding::Big } else { Encoding::Little }
    }

    /// Appends a section of these elements.
    pub(crate) fn section<T: Naive>(&mut self, values: &[T]) {
        self.header(T::CODE, values.len() as u32);
        for value in values {
            value.push(self.big, &mut self.primary);
        }
        while !self.primary.len().is_multiple_of(8) {
            self.primary.push(0);
        }
    }

    /// Appends a section header alone.
    pub(crate) fn header(&mut self, code: u8, count: u32) {
        self.primary.extend([code, 0, 0, 0]);
        push_u32(self.big, count, &mut self.primary);
    }

    /// The octets of the whole message.
    pub(crate) fn octets(&self) -> Vec<u8> {
        let mut out = vec![if self.big { 0 } else { 1 }, 0, 0, 0];
        push_u32(self.big, self.primary.len() as u32, &mut out);
        out.extend(&self.primary);
        out.extend([0, 0, 0, 0]);
        push_u32(self.big, self.secondary.len() as u32, &mut out);
        out.extend(&self.secondary);
        out
    }
}

fn push_u32(big: bool, value: u32, out: &mut Vec<u8>) {
    if big { out.extend(value.to_be_bytes()) } else { out.extend(value.to_le_bytes()) }
}

/// The element numbers of a strided patch: nested loops, the last dimension fastest.
pub(crate) fn positions(offset: i64, extents: &[i32], strides: &[i32]) -> Vec<i64> {
    let Some((&extent, inner)) = extents.split_first() else { return vec![offset] };
    (0..i64::from(extent))
        .flat_map(|i| positions(offset + i * i64::from(strides[0]), inner, &strides[1..]))
        .collect()
}

/// The octets of a message of the engine.
pub(crate) fn octets_of(message: &mpjdev_buffer::Message) -> Vec<u8> {
    let mut octets = vec![0xcc; message.logical_len() + 3];
    let n = message.copy_logical(0, &mut octets);
    octets.truncate(n);
    octets
}
