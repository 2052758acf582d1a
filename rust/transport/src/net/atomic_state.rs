//! State that threads read without a lock: an enum in front of an atomic octet.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering};

/// A state of few values, by number.
pub(in super::super) trait State: Copy {
    fn to_number(self) -> u8;

    /// The inverse of [`to_number`](Self::to_number).
    fn from_number(number: u8) -> Self;
}

/// A state that one thread at a time changes, and that any thread reads.
#[derive(Debug)]
pub(in super::super) struct AtomicState<S> {
    number: AtomicU8,
    state: PhantomData<S>,
}

impl<S: State> AtomicState<S> {
    pub(in super::super) fn new(state: S) -> AtomicState<S> {
        AtomicState { number: AtomicU8::new(state.to_number()), state: PhantomData }
    }

    #[inline]
    pub(in super::super) fn load(&self, order: Ordering) -> S {
        S::from_number(self.number.load(order))
    }

    #[inline]
    pub(in super::super) fn store(&self, state: S, order: Ordering) {
        self.number.store(state.to_number(), order);
    }
}
