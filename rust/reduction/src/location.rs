//! Extreme values with their indices.

use crate::number::Comparable;

/// Of two pairs (value, index) the one whose value is better, or whose index is smaller. A NaN is worse than
/// a number.
#[inline(always)]
pub(crate) fn best<T: Comparable>(left: [T; 2], right: [T; 2], is_better: impl Fn(T, T) -> bool) -> [T; 2] {
    let beats = |a: T, b: T| is_better(a, b) | (b.is_nan() & !a.is_nan());
    let is_smaller = (right[1] < left[1]) | (left[1].is_nan() & !right[1].is_nan());
    let right_wins = beats(right[0], left[0]) | (!beats(left[0], right[0]) & is_smaller);
    if right_wins { right } else { left }
}
