//! Time as a number of nanoseconds.

/// A point in time, counted from a start that the driver chooses, or a span; 2^64 nanoseconds are 584 years.
pub type Nanos = u64;

/// A microsecond.
pub const MICROSECOND: Nanos = 1_000;
/// A millisecond.
pub const MILLISECOND: Nanos = 1_000 * MICROSECOND;
/// A second.
pub const SECOND: Nanos = 1_000 * MILLISECOND;

/// The earlier of two optional points in time.
#[inline]
pub(super) const fn earlier(a: Option<Nanos>, b: Option<Nanos>) -> Option<Nanos> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a < b { a } else { b }),
        (Some(point), None) | (None, Some(point)) => Some(point),
        (None, None) => None,
    }
}
