//! The matcher against a model: two vectors with linear search.

use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_proto::matching::{Matcher, PostId, Posted};
use proptest::prelude::*;

/// Posted receives and unexpected messages in order; every entry is a unique number.
#[derive(Default)]
struct Model {
    posted: Vec<(Selector, u32)>,
    unexpected: Vec<(Envelope, u32)>,
}

impl Model {
    fn take(&mut self, selector: &Selector) -> Option<(Envelope, u32)> {
        let at = self.unexpected.iter().position(|(envelope, _)| selector.matches(envelope))?;
        Some(self.unexpected.remove(at))
    }

    fn match_arrival(&mut self, envelope: &Envelope) -> Option<(u32, Selector)> {
        let at = self.posted.iter().position(|(selector, _)| selector.matches(envelope))?;
        let (selector, receive) = self.posted.remove(at);
        Some((receive, selector))
    }
}

#[derive(Debug, Clone)]
enum Step {
    Post(Selector),
    Arrive(Envelope),
    Probe(Selector),
    Take(Selector),
    Withdraw(prop::sample::Index),
    RemoveUnexpected(u64),
}

/// Few values, so that entries match often; some contexts differ in high bits only.
fn contexts() -> impl Strategy<Value = u64> {
    prop_oneof![8 => Just(0), 1 => Just(2), 1 => Just(1 << 63)]
}

fn envelopes() -> impl Strategy<Value = Envelope> {
    (contexts(), 0..4u32, -1..6i32).prop_map(|(context, source, tag)| Envelope { context, source, tag })
}

fn selectors() -> impl Strategy<Value = Selector> {
    (envelopes(), any::<[bool; 4]>()).prop_map(|(envelope, exact)| Selector {
        context: envelope.context,
        source: (exact[0] || exact[1]).then_some(envelope.source),
        tag: (exact[2] || exact[3]).then_some(envelope.tag),
    })
}

/// Posts and arrivals in a changing proportion, so that each queue is short in some runs and long in others.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    (1..20u32, 1..20u32).prop_flat_map(|(posts, arrivals)| {
        let step = prop_oneof![
            posts => selectors().prop_map(Step::Post),
            2 * arrivals => envelopes().prop_map(Step::Arrive),
            2 => selectors().prop_map(Step::Probe),
            2 => selectors().prop_map(Step::Take),
            2 => any::<prop::sample::Index>().prop_map(Step::Withdraw),
            1 => contexts().prop_map(Step::RemoveUnexpected),
        ];
        prop::collection::vec(step, 0..400)
    })
}

/// Matcher and model: every step is applied to both, and the results are compared.
#[derive(Default)]
struct Run {
    matcher: Matcher<u32, u32>,
    model: Model,
    /// Every id with its receive.
    ids: Vec<(PostId, u32)>,
    next_number: u32,
}

impl Run {
    fn number(&mut self) -> u32 {
        self.next_number += 1;
        self.next_number
    }

    fn post(&mut self, selector: Selector) -> Result<(), TestCaseError> {
        let number = self.number();
        let expected = self.model.take(&selector);
        match self.matcher.post(selector, number) {
            Posted::Matched { envelope, message, receive } => {
                prop_assert_eq!(Some((envelope, message)), expected);
                prop_assert_eq!(receive, number);
            }
            Posted::Waiting(id) => {
                prop_assert_eq!(expected, None);
                self.model.posted.push((selector, number));
                self.ids.push((id, number));
            }
        }
        Ok(())
    }

    fn arrive(&mut self, sent: Envelope) -> Result<(), TestCaseError> {
        let number = self.number();
        let expected = self.model.match_arrival(&sent);
        let matched = self.matcher.match_arrival(&sent);
        prop_assert_eq!(matched, expected);
        if matched.is_none() {
            self.matcher.add_unexpected(sent, number);
            self.model.unexpected.push((sent, number));
        }
        Ok(())
    }

    fn withdraw(&mut self, which: prop::sample::Index) -> Result<(), TestCaseError> {
        if self.ids.is_empty() {
            return Ok(());
        }
        let (id, number) = self.ids[which.index(self.ids.len())];
        let at = self.model.posted.iter().position(|(_, r)| *r == number);
        let expected = at.map(|at| self.model.posted.remove(at).1);
        prop_assert_eq!(self.matcher.withdraw(id), expected);
        prop_assert_eq!(self.matcher.withdraw(id), None);
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Post(selector) => self.post(selector)?,
            Step::Arrive(envelope) => self.arrive(envelope)?,
            Step::Probe(selector) => {
                let mut fitting = self.model.unexpected.iter();
                let expected = fitting.find(|(envelope, _)| selector.matches(envelope));
                let found = self.matcher.probe(&selector);
                prop_assert_eq!(found.map(|(e, m)| (e, *m)), expected.copied());
            }
            Step::Take(selector) => {
                prop_assert_eq!(self.matcher.take(&selector), self.model.take(&selector));
            }
            Step::Withdraw(which) => self.withdraw(which)?,
            Step::RemoveUnexpected(context) => {
                let expected: Vec<_> = (self.model.unexpected)
                    .extract_if(.., |(envelope, _)| envelope.context == context)
                    .collect();
                let removed = self.matcher.remove_unexpected(|e, _| e.context == context);
                prop_assert_eq!(removed, expected);
            }
        }
        self.compare()
    }

    fn compare(&self) -> Result<(), TestCaseError> {
        let posted: Vec<_> = self.matcher.posted().map(|(s, r)| (s, *r)).collect();
        let unexpected: Vec<_> = self.matcher.unexpected().map(|(e, m)| (e, *m)).collect();
        prop_assert_eq!(&posted, &self.model.posted);
        prop_assert_eq!(&unexpected, &self.model.unexpected);
        prop_assert_eq!(self.matcher.posted_len(), posted.len());
        prop_assert_eq!(self.matcher.unexpected_len(), unexpected.len());
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves that any sequence of operations gives the results and queues of the model.
    #[test]
    fn matcher_agrees_with_a_linear_search(steps in steps()) {
        let mut run = Run::default();
        for step in steps {
            run.step(step)?;
        }
    }

    /// Proves the same from long queues, so that the index is built and dropped.
    #[test]
    fn long_matcher_agrees_with_a_linear_search(
        fill_posted in any::<bool>(),
        receives in prop::collection::vec(selectors(), 40),
        messages in prop::collection::vec(envelopes(), 40),
        steps in steps(),
    ) {
        let mut run = Run::default();
        for (selector, envelope) in receives.into_iter().zip(messages) {
            if fill_posted {
                run.post(selector)?;
            } else {
                run.arrive(envelope)?;
            }
        }
        for step in steps {
            run.step(step)?;
        }
    }
}
