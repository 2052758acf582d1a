//! Wake request that one thread answers: a thread that leaves work makes the call, and the answering thread
//! takes the call before it looks for work.
//!
//! A call that is made and not yet taken needs no second one, so the caller then pays one fence and one load.
//! Work left before the call is visible after the take, also where processors reorder a store after a later
//! load: either the caller finds the call taken and makes it again, or the thread finds the work.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::sync::{AtomicBool, fence};

/// Whether a call was made and not taken.
#[derive(Debug, Default)]
pub struct Call {
    is_made: AtomicBool,
}

impl Call {
    /// Makes the call. Returns whether it was not made before: the thread may sleep, and must be woken.
    #[inline]
    pub fn make(&self) -> bool {
        fence(SeqCst);
        !self.is_made.load(Relaxed) && !self.is_made.swap(true, SeqCst)
    }

    /// Takes the call, before the thread looks for its reason. Returns whether it was made.
    #[inline]
    pub fn take(&self) -> bool {
        let is_made = self.is_made.swap(false, SeqCst);
        fence(SeqCst);
        is_made
    }

    /// Whether a call was made and not taken.
    #[inline]
    pub fn is_made(&self) -> bool {
        self.is_made.load(SeqCst)
    }
}
