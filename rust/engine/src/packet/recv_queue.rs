//! Receive queue: posted receives, unexpected messages, and receives that are matched in part.

use std::collections::BTreeSet;

use mpjdev_proto::context::{is_internal, is_shadow, shadow};
use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_proto::freed::FreedContexts;
use mpjdev_proto::matching::{Matcher, PostId, Posted};

use crate::packet::foreign_order::ForeignOrder;
use crate::packet::partial_recv::{AwaitedSecond, Completion, PendingRendezvous};
use crate::packet::unexpected::Unexpected;
use crate::request::RequestId;

/// The receives and messages of one rank that wait for each other.
///
/// Invariants: a request is in one list at most: a posted receive, one that awaits its second half, or one
/// with a pending rendezvous. A message is unexpected or deferred, and deferred only behind a message with a
/// pending rendezvous.
#[derive(Debug, Default)]
pub(crate) struct RecvQueue {
    matcher: Matcher<RequestId, Box<Unexpected>>,
    /// Receives that have their first half.
    awaited_seconds: Vec<AwaitedSecond>,
    /// Matched messages that have arrived in part.
    rendezvous: Vec<PendingRendezvous>,
    foreign_order: ForeignOrder<Box<Unexpected>>,
    freed: Freed,
}

/// The freed communicators of a rank.
#[derive(Debug, Default)]
struct Freed {
    /// Contexts of programs' messages, and those of collective operations, which end with the last reference.
    contexts: [FreedContexts; 2],
    /// Contexts of freed communicators with second halves that were kept.
    kept: BTreeSet<u64>,
}

// ---- Matching

impl RecvQueue {
    /// Gives a receive the earliest unexpected message that fits, or lets it wait.
    pub(crate) fn post(&mut self, selector: Selector, id: RequestId) -> Posted<RequestId, Box<Unexpected>> {
        self.matcher.post(selector, id)
    }

    /// Takes a posted receive back; false when it has been matched or withdrawn before.
    pub(crate) fn withdraw(&mut self, post: PostId) -> bool {
        self.matcher.withdraw(post).is_some()
    }

    /// Takes the earliest posted receive that a message with this envelope fits.
    #[inline]
    pub(crate) fn match_arrival(&mut self, envelope: &Envelope) -> Option<RequestId> {
        match self.matcher.posted_len() {
            0 => None,
            _ => self.matcher.match_arrival(envelope).map(|(id, _)| id),
        }
    }

    /// Whether no receive and no message is here, so that the next message of a source is the first one for a
    /// receive from there.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.matcher.posted_len() == 0
            && self.matcher.unexpected_len() == 0
            && self.awaited_seconds.is_empty()
            && self.foreign_order.is_empty()
    }

    /// Keeps a message that no posted receive takes.
    #[inline]
    pub(crate) fn add_unexpected(&mut self, envelope: Envelope, message: Unexpected) {
        self.matcher.add_unexpected(envelope, Box::new(message));
    }

    /// The number of unexpected messages.
    #[inline]
    pub(crate) fn unexpected_len(&self) -> usize {
        self.matcher.unexpected_len()
    }

    /// The message that a receive with this selector would take now.
    #[inline]
    pub(crate) fn probe(&mut self, selector: &Selector) -> Option<(Envelope, &Unexpected)> {
        self.matcher.probe(selector).map(|(envelope, message)| (envelope, &**message))
    }

    /// Takes the message that a receive with this selector would take now.
    #[inline]
    pub(crate) fn take(&mut self, selector: &Selector) -> Option<(Envelope, Box<Unexpected>)> {
        self.matcher.take(selector)
    }

    /// Takes the unexpected or deferred messages with this token, which their sender has withdrawn.
    pub(crate) fn take_cancelled(&mut self, source: u32, token: u64) -> Vec<Unexpected> {
        let is_it = |message: &Unexpected| message.token() == Some(token);
        let unexpected =
            self.matcher.remove_unexpected(|envelope, message| envelope.source == source && is_it(message));
        let deferred = self.foreign_order.take_from(source, |message| is_it(message));
        unexpected.into_iter().map(|(_, message)| *message).chain(deferred.map(|message| *message)).collect()
    }

    /// All messages that no receive has taken.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (Envelope, &Unexpected)> {
        let messages = self.matcher.unexpected().chain(self.foreign_order.deferred());
        messages.map(|(envelope, message)| (envelope, &**message))
    }

    /// All receives here, each with the envelope that it still waits for.
    pub(crate) fn receives(&self) -> impl Iterator<Item = (RequestId, Selector)> {
        self.matcher.posted().map(|(selector, id)| (*id, selector)).chain(self.partial_receives())
    }

    /// The envelope that a receive still waits for when its message has arrived in part.
    pub(crate) fn partial(&self, id: RequestId) -> Option<Selector> {
        self.partial_receives().find(|(request, _)| *request == id).map(|(_, selector)| selector)
    }

    fn partial_receives(&self) -> impl Iterator<Item = (RequestId, Selector)> {
        let halves = self.awaited_seconds.iter().map(AwaitedSecond::waits_for);
        halves.chain(self.rendezvous.iter().map(PendingRendezvous::waits_for))
    }
}

// ---- Messages that arrive in part

impl RecvQueue {
    /// Lets a receive wait for its second half. [`take_second`](Self::take_second) has not found it.
    pub(crate) fn await_second(&mut self, half: AwaitedSecond) {
        self.awaited_seconds.push(half);
    }

    /// Takes the second half of a message if it has arrived.
    pub(crate) fn take_second(&mut self, second: &Envelope) -> Option<(Envelope, Box<Unexpected>)> {
        let deferred = self.foreign_order.take(second);
        deferred.or_else(|| self.matcher.take(&Selector::from(*second)))
    }

    /// Takes the receive that waits for this second half.
    #[inline]
    pub(crate) fn take_awaiting(&mut self, second: &Envelope) -> Option<AwaitedSecond> {
        if self.awaited_seconds.is_empty() {
            return None;
        }
        let at = self.awaited_seconds.iter().position(|half| half.second() == second)?;
        Some(self.awaited_seconds.remove(at))
    }

    /// Lets a receive wait for the rest of its message.
    pub(crate) fn add_rendezvous(&mut self, pending: PendingRendezvous) {
        self.rendezvous.push(pending);
    }

    /// The receive that waits for the rest of this message as its only or its first physical one.
    pub(crate) fn rendezvous_receive(
        &mut self,
        source: u32,
        token: u64,
    ) -> Option<(&mut RequestId, Envelope)> {
        self.rendezvous.iter_mut().find(|pending| pending.is_of(source, token))?.receive()
    }

    /// Takes the receive that waits for the rest of this message.
    pub(crate) fn take_rendezvous(&mut self, source: u32, token: u64) -> Option<Completion> {
        let at = self.rendezvous.iter().position(|pending| pending.is_of(source, token))?;
        Some(self.rendezvous.swap_remove(at).into_completion())
    }

    /// Forgets a receive whose message has arrived in part. The rest of it will be dropped.
    pub(crate) fn forget_partial(&mut self, id: RequestId) {
        self.awaited_seconds.retain(|half| half.request() != id);
        self.rendezvous.retain(|pending| pending.request() != id);
    }
}

// ---- Order of foreign messages

impl RecvQueue {
    /// Whether an arriving message must be deferred behind a foreign rank's long one.
    #[inline]
    pub(crate) fn must_defer(&self, envelope: &Envelope) -> bool {
        self.foreign_order.must_defer(envelope)
    }

    /// Defers a message that must be deferred.
    pub(crate) fn defer(&mut self, envelope: Envelope, message: Unexpected) {
        self.foreign_order.defer(envelope, Box::new(message));
    }

    /// Records a foreign rank's matched message that has not arrived in full, and defers the unexpected
    /// messages behind it.
    #[cold]
    pub(crate) fn note_ambiguous(&mut self, envelope: Envelope, token: u64) {
        let mut behind = Vec::new();
        if self.matcher.probe(&Selector::from(envelope)).is_some() {
            let mut is_behind = false;
            behind = self.matcher.remove_unexpected(|other, _| {
                is_behind |= *other == envelope;
                is_behind && (other.source, other.context) == (envelope.source, envelope.context)
            });
        }
        self.foreign_order.note_ambiguous(envelope, token, behind);
    }

    /// Records that a message has arrived in full; true if others were deferred behind it. The caller then
    /// replays them.
    #[inline]
    pub(crate) fn note_complete(&mut self, envelope: &Envelope, token: u64) -> bool {
        self.foreign_order.note_complete(envelope, token)
    }

    /// The next deferred message to replay.
    pub(crate) fn next_replayed(&mut self, source: u32, context: u64) -> Option<(Envelope, Box<Unexpected>)> {
        self.foreign_order.next_replayed(source, context)
    }

    /// Forgets ambiguous messages whose receives were abandoned. Returns source and context of the streams to
    /// replay.
    pub(crate) fn forget_ambiguous(&mut self) -> Vec<(u32, u64)> {
        if self.foreign_order.is_empty() {
            return Vec::new();
        }
        let rendezvous = &self.rendezvous;
        let is_pending = |source, token| rendezvous.iter().any(|pending| pending.is_of(source, token));
        self.foreign_order.forget_abandoned(is_pending)
    }

    /// Takes all deferred messages of a source.
    pub(crate) fn take_deferred(&mut self, source: u32) -> Vec<(Envelope, Box<Unexpected>)> {
        self.foreign_order.drain(source)
    }
}

// ---- Freed communicators

impl RecvQueue {
    /// Whether a communicator was freed, by one of its contexts.
    #[inline]
    pub(crate) fn is_freed(&self, context: u64) -> bool {
        self.freed.contexts[usize::from(is_internal(context))].contains(context)
    }

    /// Records that a communicator is freed, by its own context. Its collective operations end with the last
    /// reference.
    pub(crate) fn free(&mut self, context: u64, is_last: bool) {
        self.freed.contexts[0].insert(context);
        if is_last {
            self.freed.contexts[1].insert(context);
        }
    }

    /// Whether an arriving message that no posted receive takes is dropped with its communicator. A second
    /// half is kept while its first half has arrived in part.
    pub(crate) fn must_drop(&mut self, envelope: &Envelope) -> bool {
        if !self.is_freed(envelope.context) {
            return false;
        }
        let keeps = is_shadow(envelope.context) && self.may_await(envelope);
        if keeps {
            self.freed.kept.insert(envelope.context);
        }
        !keeps
    }

    /// Whether this may be the second half of a message that a receive has in part.
    fn may_await(&self, second: &Envelope) -> bool {
        let is_first =
            |first: &Envelope| (first.source, shadow(first.context)) == (second.source, second.context);
        let mut firsts = self.rendezvous.iter().filter_map(|pending| pending.completion().first());
        firsts.any(is_first)
    }

    /// Takes the unexpected messages in a context of a freed communicator, but for second halves that may
    /// still be awaited.
    pub(crate) fn take_freed(&mut self, context: u64) -> Vec<(Envelope, Box<Unexpected>)> {
        if !self.is_freed(context) {
            return Vec::new();
        }
        let mut kept = Vec::new();
        if is_shadow(context) {
            let here = self.matcher.unexpected_in(context).map(|(envelope, _)| envelope);
            kept.extend(here.filter(|envelope| self.may_await(envelope)));
        }
        if !kept.is_empty() {
            self.freed.kept.insert(context);
        }
        self.matcher.remove_unexpected_in(context, |envelope, _| !kept.contains(envelope))
    }

    /// The contexts with kept second halves. The caller takes their messages once more.
    #[inline]
    pub(crate) fn take_kept(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.freed.kept)
    }
}

// ---- Invariants

impl RecvQueue {
    /// Panics when an invariant does not hold between two steps. Takes time for each receive.
    pub(crate) fn check(&self) {
        let mut seen = BTreeSet::new();
        for (id, _) in self.receives() {
            assert!(seen.insert(u64::from(id)), "a request is in two lists");
        }
        let is_pending = |source, token| self.rendezvous.iter().any(|pending| pending.is_of(source, token));
        self.foreign_order.check(is_pending);
    }

    /// The number of receives and messages here.
    pub(crate) fn len(&self) -> usize {
        let receives = self.matcher.posted_len() + self.awaited_seconds.len() + self.rendezvous.len();
        receives + self.matcher.unexpected_len() + self.foreign_order.deferred().count()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use mpjdev_proto::context::WORLD;
    use mpjdev_transport::Payload;

    use super::*;
    use crate::error::DeviceError;
    use crate::packet::credit::CreditCharge;

    const FREED: u64 = 2 << 32;

    fn id(number: u64) -> RequestId {
        RequestId::from(number)
    }

    fn envelope(context: u64, source: u32, tag: i32) -> Envelope {
        Envelope { context, source, tag }
    }

    /// A message that its length identifies.
    fn message(len: usize) -> Unexpected {
        Unexpected::new(Ok(Payload::Partial { len, here: 0, start: None }), CreditCharge::default())
    }

    fn number(message: Unexpected) -> usize {
        message.into_parts().0.map_or(0, |payload| payload.len())
    }

    fn half(second: Envelope, request: u64) -> AwaitedSecond {
        AwaitedSecond::new((second, 8), id(request), Err(DeviceError::Freed), second, 0)
    }

    fn pending(queue: &mut RecvQueue, request: u64, first: Envelope, token: u64) {
        let completion = Completion::Receive(id(request), first);
        queue.add_rendezvous(PendingRendezvous::new(first.source, token, completion));
    }

    fn numbers(queue: &RecvQueue) -> Vec<usize> {
        let len = |message: &Unexpected| message.payload_len() + mpjdev_buffer::layout::MESSAGE_OVERHEAD;
        queue.messages().map(|(_, message)| len(message)).collect()
    }

    #[test]
    fn receive_waits_in_one_list_from_its_post_to_its_second_half() {
        let mut queue = RecvQueue::default();
        let first = envelope(WORLD, 1, 7);
        let Posted::Waiting(post) = queue.post(Selector::from(first), id(3)) else { panic!("no message") };
        assert_eq!(queue.match_arrival(&first), Some(id(3)));
        assert!(!queue.withdraw(post), "it is matched");
        assert!(queue.take_second(&envelope(shadow(WORLD), 1, 0)).is_none());
        queue.await_second(half(envelope(shadow(WORLD), 1, 0), 3));
        queue.check();
        assert_eq!(queue.partial(id(3)), Some(Selector::from(envelope(shadow(WORLD), 1, 0))));
        assert!(queue.take_awaiting(&envelope(shadow(WORLD), 2, 0)).is_none());
        assert_eq!(
            queue.take_awaiting(&envelope(shadow(WORLD), 1, 0)).map(|half| half.request()),
            Some(id(3))
        );
        assert_eq!((queue.partial(id(3)), queue.receives().count()), (None, 0));
    }

    #[test]
    #[should_panic(expected = "a request is in two lists")]
    fn check_finds_a_request_in_two_lists() {
        let mut queue = RecvQueue::default();
        queue.await_second(half(envelope(WORLD, 1, 7), 3));
        pending(&mut queue, 3, envelope(WORLD, 1, 7), 9);
        queue.check();
    }

    #[test]
    fn rest_goes_to_the_receive_of_its_source_and_token() {
        let mut queue = RecvQueue::default();
        pending(&mut queue, 3, envelope(WORLD, 1, 7), 9);
        pending(&mut queue, 4, envelope(WORLD, 2, 7), 9);
        assert!(queue.take_rendezvous(1, 8).is_none());
        let taken = queue.take_rendezvous(2, 9);
        assert!(matches!(taken, Some(Completion::Receive(request, _)) if request == id(4)));
        queue.forget_partial(id(3));
        assert!(queue.take_rendezvous(1, 9).is_none());
    }

    #[test]
    fn unexpected_messages_behind_an_ambiguous_one_are_deferred() {
        let mut queue = RecvQueue::default();
        let ambiguous = envelope(WORLD, 1, 7);
        // The first overtakes nothing: it arrived before the next message with the ambiguous tag.
        for (len, tag) in [(101, 8), (102, 7), (103, 8)] {
            queue.add_unexpected(envelope(WORLD, 1, tag), message(len));
        }
        queue.add_unexpected(envelope(WORLD, 2, 7), message(104));
        queue.note_ambiguous(ambiguous, 9);
        pending(&mut queue, 3, ambiguous, 9);
        assert!(queue.must_defer(&envelope(WORLD, 1, 8)));
        queue.defer(envelope(WORLD, 1, 8), message(105));
        queue.check();
        assert_eq!(numbers(&queue), [101, 104, 102, 103, 105]);
        assert_eq!(queue.unexpected_len(), 2, "a probe does not see the others");
        assert!(queue.take_rendezvous(1, 9).is_some() && queue.note_complete(&ambiguous, 9));
        let replayed = std::iter::from_fn(|| queue.next_replayed(1, WORLD));
        assert_eq!(replayed.map(|(_, message)| number(*message)).collect::<Vec<_>>(), [102, 103, 105]);
        queue.check();
    }

    #[test]
    fn abandoned_receive_ends_the_ambiguity() {
        let mut queue = RecvQueue::default();
        let ambiguous = envelope(WORLD, 1, 7);
        queue.note_ambiguous(ambiguous, 9);
        pending(&mut queue, 3, ambiguous, 9);
        queue.defer(ambiguous, message(101));
        assert_eq!(queue.forget_ambiguous(), []);
        queue.forget_partial(id(3));
        assert_eq!(queue.forget_ambiguous(), [(1, WORLD)]);
        assert_eq!(queue.take_deferred(1).len(), 1);
        assert!(queue.next_replayed(1, WORLD).is_none());
        queue.check();
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn second_half_in_a_freed_communicator_is_kept_while_its_first_half_arrives() {
        let mut queue = RecvQueue::default();
        let [first, second] = [envelope(FREED, 1, 7), envelope(shadow(FREED), 1, 0)];
        assert!(!queue.must_drop(&second), "it is not freed yet");
        queue.add_unexpected(first, message(101));
        queue.add_unexpected(second, message(102));
        pending(&mut queue, 3, first, 9);
        queue.free(FREED, true);
        assert!(queue.is_freed(FREED) && !queue.is_freed(FREED + 2));
        assert_eq!(queue.take_freed(FREED).len(), 1);
        assert_eq!(queue.take_freed(shadow(FREED)).len(), 0);
        assert!(!queue.must_drop(&second) && queue.must_drop(&envelope(shadow(FREED), 2, 0)));
        queue.take_rendezvous(1, 9);
        assert_eq!(queue.take_kept().into_iter().collect::<Vec<_>>(), [shadow(FREED)]);
        assert_eq!(queue.take_freed(shadow(FREED)).len(), 1);
        assert!(queue.must_drop(&second) && queue.take_kept().is_empty());
    }

    /// Random steps of one foreign source with three tags and two contexts. Each message leaves once.
    #[test]
    fn no_message_is_lost_or_doubled_in_random_steps() {
        for seed in 1..=200u64 {
            let mut random = seed;
            let mut below = |bound: u64| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) % bound
            };
            let mut queue = RecvQueue::default();
            let (mut next, mut left) = (1000, BTreeSet::new());
            let mut arriving: Vec<(Envelope, u64)> = Vec::new();
            for step in 0..200 {
                let envelope = envelope(WORLD + 2 * below(2), 1, below(3) as i32);
                match below(5) {
                    0 | 1 => {
                        next += 1;
                        if queue.must_defer(&envelope) {
                            queue.defer(envelope, message(next));
                        } else if queue.match_arrival(&envelope).is_none() {
                            queue.add_unexpected(envelope, message(next));
                        } else {
                            assert!(left.insert(next));
                        }
                    }
                    2 => match queue.post(Selector::from(envelope), id(step)) {
                        Posted::Waiting(_) => {}
                        Posted::Matched { message, .. } => assert!(left.insert(number(*message))),
                    },
                    3 if !arriving.iter().any(|(other, _)| *other == envelope) => {
                        queue.note_ambiguous(envelope, step);
                        pending(&mut queue, step, envelope, step);
                        arriving.push((envelope, step));
                    }
                    _ if !arriving.is_empty() => {
                        let (envelope, token) = arriving.swap_remove(below(arriving.len() as u64) as usize);
                        match below(2) {
                            0 => {
                                queue.forget_partial(id(token));
                                assert_eq!(queue.forget_ambiguous(), [(1, envelope.context)], "seed {seed}");
                            }
                            _ => {
                                assert!(queue.take_rendezvous(1, token).is_some(), "seed {seed}");
                                assert!(queue.note_complete(&envelope, token), "seed {seed}");
                            }
                        }
                        while let Some((envelope, message)) = queue.next_replayed(1, envelope.context) {
                            match queue.match_arrival(&envelope) {
                                None => queue.add_unexpected(envelope, *message),
                                Some(_) => assert!(left.insert(number(*message)), "seed {seed}"),
                            }
                        }
                    }
                    _ => {}
                }
                queue.check();
                let here: BTreeSet<usize> = numbers(&queue).into_iter().collect();
                let all: Vec<usize> = here.union(&left).copied().collect();
                assert!(here.is_disjoint(&left) && all == (1001..=next).collect::<Vec<_>>(), "seed {seed}");
            }
        }
    }
}
