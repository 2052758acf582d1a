//! Matching: posted receives against arriving messages.
//!
//! The packet engine matches with it for all transports. A C MPI matches itself; messages taken from the
//! library early are queued here.

mod queue;

use crate::envelope::{Envelope, Selector};
use queue::{MESSAGE_LISTS, Place, Queue, RECEIVE_LISTS};

/// The posted-receive queue and the unexpected-message queue of one rank.
///
/// `R` is the data of a posted receive (a request), `M` an unexpected message (its octets or their location).
///
/// A receiver calls [`post`](Self::post). For a message that arrives the engine calls
/// [`match_arrival`](Self::match_arrival), and on `None` [`add_unexpected`](Self::add_unexpected) with the
/// same envelope, so it builds an `M` for unexpected messages only. Nothing may be posted between the two
/// calls; then no message that matches a posted receive is left unexpected.
///
/// Order is MPI's (MPI 4.1, 3.5 Semantics of Point-to-Point Communication):
///
/// - a message goes to the earliest posted receive that it fits, wildcards included;
/// - a receive takes the earliest arrived message that fits it, so messages from one source in one context
///   never overtake each other, and `ANY_SOURCE` takes the earliest arrival of all.
///
/// Cost: a search visits at most 16 entries in order, and then builds an index. So post, match, probe, take
/// and withdraw take constant time on average, with and without wildcards.
/// [`remove_unexpected`](Self::remove_unexpected) iterates over the whole queue, and
/// [`remove_unexpected_in`](Self::remove_unexpected_in) over the messages of one context if there is an
/// index. Storage is reused, so a steady state allocates nothing. A long queue releases its storage when it
/// is empty; contexts and tags without entries have no storage.
///
/// Bounds: the matcher counts and has no limit. The engine's credit limits unexpected messages, and the
/// program's requests limit posted receives.
#[derive(Debug)]
pub struct Matcher<R, M> {
    posted: Queue<Selector, R, RECEIVE_LISTS>,
    unexpected: Queue<Envelope, M, MESSAGE_LISTS>,
}

/// The outcome of [`Matcher::post`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Posted<R, M> {
    /// A message had arrived already; it left the queue.
    Matched {
        /// The message's envelope: the actual source and tag.
        envelope: Envelope,
        /// The message.
        message: M,
        /// The receive, given back.
        receive: R,
    },
    /// The receive waits for its message under this id.
    Waiting(PostId),
}

/// Names one posted receive of one [`Matcher`]; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PostId(Place);

impl<R, M> Matcher<R, M> {
    /// A matcher with both queues empty. Allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self { posted: Queue::new(), unexpected: Queue::new() }
    }

    /// Gives the receive the earliest unexpected message that fits, or lets it wait.
    ///
    /// # Panics
    /// With 2^32 - 1 receives waiting.
    #[inline]
    pub fn post(&mut self, selector: Selector, receive: R) -> Posted<R, M> {
        match self.take(&selector) {
            Some((envelope, message)) => Posted::Matched { envelope, message, receive },
            None => Posted::Waiting(PostId(self.posted.push(selector, receive))),
        }
    }

    /// Takes the earliest posted receive that a message with this envelope fits, and what it had asked for.
    ///
    /// On `None` nothing fits, and the caller continues with [`add_unexpected`](Self::add_unexpected).
    #[inline]
    pub fn match_arrival(&mut self, envelope: &Envelope) -> Option<(R, Selector)> {
        let slot = self.posted.find(envelope)?;
        let (selector, receive) = self.posted.remove_slot(slot)?;
        Some((receive, selector))
    }

    /// Keeps a message for which [`match_arrival`](Self::match_arrival) has just given `None`.
    ///
    /// # Panics
    /// With 2^32 - 1 messages unexpected.
    #[inline]
    pub fn add_unexpected(&mut self, envelope: Envelope, message: M) {
        self.unexpected.push(envelope, message);
    }

    /// Shows the message that a receive with this selector would take now (`MPI_Iprobe`).
    #[inline]
    #[must_use]
    pub fn probe(&mut self, selector: &Selector) -> Option<(Envelope, &M)> {
        let slot = self.unexpected.find(selector)?;
        self.unexpected.get_slot(slot)
    }

    /// Replaces the message that a receive with this selector would take now. The new one keeps its place.
    pub fn update(&mut self, selector: &Selector, f: impl FnOnce(M) -> M) {
        if let Some(slot) = self.unexpected.find(selector) {
            self.unexpected.update_slot(slot, f);
        }
    }

    /// Takes the message that a receive with this selector would take now: no other receive gets it.
    #[inline]
    pub fn take(&mut self, selector: &Selector) -> Option<(Envelope, M)> {
        let slot = self.unexpected.find(selector)?;
        self.unexpected.remove_slot(slot)
    }

    /// Takes a waiting receive back (cancel); `None` when it has been matched or withdrawn before.
    #[inline]
    pub fn withdraw(&mut self, id: PostId) -> Option<R> {
        let (_, receive) = self.posted.remove(id.0)?;
        Some(receive)
    }

    /// Takes the unexpected messages that `picks` picks, in arrival order.
    pub fn remove_unexpected(&mut self, picks: impl FnMut(&Envelope, &M) -> bool) -> Vec<(Envelope, M)> {
        self.unexpected.extract(picks)
    }

    /// Takes the unexpected messages of a context that `picks` picks, in arrival order; for communicators
    /// that are freed.
    pub fn remove_unexpected_in(
        &mut self,
        context: u64,
        picks: impl FnMut(&Envelope, &M) -> bool,
    ) -> Vec<(Envelope, M)> {
        self.unexpected.extract_in(context, picks)
    }

    /// The number of receives waiting.
    #[inline]
    #[must_use]
    pub fn posted_len(&self) -> usize {
        self.posted.len()
    }

    /// The number of unexpected messages.
    #[inline]
    #[must_use]
    pub fn unexpected_len(&self) -> usize {
        self.unexpected.len()
    }

    /// The waiting receives in posting order.
    pub fn posted(&self) -> impl Iterator<Item = (Selector, &R)> {
        self.posted.iter()
    }

    /// The unexpected messages of a context in arrival order.
    pub fn unexpected_in(&self, context: u64) -> impl Iterator<Item = (Envelope, &M)> {
        self.unexpected.iter_in(context)
    }

    /// The unexpected messages in arrival order; for a report of what was never received.
    pub fn unexpected(&self) -> impl Iterator<Item = (Envelope, &M)> {
        self.unexpected.iter()
    }
}

impl<R, M> Default for Matcher<R, M> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::queue::{INDEX_ABOVE, RETAINED};
    use super::*;

    type Numbers = Matcher<u32, u32>;

    fn envelope(source: u32, tag: i32) -> Envelope {
        Envelope { context: 0, source, tag }
    }

    fn selector(source: Option<u32>, tag: Option<i32>) -> Selector {
        Selector { context: 0, source, tag }
    }

    fn matched_message(posted: Posted<u32, u32>) -> Option<u32> {
        match posted {
            Posted::Matched { message, .. } => Some(message),
            Posted::Waiting(_) => None,
        }
    }

    /// The receive that the message is given to; without one it becomes unexpected.
    fn arrive(matcher: &mut Numbers, envelope: Envelope, message: u32) -> Option<u32> {
        let matched = matcher.match_arrival(&envelope);
        if matched.is_none() {
            matcher.add_unexpected(envelope, message);
        }
        matched.map(|(receive, _)| receive)
    }

    /// Adds enough entries of another context first that both queues are indexed.
    fn lengthened() -> Numbers {
        let mut matcher = Numbers::new();
        for tag in 0..=INDEX_ABOVE as i32 {
            matcher.add_unexpected(Envelope { context: 8, source: 0, tag }, 0);
            let other = Selector { context: 6, source: Some(0), tag: Some(tag) };
            assert_eq!(matched_message(matcher.post(other, 0)), None);
        }
        matcher
    }

    /// The earliest posted wins, a wildcard before an exact one and the other way round, in short and in long
    /// queues.
    #[test]
    fn earliest_posted_wins_wildcards_included() {
        let asked = [
            selector(None, Some(7)),
            selector(Some(1), Some(7)),
            selector(None, None),
            selector(Some(1), None),
        ];
        for mut matcher in [Numbers::new(), lengthened()] {
            for rotation in 0..4 {
                for (number, at) in (0..).zip((0..4).map(|at| (at + rotation) % 4)) {
                    assert_eq!(matched_message(matcher.post(asked[at], number)), None);
                }
                for number in 0..4 {
                    assert_eq!(arrive(&mut matcher, envelope(1, 7), 0), Some(number));
                }
            }
        }
    }

    /// Messages of one source come out in the order they came in, whether each is asked for exactly or by
    /// wildcards.
    #[test]
    fn messages_of_one_source_do_not_overtake() {
        for mut matcher in [Numbers::new(), lengthened()] {
            for message in 1..=4 {
                assert_eq!(arrive(&mut matcher, envelope(1, 7), message), None);
            }
            let asked = [(Some(1), Some(7)), (None, Some(7)), (Some(1), None), (None, None)]
                .map(|(s, t)| selector(s, t));
            for (message, asked) in (1..).zip(asked) {
                assert_eq!(matched_message(matcher.post(asked, 0)), Some(message));
            }
        }
    }

    /// Any-source takes the earliest arrival among those whose tag fits, not the lowest source.
    #[test]
    fn any_source_takes_the_earliest_arrival_that_fits() {
        for mut matcher in [Numbers::new(), lengthened()] {
            for (message, source, tag) in [(1, 5, 1), (2, 3, 2), (3, 1, 1), (4, 0, 2)] {
                assert_eq!(arrive(&mut matcher, envelope(source, tag), message), None);
            }
            assert_eq!(matched_message(matcher.post(selector(None, Some(2)), 0)), Some(2));
            assert_eq!(matched_message(matcher.post(selector(None, None), 0)), Some(1));
            assert_eq!(matched_message(matcher.post(selector(None, Some(2)), 0)), Some(4));
            assert_eq!(matched_message(matcher.post(selector(None, None), 0)), Some(3));
        }
    }

    /// A search that finds its entry at the head of a long queue builds no index; the first long search does.
    #[test]
    fn receives_in_the_order_of_their_messages_build_no_index() {
        let mut matcher = Numbers::new();
        for tag in 0..1000 {
            assert_eq!(matched_message(matcher.post(selector(Some(1), Some(tag)), tag as u32)), None);
        }
        for tag in 0..500 {
            assert_eq!(arrive(&mut matcher, envelope(1, tag), 0), Some(tag as u32));
        }
        assert_eq!(matcher.posted.capacities().1, 0);
        assert_eq!(arrive(&mut matcher, envelope(1, 999), 0), Some(999));
        assert!(matcher.posted.capacities().1 > 0);
        assert_eq!(arrive(&mut matcher, envelope(1, 500), 0), Some(500));
    }

    /// Equal source and tag in another context is another message, also where only the reserved bits differ.
    #[test]
    fn messages_match_receives_of_their_context_only() {
        for mut matcher in [Numbers::new(), lengthened()] {
            let shadow = crate::context::shadow(0);
            matcher.add_unexpected(Envelope { context: shadow, ..envelope(1, 7) }, 1);
            assert_eq!(matcher.probe(&selector(None, None)), None);
            let asked = Selector { context: shadow, ..selector(None, None) };
            assert_eq!(matcher.take(&asked).map(|(_, message)| message), Some(1));
        }
    }

    /// A probe leaves the message; a take removes it, and no later receive gets it.
    #[test]
    fn take_removes_the_message_from_all_receives() {
        let mut matcher = Numbers::new();
        matcher.add_unexpected(envelope(1, 7), 42);
        let asked = selector(None, Some(7));
        assert_eq!(matcher.probe(&asked), Some((envelope(1, 7), &42)));
        assert_eq!(matcher.take(&asked), Some((envelope(1, 7), 42)));
        assert_eq!(matcher.probe(&asked), None);
        assert_eq!(matched_message(matcher.post(asked, 0)), None);
    }

    /// The id of a receive that was matched or withdrawn names nothing, even when its slot is in use again.
    #[test]
    fn stale_ids_withdraw_nothing() {
        let mut matcher = Numbers::new();
        let mut post = |receive| match matcher.post(selector(Some(1), Some(7)), receive) {
            Posted::Waiting(id) => id,
            Posted::Matched { .. } => panic!("nothing has arrived"),
        };
        let (first, second, third) = (post(1), post(2), post(3));
        assert_eq!(arrive(&mut matcher, envelope(1, 7), 0), Some(1));
        assert_eq!(matcher.withdraw(second), Some(2));
        assert_eq!(matcher.withdraw(third), Some(3));
        for receive in 4..7 {
            assert_eq!(matched_message(matcher.post(selector(Some(1), Some(7)), receive)), None);
        }
        for stale in [first, second, third] {
            assert_eq!(matcher.withdraw(stale), None);
        }
        assert_eq!(matcher.posted_len(), 3);
    }

    /// Removed messages are in order, and the rest stays in order.
    #[test]
    fn messages_are_removed_in_order() {
        let mut matcher = Numbers::new();
        for number in 0..40 {
            let source = number % 3;
            assert_eq!(matched_message(matcher.post(selector(Some(source), Some(9)), number)), None);
            matcher.add_unexpected(envelope(source, 1), number);
        }
        let removed = matcher.remove_unexpected(|envelope, _| envelope.source != 1);
        assert!(removed.iter().map(|(_, number)| *number).eq((0..40).filter(|n| n % 3 != 1)));
        assert!(matcher.posted().map(|(_, n)| *n).eq(0..40));
        assert!(matcher.unexpected().map(|(_, n)| *n).eq((0..40).filter(|n| n % 3 == 1)));
    }

    /// The messages of one context come out in order, in short and in long queues; the others stay, and stay
    /// in order.
    #[test]
    fn messages_of_one_context_are_found_and_removed_in_order() {
        for count in [10, 100u32] {
            let mut matcher = Numbers::new();
            for number in 0..count {
                let context = 2 * u64::from(number % 5);
                matcher.add_unexpected(Envelope { context, source: number % 3, tag: 1 }, number);
            }
            let own = |context: u32| (0..count).filter(move |n| n % 5 == context);
            assert!(matcher.unexpected_in(4).map(|(_, n)| *n).eq(own(2)), "{count}");
            let removed = matcher.remove_unexpected_in(4, |_, number| number % 2 == 0);
            assert!(removed.iter().map(|(_, n)| *n).eq(own(2).filter(|n| n % 2 == 0)), "{count}");
            assert!(matcher.unexpected_in(4).map(|(_, n)| *n).eq(own(2).filter(|n| n % 2 == 1)), "{count}");
            let left = (0..count).filter(|n| n % 5 != 2 || n % 2 == 1);
            assert!(matcher.unexpected().map(|(_, n)| *n).eq(left), "{count}");
            matcher.remove_unexpected_in(4, |_, _| true);
            assert_eq!(matcher.unexpected_in(4).count(), 0);
            assert_eq!(matcher.remove_unexpected_in(20, |_, _| true), []);
            assert_eq!(matcher.unexpected_len(), own(0).count() * 4);
        }
    }

    /// Long queues taken from the far end: counts stay right, and an empty queue gives its storage back.
    #[test]
    fn emptied_queues_free_their_storage() {
        let mut matcher = Numbers::new();
        let names = (0..100_000u32).map(|n| (n % 64, n.cast_signed()));
        for (source, tag) in names.clone() {
            assert_eq!(arrive(&mut matcher, envelope(source, tag), tag.cast_unsigned()), None);
        }
        assert_eq!(matcher.unexpected_len(), 100_000);
        for (source, tag) in names.clone().rev() {
            let message = matched_message(matcher.post(selector(Some(source), Some(tag)), 0));
            assert_eq!(message, Some(tag.cast_unsigned()));
        }
        for (source, tag) in names.clone().take(10_000) {
            assert_eq!(matched_message(matcher.post(selector(Some(source), Some(tag)), 0)), None);
        }
        for (source, tag) in names.take(10_000).rev() {
            assert!(matcher.match_arrival(&envelope(source, tag)).is_some());
        }
        for (slots, index) in [matcher.posted.capacities(), matcher.unexpected.capacities()] {
            assert!(slots <= RETAINED, "{slots}");
            assert!(index <= 4 * RETAINED, "{index}");
        }
    }

    /// A million distinct tags and contexts leave nothing behind: not in a short queue, not in a queue that
    /// stays long.
    #[test]
    fn storage_is_freed_after_a_million_tags() {
        for mut matcher in [Numbers::new(), lengthened()] {
            for number in 0..1_000_000u32 {
                let context = u64::from(number % 1000) * 1_000_000;
                let envelope = Envelope { context, ..envelope(number % 7, number.cast_signed()) };
                let asked = Selector::from(envelope);
                if number % 2 == 0 {
                    assert_eq!(matched_message(matcher.post(asked, number)), None);
                    assert_eq!(arrive(&mut matcher, envelope, 0), Some(number));
                } else {
                    matcher.add_unexpected(envelope, number);
                    assert_eq!(matched_message(matcher.post(asked, 0)), Some(number));
                }
                if number % 1000 == 999 {
                    for (slots, index) in [matcher.posted.capacities(), matcher.unexpected.capacities()] {
                        assert!(slots <= 4 * INDEX_ABOVE && index <= 16 * INDEX_ABOVE, "{slots}, {index}");
                    }
                }
            }
        }
    }
}
