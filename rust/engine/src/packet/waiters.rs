//! Waiters: the parked threads of a rank, and what wakes them.
//!
//! One of them, the driver, parks on the transport, which wakes it for a packet. The others park on their own
//! waiters until their requests are complete or the driver stops waiting.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mpjdev_sys::sync::{AtomicBool, AtomicU64};
use mpjdev_transport::wait::Waiter;

/// Signals between threads of a rank and other ranks of its process, without the rank's lock.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// Count of completed requests, unexpected messages and ends of ranks. It is written under the rank's
    /// lock only.
    changes: AtomicU64,
    /// Another rank tried to drive this one while a thread of this rank had the lock and was perhaps about to
    /// park.
    missed_progress: AtomicBool,
}

impl Signals {
    /// Count of completed requests and unexpected messages, and of ends of ranks.
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Records that another rank could not drive this one; false if that is recorded already.
    #[inline]
    pub(crate) fn note_missed_progress(&self) -> bool {
        !self.missed_progress.swap(true, Ordering::SeqCst)
    }

    /// Whether another rank could not drive this one since the last call.
    #[inline]
    pub(crate) fn take_missed_progress(&self) -> bool {
        self.missed_progress.swap(false, Ordering::SeqCst)
    }
}

/// The parked threads of a rank. The rank's lock guards them.
///
/// Invariants: the driver is not among the threads that park on their own waiters; no thread is there twice;
/// each observer is parked.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// The thread that parks on the transport.
    driver: Option<Arc<Waiter>>,
    /// The threads that park on their own waiters.
    parked: Vec<Arc<Waiter>>,
    /// The parked threads that wait for an unexpected message, or for the rank's sends to complete.
    observers: Vec<Arc<Waiter>>,
}

impl Waiters {
    /// Records that a thread is about to park, until [`remove`](Self::remove). Returns whether it is the
    /// driver and parks on the transport. An observer waits for no single request.
    pub(crate) fn add(&mut self, waiter: &Arc<Waiter>, observes: bool) -> bool {
        if observes {
            self.observers.push(waiter.clone());
        }
        let drives = self.driver.is_none();
        match drives {
            true => self.driver = Some(waiter.clone()),
            false => self.parked.push(waiter.clone()),
        }
        drives
    }

    /// Removes a thread that is parked no more.
    pub(crate) fn remove(&mut self, waiter: &Arc<Waiter>) {
        let is_other = |other: &Arc<Waiter>| !Arc::ptr_eq(other, waiter);
        self.driver = self.driver.take().filter(is_other);
        self.parked.retain(is_other);
        self.observers.retain(is_other);
    }

    /// Notifies polling threads of a change. The exclusive reference shows that the caller has the rank's
    /// lock.
    #[inline]
    pub(crate) fn note_change(&mut self, signals: &Signals) {
        // The counter is written under the lock only, so no read-modify-write is needed.
        signals.changes.store(signals.changes.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Signals threads. Returns whether the driver is one of them: the caller then wakes the transport.
    #[must_use]
    pub(crate) fn signal(&self, waiters: Vec<Arc<Waiter>>) -> bool {
        let mut has_driver = false;
        for waiter in waiters {
            waiter.signal();
            has_driver |= self.driver.as_ref().is_some_and(|driver| Arc::ptr_eq(driver, &waiter));
        }
        has_driver
    }

    /// Signals the observers, which observe no more. Returns whether the driver is one of them: the caller
    /// then wakes the transport.
    #[must_use]
    pub(crate) fn signal_observers(&mut self) -> bool {
        let observers = std::mem::take(&mut self.observers);
        self.signal(observers)
    }

    /// Signals all threads but the driver, which the transport wakes.
    pub(crate) fn signal_parked(&self) {
        self.parked.iter().for_each(|waiter| waiter.signal());
    }

    /// Signals a parked thread to become the driver, when there is none.
    #[inline]
    pub(crate) fn hand_over_driver(&self) {
        if self.driver.is_none()
            && let Some(next) = self.parked.last()
        {
            next.signal();
        }
    }

    /// Panics when an invariant does not hold. Takes time for each pair of parked threads.
    pub(crate) fn check(&self) {
        let all: Vec<&Arc<Waiter>> = self.driver.iter().chain(&self.parked).collect();
        let count = |waiter: &Arc<Waiter>| all.iter().filter(|other| Arc::ptr_eq(other, waiter)).count();
        assert!(all.iter().all(|waiter| count(waiter) == 1), "a thread is parked twice");
        assert!(self.observers.iter().all(|waiter| count(waiter) == 1), "an observer is not parked");
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn waiters() -> [Arc<Waiter>; 3] {
        std::array::from_fn(|_| Arc::default())
    }

    fn signalled(waiters: &[Arc<Waiter>; 3]) -> [bool; 3] {
        let signalled = std::array::from_fn(|at| waiters[at].is_signalled());
        waiters.iter().for_each(|waiter| waiter.reset());
        signalled
    }

    #[test]
    fn first_thread_drives_and_the_last_of_the_others_succeeds_it() {
        let all = waiters();
        let mut parked = Waiters::default();
        parked.hand_over_driver();
        assert!(parked.add(&all[0], false));
        assert!(!parked.add(&all[1], false) && !parked.add(&all[2], false));
        parked.check();
        parked.hand_over_driver();
        assert_eq!(signalled(&all), [false; 3], "there is a driver");
        parked.remove(&all[0]);
        parked.hand_over_driver();
        assert_eq!(signalled(&all), [false, false, true]);
        parked.remove(&all[2]);
        assert!(parked.add(&all[2], false), "it drives from now on");
        parked.check();
    }

    #[test]
    fn transport_is_woken_for_the_driver_only() {
        let all = waiters();
        let mut parked = Waiters::default();
        parked.add(&all[0], false);
        parked.add(&all[1], false);
        assert!(!parked.signal(vec![all[1].clone()]));
        assert_eq!(signalled(&all), [false, true, false]);
        assert!(parked.signal(vec![all[0].clone(), all[1].clone()]));
        assert_eq!(signalled(&all), [true, true, false]);
        parked.signal_parked();
        assert_eq!(signalled(&all), [false, true, false]);
    }

    #[test]
    fn observer_is_signalled_once() {
        let all = waiters();
        let mut parked = Waiters::default();
        parked.add(&all[0], true);
        parked.add(&all[1], true);
        parked.add(&all[2], false);
        parked.remove(&all[0]);
        parked.check();
        assert!(!parked.signal_observers(), "the driver has left");
        assert_eq!(signalled(&all), [false, true, false]);
        assert!(!parked.signal_observers());
        assert_eq!(signalled(&all), [false; 3]);
        parked.check();
    }

    #[test]
    fn missed_progress_is_reported_once() {
        let signals = Signals::default();
        assert!(!signals.take_missed_progress());
        assert!(signals.note_missed_progress() && !signals.note_missed_progress());
        assert!(signals.take_missed_progress() && !signals.take_missed_progress());
        let mut waiters = Waiters::default();
        waiters.note_change(&signals);
        assert_eq!(signals.changes(), 1);
    }
}
