//! Length from which copies go past the caches: decision 0003 has the figures.

use std::sync::OnceLock;

/// Bounds of the limit. The largest one also stands for an unknown cache.
const LEAST: usize = 8 << 20;
const MOST: usize = 32 << 20;
/// Runs of one length that two ranks use in turn: an array and a message of each.
const RUNS: usize = 4;

/// Whether a copy of this length goes past the caches.
#[inline(always)]
pub(super) fn is_streamed(len: usize) -> bool {
    len >= LEAST && len >= limit()
}

#[cold]
fn limit() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let size = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index3/size");
        limit_of(size.ok().as_deref().and_then(octets))
    })
}

fn limit_of(cache: Option<usize>) -> usize {
    cache.map_or(MOST, |cache| (cache / RUNS).clamp(LEAST, MOST))
}

/// The octets of a cache as the kernel prints them: `32768K`.
fn octets(size: &str) -> Option<usize> {
    size.trim().strip_suffix('K')?.parse::<usize>().ok()?.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_a_quarter_of_the_cache_between_its_bounds() {
        let of = |size| limit_of(octets(size));
        assert_eq!(of("65536K\n"), 16 << 20);
        assert_eq!(of("107520K\n"), 105 << 18);
        assert_eq!((of("1024K"), of("262144K")), (LEAST, MOST));
        assert_eq!([of(""), of("K"), of("32M"), of("99999999999999999999K")], [MOST; 4]);
    }

    #[test]
    fn copies_below_the_least_limit_are_not_streamed() {
        assert!(!is_streamed(LEAST - 1) && is_streamed(MOST));
    }
}
