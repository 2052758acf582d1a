//! Asymmetric fence: one side costs nothing, the other one a system call (`membarrier`). Where the system has
//! none, both sides use fences.

#[cfg(not(loom))]
use std::sync::atomic::AtomicBool;
#[cfg(not(loom))]
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::Ordering::SeqCst;

use crate::sync::fence;

/// The system makes all processors pass a barrier. False until that is known: a superfluous fence is
/// harmless.
#[cfg(not(loom))]
static IS_ASYMMETRIC: AtomicBool = AtomicBool::new(false);

/// Asks the system, once.
pub(crate) fn prepare() {
    #[cfg(not(loom))]
    {
        use rustix::thread::{MembarrierCommand, membarrier};
        static ASKED: std::sync::Once = std::sync::Once::new();
        ASKED.call_once(|| {
            let registered = membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok();
            IS_ASYMMETRIC.store(registered, SeqCst);
        });
    }
}

/// The side that passes often: the owner of a cached value or of a lock.
#[inline(always)]
pub(crate) fn light() {
    #[cfg(not(loom))]
    if IS_ASYMMETRIC.load(Relaxed) {
        return std::sync::atomic::compiler_fence(SeqCst);
    }
    fence(SeqCst);
}

/// The side that passes rarely. Returns false without a barrier.
pub(crate) fn heavy() -> bool {
    #[cfg(not(loom))]
    if IS_ASYMMETRIC.load(SeqCst) {
        use rustix::thread::{MembarrierCommand, membarrier};
        return membarrier(MembarrierCommand::PrivateExpedited).is_ok();
    }
    fence(SeqCst);
    true
}
