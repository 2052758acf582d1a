//! Ordering behind a foreign rank's long message that may turn out to be the first half of a split one.
//!
//! A foreign sender does not number the halves of a split message: the second half is its next message with
//! the same context and tag. The secondary header, the last octets of the first half, states whether there is
//! one. While a matched long message is still arriving, the next message with its tag is ambiguous.
//!
//! The ambiguous message and every later one from the same sender and context are deferred: neither matched
//! nor visible to probes. They are replayed in order when the long message is complete. Hence nothing is
//! overtaken and no receive gets a lone half. The long message completes without a further receive, so
//! deferring cannot deadlock.

use std::collections::VecDeque;

use mpjdev_proto::envelope::Envelope;

/// The ambiguous and the deferred messages of all foreign ranks. `M` is a deferred message.
///
/// Invariants: there is one stream for a source and context, and only while a message of it is ambiguous; a
/// stream holds messages of its own source and context.
#[derive(Debug)]
pub(crate) struct ForeignOrder<M> {
    streams: Vec<Stream<M>>,
}

/// The ambiguous and the deferred messages of one foreign rank in one context.
#[derive(Debug)]
struct Stream<M> {
    source: u32,
    context: u64,
    /// Tag and token of messages that are matched and have not arrived in full, each with another tag.
    ambiguous: Vec<(i32, u64)>,
    /// Deferred messages, in order.
    deferred: VecDeque<(Envelope, M)>,
}

impl<M> Stream<M> {
    fn is_of(&self, envelope: &Envelope) -> bool {
        (self.source, self.context) == (envelope.source, envelope.context)
    }

    fn is_ambiguous(&self, tag: i32) -> bool {
        self.ambiguous.iter().any(|(ambiguous, _)| *ambiguous == tag)
    }
}

impl<M> Default for ForeignOrder<M> {
    fn default() -> Self {
        ForeignOrder { streams: Vec::new() }
    }
}

impl<M> ForeignOrder<M> {
    /// Whether no message is ambiguous.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Whether an arriving message must be deferred.
    #[inline]
    pub(crate) fn must_defer(&self, envelope: &Envelope) -> bool {
        !self.streams.is_empty() && self.is_behind_ambiguous(envelope)
    }

    #[cold]
    fn is_behind_ambiguous(&self, envelope: &Envelope) -> bool {
        let stream = self.streams.iter().find(|stream| stream.is_of(envelope));
        stream.is_some_and(|stream| !stream.deferred.is_empty() || stream.is_ambiguous(envelope.tag))
    }

    /// Defers a message that must be deferred.
    pub(crate) fn defer(&mut self, envelope: Envelope, message: M) {
        let stream = self.streams.iter_mut().find(|stream| stream.is_of(&envelope));
        debug_assert!(stream.is_some(), "a message is deferred behind no other");
        if let Some(stream) = stream {
            stream.deferred.push_back((envelope, message));
        }
    }

    /// Records a matched message that has not arrived in full. `behind` are the messages of its stream that
    /// have arrived after it and are not deferred yet.
    #[cold]
    pub(crate) fn note_ambiguous(&mut self, envelope: Envelope, token: u64, behind: Vec<(Envelope, M)>) {
        let at = self.streams.iter().position(|stream| stream.is_of(&envelope)).unwrap_or_else(|| {
            let Envelope { source, context, .. } = envelope;
            let (ambiguous, deferred) = (Vec::new(), VecDeque::new());
            self.streams.push(Stream { source, context, ambiguous, deferred });
            self.streams.len() - 1
        });
        let stream = &mut self.streams[at];
        stream.ambiguous.push((envelope.tag, token));
        // The messages that are deferred already arrived later.
        behind.into_iter().rev().for_each(|message| stream.deferred.push_front(message));
    }

    /// Records that a message has arrived in full; true if it was ambiguous. The caller then replays.
    #[inline]
    pub(crate) fn note_complete(&mut self, envelope: &Envelope, token: u64) -> bool {
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.is_of(envelope)) else {
            return false;
        };
        let before = stream.ambiguous.len();
        stream.ambiguous.retain(|(_, ambiguous)| *ambiguous != token);
        stream.ambiguous.len() != before
    }

    /// The next deferred message to replay; `None` when there is none, or when it is still ambiguous.
    pub(crate) fn next_replayed(&mut self, source: u32, context: u64) -> Option<(Envelope, M)> {
        let is_it = |stream: &Stream<M>| (stream.source, stream.context) == (source, context);
        let at = self.streams.iter().position(is_it)?;
        let stream = &mut self.streams[at];
        match stream.deferred.front() {
            Some((envelope, _)) if stream.is_ambiguous(envelope.tag) => None,
            Some(_) => stream.deferred.pop_front(),
            None => {
                if stream.ambiguous.is_empty() {
                    self.streams.swap_remove(at);
                }
                None
            }
        }
    }

    /// Takes the earliest deferred message with this envelope.
    pub(crate) fn take(&mut self, envelope: &Envelope) -> Option<(Envelope, M)> {
        let stream = self.streams.iter_mut().find(|stream| stream.is_of(envelope))?;
        let at = stream.deferred.iter().position(|(deferred, _)| deferred == envelope)?;
        stream.deferred.remove(at)
    }

    /// Takes the earliest deferred message of a source that `picks` selects.
    pub(crate) fn take_from(&mut self, source: u32, picks: impl Fn(&M) -> bool) -> Option<M> {
        self.streams.iter_mut().filter(|stream| stream.source == source).find_map(|stream| {
            let at = stream.deferred.iter().position(|(_, message)| picks(message))?;
            stream.deferred.remove(at).map(|(_, message)| message)
        })
    }

    /// Takes all deferred messages of a source.
    pub(crate) fn drain(&mut self, source: u32) -> Vec<(Envelope, M)> {
        let streams = self.streams.iter_mut().filter(|stream| stream.source == source);
        streams.flat_map(|stream| stream.deferred.drain(..)).collect()
    }

    /// Forgets ambiguous messages that were abandoned. `is_pending` states whether a receive still waits for
    /// the message with this source and token. Returns source and context of the streams to replay.
    pub(crate) fn forget_abandoned(&mut self, is_pending: impl Fn(u32, u64) -> bool) -> Vec<(u32, u64)> {
        let mut changed = Vec::new();
        for stream in &mut self.streams {
            let before = stream.ambiguous.len();
            stream.ambiguous.retain(|(_, token)| is_pending(stream.source, *token));
            if stream.ambiguous.len() != before {
                changed.push((stream.source, stream.context));
            }
        }
        changed
    }

    /// The deferred messages, in order in each stream.
    pub(crate) fn deferred(&self) -> impl Iterator<Item = (Envelope, &M)> {
        let deferred = self.streams.iter().flat_map(|stream| &stream.deferred);
        deferred.map(|(envelope, message)| (*envelope, message))
    }

    /// Panics when an invariant does not hold between two steps. `is_pending` states whether the message with
    /// this source and token is still waited for.
    pub(crate) fn check(&self, is_pending: impl Fn(u32, u64) -> bool) {
        for (at, stream) in self.streams.iter().enumerate() {
            let Stream { source, context, ambiguous, deferred } = stream;
            let is_same = |other: &Stream<M>| (other.source, other.context) == (*source, *context);
            assert!(!self.streams[..at].iter().any(is_same), "rank {source} has two streams");
            assert!(!ambiguous.is_empty(), "messages of rank {source} are deferred behind no other");
            assert!(ambiguous.iter().all(|(_, token)| is_pending(*source, *token)), "one was abandoned");
            assert!(deferred.iter().all(|(envelope, _)| stream.is_of(envelope)), "a message is elsewhere");
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn envelope(tag: i32) -> Envelope {
        Envelope { context: 4, source: 1, tag }
    }

    fn replay(order: &mut ForeignOrder<u32>) -> Vec<u32> {
        std::iter::from_fn(|| order.next_replayed(1, 4)).map(|(_, message)| message).collect()
    }

    #[test]
    fn messages_behind_an_ambiguous_one_are_replayed_in_order() {
        let mut order = ForeignOrder::default();
        assert!(!order.must_defer(&envelope(7)));
        order.note_ambiguous(envelope(7), 100, Vec::new());
        assert!(!order.must_defer(&envelope(8)), "another tag overtakes nothing");
        for (message, tag) in [(0, 7), (1, 8), (2, 7)] {
            assert!(order.must_defer(&envelope(tag)));
            order.defer(envelope(tag), message);
        }
        order.check(|_, token| token == 100);
        assert!(replay(&mut order).is_empty());
        assert!(!order.note_complete(&envelope(7), 99) && order.note_complete(&envelope(7), 100));
        assert_eq!(replay(&mut order), [0, 1, 2]);
        assert!(order.is_empty());
    }

    #[test]
    fn other_sources_and_contexts_are_not_deferred() {
        let mut order = ForeignOrder::<u32>::default();
        order.note_ambiguous(envelope(7), 100, Vec::new());
        assert!(!order.must_defer(&Envelope { source: 2, ..envelope(7) }));
        assert!(!order.must_defer(&Envelope { context: 6, ..envelope(7) }));
    }

    #[test]
    fn replay_stops_at_the_next_ambiguous_tag() {
        let mut order = ForeignOrder::default();
        order.note_ambiguous(envelope(7), 100, Vec::new());
        order.note_ambiguous(envelope(8), 101, Vec::new());
        for (message, tag) in [(0, 7), (1, 8), (2, 7)] {
            order.defer(envelope(tag), message);
        }
        assert!(order.note_complete(&envelope(7), 100));
        assert_eq!(replay(&mut order), [0]);
        order.check(|_, token| token == 101);
        assert!(order.must_defer(&envelope(9)), "nothing overtakes a deferred message");
        assert!(order.note_complete(&envelope(8), 101));
        assert_eq!(replay(&mut order), [1, 2]);
    }

    #[test]
    fn unexpected_messages_are_replayed_before_later_deferred_ones() {
        let mut order = ForeignOrder::default();
        order.note_ambiguous(envelope(7), 100, vec![(envelope(7), 1), (envelope(7), 2)]);
        order.defer(envelope(7), 3);
        order.note_ambiguous(envelope(8), 101, vec![(envelope(8), 0)]);
        assert_eq!(order.deferred().map(|(_, message)| *message).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(order.take(&envelope(7)), Some((envelope(7), 1)), "the second half");
        assert_eq!(order.take_from(1, |message| *message == 3), Some(3));
        assert_eq!(order.take_from(2, |_| true), None);
        assert_eq!(order.drain(1).len(), 2);
        order.check(|_, _| true);
    }

    #[test]
    fn deferred_messages_behind_an_abandoned_one_are_replayed() {
        let mut order = ForeignOrder::default();
        order.note_ambiguous(envelope(7), 100, Vec::new());
        order.defer(envelope(7), 0);
        assert!(order.forget_abandoned(|_, _| true).is_empty());
        assert_eq!(order.forget_abandoned(|source, token| (source, token) != (1, 100)), [(1, 4)]);
        assert_eq!(replay(&mut order), [0]);
        assert!(order.is_empty());
    }
}
