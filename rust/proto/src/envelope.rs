//! Envelopes of messages, and the selectors of receives.

/// The envelope of a message: context, source and tag.
///
/// MPI's envelope without the destination, which is the receiving rank (MPI 4.1, 3.2.3 Message Envelope).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Envelope {
    /// The context of the message, see [`crate::context`]; always compared exactly.
    pub context: u64,
    /// The sender's rank in the communicator the context belongs to.
    pub source: u32,
    /// The sender's tag. User tags are not negative; this type does not enforce it.
    pub tag: i32,
}

/// The request of a receive or a probe: a context and, each exact or any, a source and a tag.
///
/// The context has no wildcard (MPI 4.1, 3.2.4 Blocking Receive).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Selector {
    /// The context asked for.
    pub context: u64,
    /// The source asked for; `None` is `ANY_SOURCE`.
    pub source: Option<u32>,
    /// The tag asked for; `None` is `ANY_TAG`.
    pub tag: Option<i32>,
}

impl Selector {
    /// Whether a message with this envelope matches.
    #[inline]
    #[must_use]
    pub fn matches(&self, envelope: &Envelope) -> bool {
        self.context == envelope.context
            && self.source.is_none_or(|source| source == envelope.source)
            && self.tag.is_none_or(|tag| tag == envelope.tag)
    }
}

impl From<Envelope> for Selector {
    /// The selector that matches exactly this envelope.
    #[inline]
    fn from(envelope: Envelope) -> Self {
        Self { context: envelope.context, source: Some(envelope.source), tag: Some(envelope.tag) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENVELOPE: Envelope = Envelope { context: 4, source: 0, tag: 0 };

    /// Proves that a wildcard matches every value of its own field only, and that zero is a value.
    #[test]
    fn matches_by_each_field_alone() {
        for source in [None, Some(0), Some(1)] {
            for tag in [None, Some(0), Some(-1)] {
                for context in [4, 5] {
                    let selector = Selector { context, source, tag };
                    let expected = context == 4 && source != Some(1) && tag != Some(-1);
                    assert_eq!(selector.matches(&ENVELOPE), expected, "{selector:?}");
                }
            }
        }
    }

    /// Proves that the selector of an envelope has no wildcard.
    #[test]
    fn selector_of_an_envelope_matches_it_alone() {
        let selector = Selector::from(ENVELOPE);
        assert!(selector.matches(&ENVELOPE));
        assert!(!selector.matches(&Envelope { tag: 1, ..ENVELOPE }));
        assert!(!selector.matches(&Envelope { source: 1, ..ENVELOPE }));
    }
}
