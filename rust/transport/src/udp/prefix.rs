//! Octets of a message that have arrived from its start on, while datagrams arrive out of order.

use std::collections::BTreeMap;

/// Octets after which the start of a message is reported again: few reports for many short datagrams.
const STEP: usize = 32 << 10;

/// The contiguous start of a message.
#[derive(Debug)]
pub(super) struct Prefix {
    len: usize,
    reported: usize,
    /// End of each run behind a gap, by its start. The window of the connection bounds their number.
    later: BTreeMap<usize, usize>,
}

impl Prefix {
    /// The first `len` octets.
    pub(super) fn new(len: usize) -> Prefix {
        Prefix { len, reported: len, later: BTreeMap::new() }
    }

    /// Adds octets that have arrived. Returns the length of the prefix when it is due to be reported.
    pub(super) fn add(&mut self, offset: usize, len: usize) -> Option<usize> {
        if offset > self.len {
            self.later.insert(offset, offset + len);
            return None;
        }
        self.len = self.len.max(offset + len);
        while let Some(run) = self.later.first_entry().filter(|run| *run.key() <= self.len) {
            self.len = self.len.max(run.remove());
        }
        let is_due = self.len >= self.reported + STEP;
        if is_due {
            self.reported = self.len;
        }
        is_due.then_some(self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_behind_a_gap_count_once_the_gap_is_filled() {
        let mut prefix = Prefix::new(8);
        assert_eq!(prefix.add(8, STEP), Some(8 + STEP));
        assert_eq!(prefix.add(8 + 3 * STEP, STEP), None);
        assert_eq!(prefix.add(8 + 2 * STEP, STEP), None);
        assert_eq!(prefix.add(8 + STEP, STEP), Some(8 + 4 * STEP));
        assert!(prefix.later.is_empty());
    }

    #[test]
    fn short_datagrams_are_reported_together() {
        let mut prefix = Prefix::new(8);
        let reports: Vec<usize> = (0..64).filter_map(|i| prefix.add(8 + 1024 * i, 1024)).collect();
        assert_eq!(reports, [8 + STEP, 8 + 2 * STEP]);
    }
}
