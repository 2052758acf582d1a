//! Wake request that one thread answers. A thread that leaves work sets the request; the answering thread
//! takes it before it looks for work.
//!
//! A request that is set and not taken needs no second one, so the setter then pays one fence and one load.
//! Work left before the request is visible after the take, also where processors reorder a store after a
//! later load: either the setter finds the request taken and sets it again, or the answering thread finds the
//! work.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::sync::{AtomicBool, fence};

/// A flag that is set until the answering thread takes it.
#[derive(Debug, Default)]
pub struct WakeRequest {
    is_set: AtomicBool,
}

impl WakeRequest {
    /// Sets the request. Returns whether it was not set before: the thread may sleep, and must be woken.
    #[inline]
    pub fn set(&self) -> bool {
        fence(SeqCst);
        !self.is_set.load(Relaxed) && !self.is_set.swap(true, SeqCst)
    }

    /// Takes the request, before the thread looks for its reason. Returns whether it was set.
    #[inline]
    pub fn take(&self) -> bool {
        let is_set = self.is_set.swap(false, SeqCst);
        fence(SeqCst);
        is_set
    }

    /// Whether the request is set and not taken.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.is_set.load(SeqCst)
    }
}
