//! Balanced extents of a Cartesian topology.

use crate::error::TopologyError;

/// Fills the extents that are 0, so that all multiply to `nodes`. Those filled do not increase. Of all
/// possible extents they have the smallest difference between the largest and the smallest one, then the
/// smallest largest one.
///
/// # Errors
/// A negative extent or number of nodes; extents whose product does not divide the number of nodes.
pub fn create(nodes: i32, dims: &mut [i32]) -> Result<(), TopologyError> {
    if let Some(dimension) = dims.iter().position(|&extent| extent < 0) {
        return Err(TopologyError::Extent { dimension, extent: dims[dimension] });
    }
    let fixed = dims.iter().filter(|&&extent| extent > 0);
    let product = fixed.fold(1i128, |product, &extent| product.saturating_mul(i128::from(extent)));
    if nodes < 1 || i128::from(nodes) % product != 0 {
        return Err(TopologyError::Indivisible { nodes, product });
    }
    let free = dims.iter().filter(|&&extent| extent == 0).count();
    if free > 0 {
        let factors = balanced((i128::from(nodes) / product) as u64, free);
        dims.iter_mut().filter(|extent| **extent == 0).zip(factors).for_each(|(e, f)| *e = f as i32);
    }
    Ok(())
}

/// The factors of `nodes`, not increasing.
fn balanced(nodes: u64, count: usize) -> Vec<u64> {
    let divisors = divisors(nodes);
    let mut search = Search { divisors: &divisors, factors: Vec::new(), best: None };
    for &largest in &divisors {
        if power_is_less(largest, count, nodes) {
            continue;
        }
        let least = match &search.best {
            None => 1,
            // Only a smaller difference is better: the largest factors are tried in ascending order.
            Some(best) => largest - (best[0] - best[count - 1]) + 1,
        };
        // The smallest of the other factors shrinks as the largest one grows.
        if least > largest || (count > 1 && power_is_more(least, count - 1, nodes / largest)) {
            break;
        }
        search.factors.push(largest);
        search.fill(nodes / largest, count - 1, least);
        search.factors.pop();
    }
    search.best.unwrap_or_default()
}

/// Search for the factorisation with the largest smallest factor.
struct Search<'a> {
    divisors: &'a [u64],
    factors: Vec<u64>,
    best: Option<Vec<u64>>,
}

impl Search<'_> {
    /// Tries all `count` further factors of at least `least` that multiply to `rest`. Returns the least
    /// factor of a better factorisation.
    fn fill(&mut self, rest: u64, count: usize, mut least: u64) -> u64 {
        if count == 0 {
            let smallest = self.factors[self.factors.len() - 1];
            if rest == 1 && smallest >= least {
                self.best = Some(self.factors.clone());
                least = smallest + 1;
            }
            return least;
        }
        let most = self.factors[self.factors.len() - 1];
        for &factor in self.divisors.iter().take_while(|&&factor| factor <= most) {
            if factor < least || !rest.is_multiple_of(factor) || power_is_less(factor, count, rest) {
                continue;
            }
            if power_is_more(least, count - 1, rest / factor) {
                break;
            }
            self.factors.push(factor);
            least = self.fill(rest / factor, count - 1, least);
            self.factors.pop();
        }
        least
    }
}

/// Whether `base^exponent` is less than `limit`.
fn power_is_less(base: u64, exponent: usize, limit: u64) -> bool {
    power(base, exponent) < u128::from(limit)
}

/// Whether `base^exponent` is more than `limit`.
fn power_is_more(base: u64, exponent: usize, limit: u64) -> bool {
    power(base, exponent) > u128::from(limit)
}

/// `base^exponent`, or the largest number.
fn power(base: u64, exponent: usize) -> u128 {
    u128::from(base).saturating_pow(exponent.min(128) as u32)
}

/// All divisors in ascending order.
fn divisors(number: u64) -> Vec<u64> {
    let root = number.isqrt();
    let small: Vec<u64> = (1..=root).filter(|&divisor| number.is_multiple_of(divisor)).collect();
    let large: Vec<u64> = small.iter().rev().map(|divisor| number / divisor).collect();
    let doubled = usize::from(root * root == number);
    small.into_iter().chain(large.into_iter().skip(doubled)).collect()
}
