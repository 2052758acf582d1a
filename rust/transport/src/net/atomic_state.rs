//! State that threads read without a lock: an enum in front of an atomic octet.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering};

/// A state of few values, by number.
pub(in super::super) trait State: Copy {
    fn to_number(self) -> u8;

    /// The inverse of [`to_number`](Self::to_number).
    fn from_number(number: u8) -> Self;
}

/// Numbers the values of an enum without fields as its declaration does. A value that is missing here does
/// not compile.
macro_rules! impl_state {
    ($state:ident { $($value:ident),+ }) => {
        impl $crate::net::atomic_state::State for $state {
            #[inline]
            fn to_number(self) -> u8 {
                match self {
                    $($state::$value => $state::$value as u8,)+
                }
            }

            #[inline]
            fn from_number(number: u8) -> $state {
                match number {
                    $(number if number == $state::$value as u8 => $state::$value,)+
                    _ => unreachable!("{} is no {}", number, stringify!($state)),
                }
            }
        }
    };
}
pub(in super::super) use impl_state;

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

#[cfg(test)]
mod tests {
    use Ordering::Relaxed;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Door {
        Open,
        Closed,
        Locked,
    }

    impl_state!(Door { Open, Closed, Locked });

    #[test]
    fn every_value_survives_the_round_trip_through_its_number() {
        let state = AtomicState::new(Door::Locked);
        assert_eq!(state.load(Relaxed), Door::Locked);
        for (door, number) in [(Door::Open, 0), (Door::Closed, 1), (Door::Locked, 2)] {
            assert_eq!(door.to_number(), number);
            state.store(door, Relaxed);
            assert_eq!(state.load(Relaxed), door);
        }
    }

    #[test]
    #[should_panic = "3 is no Door"]
    fn number_without_a_value_panics() {
        Door::from_number(3);
    }
}
