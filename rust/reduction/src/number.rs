//! Rust types of the elements, and their arithmetic.

use std::ops::{BitAnd, BitOr, BitXor};

/// A number that octets hold in native order.
pub(crate) trait Number: Copy {
    /// Applies `f` to the numbers of both slices; the results replace those of `into`.
    fn each(from: &[u8], into: &mut [u8], f: impl Fn(Self, Self) -> Self);

    /// The same for pairs of numbers.
    fn each_pair(from: &[u8], into: &mut [u8], f: impl Fn([Self; 2], [Self; 2]) -> [Self; 2]);
}

/// Arithmetic that gives the same bits for exchanged operands.
pub(crate) trait Arithmetic: Number {
    fn maximum(self, other: Self) -> Self;
    fn minimum(self, other: Self) -> Self;
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
}

/// Numbers with bits and truth values.
pub(crate) trait Integer:
    Number + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self>
{
    fn is_true(self) -> bool;
    fn from_truth(truth: bool) -> Self;
}

/// Numbers that compare, NaN among them.
pub(crate) trait Comparable: Number + PartialOrd {
    fn is_nan(self) -> bool;
}

/// Floating-point numbers.
trait Float {
    /// The number, or the NaN of Java for every NaN.
    fn canonical(self) -> Self;
}

macro_rules! number {
    ($($number:ty),*) => { $(
        impl Number for $number {
            #[inline(always)]
            fn each(from: &[u8], into: &mut [u8], f: impl Fn(Self, Self) -> Self) {
                let (from, into) = (from.as_chunks().0, into.as_chunks_mut().0);
                for (into, from) in into.iter_mut().zip(from) {
                    *into = f(Self::from_ne_bytes(*from), Self::from_ne_bytes(*into)).to_ne_bytes();
                }
            }

            #[inline(always)]
            fn each_pair(from: &[u8], into: &mut [u8], f: impl Fn([Self; 2], [Self; 2]) -> [Self; 2]) {
                let (from, into) = (from.as_chunks().0, into.as_chunks_mut().0);
                for (into, from) in into.as_chunks_mut().0.iter_mut().zip(from.as_chunks().0) {
                    let [left, right] = [*from, *into].map(|pair| pair.map(Self::from_ne_bytes));
                    *into = f(left, right).map(Self::to_ne_bytes);
                }
            }
        }
    )* };
}

macro_rules! integer {
    ($($number:ty),*) => { $(
        impl Arithmetic for $number {
            #[inline(always)]
            fn maximum(self, other: Self) -> Self {
                self.max(other)
            }

            #[inline(always)]
            fn minimum(self, other: Self) -> Self {
                self.min(other)
            }

            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn product(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }

        impl Comparable for $number {
            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
        }
    )* };
}

macro_rules! bits {
    ($($number:ty),*) => { $(
        impl Integer for $number {
            #[inline(always)]
            fn is_true(self) -> bool {
                self != 0
            }

            #[inline(always)]
            fn from_truth(truth: bool) -> Self {
                Self::from(truth)
            }
        }
    )* };
}

/// `$nan` is the pattern of Java's NaN. Selections that have no branches keep the loops vectors.
macro_rules! float {
    ($number:ty, $nan:literal) => {
        impl Arithmetic for $number {
            #[inline(always)]
            fn maximum(self, other: Self) -> Self {
                let first = if self > other { self } else { other };
                let second = if other > self { other } else { self };
                // Equal numbers have equal bits, but for zeros: the sign of 0.0 is clear.
                let of_numbers = Self::from_bits(first.to_bits() & second.to_bits());
                extreme([self, other], [first, second], of_numbers).canonical()
            }

            #[inline(always)]
            fn minimum(self, other: Self) -> Self {
                let first = if self < other { self } else { other };
                let second = if other < self { other } else { self };
                let of_numbers = Self::from_bits(first.to_bits() | second.to_bits());
                extreme([self, other], [first, second], of_numbers).canonical()
            }

            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                (self + other).canonical()
            }

            #[inline(always)]
            fn product(self, other: Self) -> Self {
                (self * other).canonical()
            }
        }

        impl Float for $number {
            #[inline(always)]
            fn canonical(self) -> Self {
                Self::from_bits(if self.is_nan() { $nan } else { self.to_bits() })
            }
        }

        impl Comparable for $number {
            #[inline(always)]
            fn is_nan(self) -> bool {
                self.is_nan()
            }
        }
    };
}

/// The extreme of two numbers, or of a number and a NaN the number. `selected` are the results of a
/// comparison of the operands and of the exchanged ones, each of which takes its second operand if it fails.
#[inline(always)]
fn extreme<T: Comparable>([a, b]: [T; 2], selected: [T; 2], of_numbers: T) -> T {
    if a.is_nan() {
        selected[0]
    } else if b.is_nan() {
        selected[1]
    } else {
        of_numbers
    }
}

number!(i8, u8, u16, i16, i32, i64, f32, f64);
integer!(i8, u16, i16, i32, i64);
bits!(i8, u8, u16, i16, i32, i64);
float!(f32, 0x7fc0_0000);
float!(f64, 0x7ff8_0000_0000_0000);
