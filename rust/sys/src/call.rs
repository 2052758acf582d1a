//! A call that one thread answers: whoever leaves something to it calls, and the thread takes the call before it looks.
//!
//! A call that is made and not taken yet needs no second one, which costs the caller one fence and one load. What the caller
//! left before is seen behind the take, also where processors put a store behind a later load: either the caller finds the
//! call taken and makes it again, or the thread finds what was left.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::sync::{AtomicBool, fence};

/// Whether somebody has called and nobody has answered.
#[derive(Debug, Default)]
pub struct Call {
    is_made: AtomicBool,
}

impl Call {
    /// Calls. Whether nobody had before: the thread may sleep, and is to be woken.
    #[inline]
    pub fn make(&self) -> bool {
        fence(SeqCst);
        !self.is_made.load(Relaxed) && !self.is_made.swap(true, SeqCst)
    }

    /// Takes the call before its reason is looked for. Whether somebody has called.
    #[inline]
    pub fn take(&self) -> bool {
        let is_made = self.is_made.swap(false, SeqCst);
        fence(SeqCst);
        is_made
    }

    /// Whether somebody has called and the call was not taken.
    #[inline]
    pub fn is_made(&self) -> bool {
        self.is_made.load(SeqCst)
    }
}
