//! Resets: answers to packets of unknown or closed connections (5.8).

use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::super::packet::Packet;
use super::time::{MILLISECOND, Nanos};
use super::transmit::reset;

/// The shortest time between two answers to one source (5.8).
pub const RESET_EVERY: Nanos = 100 * MILLISECOND;
/// Sources that are remembered. Further sources are not answered until some are forgotten.
const REMEMBERED: usize = 1024;

/// The time of the last answer to each source of one socket. The driver defines what a source is.
#[derive(Debug)]
pub struct Resets<S> {
    answered: FxHashMap<S, Nanos>,
}

impl<S: Eq + Hash> Default for Resets<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Eq + Hash> Resets<S> {
    /// No answers yet.
    #[must_use]
    pub fn new() -> Self {
        Self { answered: FxHashMap::default() }
    }

    /// The answer to a packet of `source` for an unknown or closed connection: a RST with the id of that
    /// connection. `None` if that source was answered within [`RESET_EVERY`], whatever the id, since a sender
    /// with a forged source chooses the id. A RST is never answered. `closing_reset` is that of a closed
    /// connection ([`Connection::closing_reset`](super::connection::Connection::closing_reset)).
    pub fn answer(
        &mut self,
        now: Nanos,
        source: S,
        packet: &Packet,
        closing_reset: Option<Packet>,
    ) -> Option<Packet> {
        let is_recent = |at: &Nanos| now.saturating_sub(*at) < RESET_EVERY;
        if packet.extension.rst || self.answered.get(&source).is_some_and(is_recent) {
            return None;
        }
        if self.answered.len() >= REMEMBERED {
            self.answered.retain(|_, at| is_recent(at));
        }
        if self.answered.len() >= REMEMBERED {
            return None;
        }
        self.answered.insert(source, now);
        let mut answer = closing_reset.unwrap_or_else(|| reset(packet.extension.connection));
        // A peer that sends checksums accepts only packets with one.
        answer.extension.checked = packet.extension.checked;
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::extension::Extension;

    fn packet(connection: u64) -> Packet {
        Packet { extension: Extension::new(connection, 0), ..Packet::default() }
    }

    #[test]
    fn reset_has_a_checksum_if_the_packet_has_one() {
        let mut checked = packet(7);
        checked.extension.checked = true;
        let answer = Resets::new().answer(0, 1, &checked, None).expect("an answer");
        assert!(answer.extension.rst && answer.extension.checked, "{answer:?}");
    }

    /// Proves that each source gets one answer in 100 ms, that a RST gets no answer, and that memory is
    /// bounded.
    #[test]
    fn resets_are_limited_by_time_and_number() {
        let mut resets = Resets::new();
        assert_eq!(resets.answer(0, 1, &packet(7), None), Some(reset(7)));
        assert_eq!(resets.answer(RESET_EVERY - 1, 1, &packet(7), None), None);
        assert_eq!(resets.answer(RESET_EVERY - 1, 1, &packet(8), None), None, "whatever its number");
        assert!(resets.answer(RESET_EVERY, 1, &packet(7), None).is_some());
        assert_eq!(resets.answer(RESET_EVERY, 2, &reset(8), None), None);
        let answers =
            (0..5000).filter(|k| resets.answer(2 * RESET_EVERY, *k, &packet(100), None).is_some()).count();
        assert_eq!(answers, REMEMBERED);
        assert!(
            resets.answer(3 * RESET_EVERY, 9999, &packet(100), None).is_some(),
            "the others are forgotten"
        );
    }
}
