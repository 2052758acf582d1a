//! Delays of the answers to wrong keys. They make guessing slow.

use std::collections::VecDeque;

/// Delay of the first wrong key.
const FIRST_MS: u64 = 200;
/// Maximum delay.
const LONGEST_MS: u64 = 5_000;
/// Time without a wrong key after which the delays begin again with the first one.
const FORGET_MS: u64 = 60_000;
/// Number of delayed connections at which the server accepts no new ones.
const DELAYED_MAX: usize = 64;

/// Connections that gave a wrong key, each with the end of its delay. No sockets and no clock: times are
/// milliseconds of any monotonic clock.
///
/// [`put`](Self::put) adds a connection, [`release`](Self::release) returns those whose delay is over, and
/// [`next_deadline`](Self::next_deadline) is the time of the next one. The first delay is 200 ms, and each
/// further one is twice as long, up to 5 s. After a minute without a wrong key the delays begin again. The
/// driver accepts no new connection while [`is_full`](Self::is_full). So at most 64 connections are delayed,
/// besides those that were open before, and all clients make at most 13 attempts in a second. A connection
/// that its client closes early counts until its delay is over.
#[derive(Debug)]
pub struct Penalties<T> {
    /// Ends of the delays in their order, each with its connection.
    delayed: VecDeque<(u64, T)>,
    /// The latest delay, and the time of the key that caused it.
    last: Option<(u64, u64)>,
}

impl<T> Default for Penalties<T> {
    fn default() -> Penalties<T> {
        Penalties { delayed: VecDeque::new(), last: None }
    }
}

impl<T> Penalties<T> {
    /// Adds a connection that gave a wrong key now.
    pub fn put(&mut self, now_ms: u64, one: T) {
        let recent = self.last.filter(|(_, at_ms)| now_ms.saturating_sub(*at_ms) < FORGET_MS);
        let wait_ms = recent.map_or(FIRST_MS, |(wait_ms, _)| (wait_ms * 2).min(LONGEST_MS));
        self.last = Some((wait_ms, now_ms));
        // Delays grow, and restart only after the longest one, so the queue stays in order.
        self.delayed.push_back((now_ms.saturating_add(wait_ms), one));
    }

    /// Whether the driver must not accept connections.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.delayed.len() >= DELAYED_MAX
    }

    /// The end of the next delay, if there is one.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.delayed.front().map(|(until_ms, _)| *until_ms)
    }

    /// Removes the connections whose delay is over, and returns them.
    pub fn release(&mut self, now_ms: u64) -> impl Iterator<Item = T> {
        let count = self.delayed.iter().take_while(|(until_ms, _)| *until_ms <= now_ms).count();
        self.delayed.drain(..count).map(|(_, one)| one)
    }
}

const _: () = assert!(LONGEST_MS < FORGET_MS && FIRST_MS <= LONGEST_MS);

#[cfg(test)]
mod tests {
    use super::*;

    fn released(penalties: &mut Penalties<u32>, now_ms: u64) -> Vec<u32> {
        penalties.release(now_ms).collect()
    }

    #[test]
    fn each_waits_twice_as_long_as_the_one_before_up_to_the_longest() {
        let mut penalties = Penalties::default();
        let mut now_ms = 1000;
        for wait_ms in [200, 400, 800, 1600, 3200, 5000, 5000, 5000] {
            penalties.put(now_ms, 7);
            assert_eq!(penalties.next_deadline(), Some(now_ms + wait_ms));
            assert!(released(&mut penalties, now_ms + wait_ms - 1).is_empty());
            now_ms += wait_ms;
            assert_eq!(released(&mut penalties, now_ms), [7]);
            assert_eq!(penalties.next_deadline(), None);
        }
    }

    #[test]
    fn delay_restarts_after_a_minute_without_a_wrong_key() {
        let mut penalties = Penalties::default();
        (0..10).for_each(|one| penalties.put(0, one));
        assert_eq!(released(&mut penalties, 5000).len(), 10);
        penalties.put(59_999, 10);
        assert_eq!(penalties.next_deadline(), Some(64_999), "not yet");
        assert_eq!(released(&mut penalties, 64_999), [10]);
        penalties.put(119_999, 11);
        assert_eq!(penalties.next_deadline(), Some(120_199));
    }

    #[test]
    fn simultaneous_penalties_are_released_in_order() {
        let mut penalties = Penalties::default();
        (0..4).for_each(|one| penalties.put(0, one));
        assert_eq!(released(&mut penalties, 400), [0, 1]);
        assert_eq!(released(&mut penalties, 1600), [2, 3]);
    }

    /// Proves the bound on attempts: as many as the server admits, in any order.
    #[test]
    fn rate_of_attempts_is_at_most_thirteen_a_second() {
        let mut penalties = Penalties::default();
        let mut tries = 0;
        for now_ms in 0..160_000 {
            penalties.release(now_ms).for_each(drop);
            while !penalties.is_full() {
                penalties.put(now_ms, 0);
                tries += u32::from(now_ms >= 60_000);
            }
        }
        assert!(tries <= 13 * 100, "{tries} in 100 s");
        assert_eq!(penalties.delayed.len(), DELAYED_MAX);
    }

    #[test]
    fn penalties_at_the_largest_time_do_not_overflow() {
        let mut penalties = Penalties::default();
        penalties.put(u64::MAX - 1, 1);
        penalties.put(u64::MAX, 2);
        assert_eq!(released(&mut penalties, u64::MAX), [1, 2]);
    }
}
