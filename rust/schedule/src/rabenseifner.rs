//! Rabenseifner's algorithm: recursive halving of the vector, and its inverse.
//!
//! Neighbours exchange halves of the vector first, then pairs of neighbours quarters, and so on. Each
//! combines adjacent ranges of ranks, so that the result is in rank order. In the end each rank has one part
//! of the result. The inverse collects the parts in the opposite order.

use crate::fold::Fold;
use crate::group::powers_below;
use crate::schedule::Schedule;
use crate::step::Run;

/// One exchange of a rank.
pub(crate) struct Exchange {
    /// Number of the other rank among those that remain.
    partner: u32,
    /// The part that this rank combined.
    kept: Run,
    /// The part that the other rank combined.
    sent: Run,
}

/// Combines the vectors of all ranks that remain, each a part of it. `unit` elements stay together.
pub(crate) fn halve(
    schedule: &mut Schedule,
    fold: &Fold,
    number: u32,
    vector: Run,
    unit: usize,
) -> Vec<Exchange> {
    let mut own = vector;
    let exchange = |distance| {
        let partner = number ^ distance;
        let lower_len = own.len / unit / 2 * unit;
        let lower = Run { start: own.start, len: lower_len };
        let upper = Run { start: own.start + lower_len, len: own.len - lower_len };
        let (kept, sent) = if number < partner { (lower, upper) } else { (upper, lower) };
        schedule.send(fold.rank(partner), sent);
        schedule.receive_combine(fold.rank(partner), kept, partner < number);
        own = kept;
        Exchange { partner, kept, sent }
    };
    powers_below(fold.size).map(exchange).collect()
}

/// Gives all parts of the result to all ranks that remain.
pub(crate) fn collect_at_all(schedule: &mut Schedule, fold: &Fold, exchanges: &[Exchange]) {
    for exchange in exchanges.iter().rev() {
        schedule.send(fold.rank(exchange.partner), exchange.kept);
        schedule.receive(fold.rank(exchange.partner), exchange.sent);
    }
}

/// Gives all parts of the result to the rank with number 0.
pub(crate) fn collect_at_first(schedule: &mut Schedule, fold: &Fold, number: u32, exchanges: &[Exchange]) {
    for exchange in exchanges.iter().rev() {
        if exchange.partner < number {
            schedule.send(fold.rank(exchange.partner), exchange.kept);
            return;
        }
        schedule.receive(fold.rank(exchange.partner), exchange.sent);
    }
}
