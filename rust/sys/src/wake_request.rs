//! Wake request that one thread answers. A thread that leaves work sets the request; the answering thread
//! takes it before it polls for work, and completes it when all work is done.
//!
//! A request that is set and not taken needs no second one, so the setter then pays one fence and one load.
//! Work left before the request is visible after the take, also where processors reorder a store after a
//! later load: either the setter finds the request taken and sets it again, or the answering thread finds the
//! work.
//!
//! | state | meaning | changes to |
//! |---|---|---|
//! | `NONE` | no work is left | `SET` by any thread |
//! | `SET` | work was left, and the answering thread has not seen it | `TAKEN` by that thread |
//! | `TAKEN` | the answering thread works, or waits until it can | `NONE` by that thread, `SET` by any |

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::sync::{AtomicU32, fence};

const NONE: u32 = 0;
const SET: u32 = 1;
const TAKEN: u32 = 2;

/// A request for an answer, and whether its work is pending.
#[derive(Debug)]
pub struct WakeRequest {
    state: AtomicU32,
}

impl Default for WakeRequest {
    fn default() -> Self {
        WakeRequest { state: AtomicU32::new(NONE) }
    }
}

impl WakeRequest {
    /// Sets the request. Returns whether it was not set before: the thread may sleep, and must be woken.
    #[inline]
    pub fn set(&self) -> bool {
        fence(SeqCst);
        self.state.load(Relaxed) != SET && self.state.swap(SET, SeqCst) != SET
    }

    /// Takes the request, before the thread polls for its reason. Returns whether it was set.
    #[inline]
    pub fn take(&self) -> bool {
        let was_set = self.state.compare_exchange(SET, TAKEN, SeqCst, SeqCst).is_ok();
        fence(SeqCst);
        was_set
    }

    /// Completes a request that was taken: no work is left. A request that was set meanwhile stays.
    #[inline]
    pub fn complete(&self) {
        let _ = self.state.compare_exchange(TAKEN, NONE, SeqCst, SeqCst);
    }

    /// Whether the request is set and not taken.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.state.load(SeqCst) == SET
    }

    /// Whether work may be left: a request is set, or taken and not completed.
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.state.load(Relaxed) != NONE
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn state(request: &WakeRequest) -> (bool, bool) {
        (request.is_set(), request.is_pending())
    }

    #[test]
    fn request_is_pending_until_it_is_completed() {
        let request = WakeRequest::default();
        assert_eq!(state(&request), (false, false));
        assert!(!request.take(), "nothing to take");
        request.complete();
        assert_eq!(state(&request), (false, false));
        assert!(request.set() && !request.set(), "the second request needs no wake");
        assert_eq!(state(&request), (true, true));
        assert!(request.take() && !request.take(), "it is taken once");
        assert_eq!(state(&request), (false, true));
        request.complete();
        assert_eq!(state(&request), (false, false));
    }

    #[test]
    fn request_that_is_set_after_the_take_stays_set() {
        let request = WakeRequest::default();
        assert!(request.set() && request.take());
        assert!(request.set(), "the answering thread may sleep again");
        request.complete();
        assert_eq!(state(&request), (true, true));
    }
}
