//! Ranks of a group, around its end.

/// One rank of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The rank, less than the size.
    pub rank: u32,
    /// Number of ranks, from 1 to 2³⁰.
    pub size: u32,
}

impl Group {
    /// The rank `distance` after this one, around the end. The distance is at most the size.
    pub(crate) fn after(self, distance: u32) -> u32 {
        (self.rank + distance) % self.size
    }

    /// The rank `distance` before this one, around the end. The distance is at most the size.
    pub(crate) fn before(self, distance: u32) -> u32 {
        (self.rank + self.size - distance) % self.size
    }

    /// The other ranks, from the next one on and around the end.
    pub(crate) fn others(self) -> impl Iterator<Item = u32> {
        (1..self.size).map(move |distance| self.after(distance))
    }

    /// The powers of two below the size, ascending.
    pub(crate) fn distances(self) -> impl Iterator<Item = u32> {
        powers_below(self.size)
    }
}

/// The powers of two below a limit, ascending.
pub(crate) fn powers_below(limit: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).map(|exponent| 1 << exponent).take_while(move |power| *power < limit)
}
