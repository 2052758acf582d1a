//! Properties of a reduction's operation that decide on its algorithms.

/// An associative operation on vectors of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Elements that no division separates: 2 for pairs of a value and an index. Counts are multiples of it.
    pub unit: usize,
    /// Whether operands may be exchanged. Otherwise all results combine the ranks in their order.
    pub is_commutative: bool,
    /// Whether the result has the same bits however the operands are grouped.
    pub is_exact: bool,
    /// Whether the operation applies to parts of the vectors. Otherwise it gets whole vectors.
    pub is_divisible: bool,
}
