//! Waits for the vectors that other ranks publish in slots.

use mpjdev_transport::wait::{Backoff, Step};

use crate::packet::engine::PacketEngine;

/// Polls of a slot between two looks at the queues.
const POLLS: u32 = 8;

impl PacketEngine {
    /// Spins, and then yields between polls, until `is_there`. False if the thread should park.
    #[inline]
    pub(crate) fn poll_for(&self, mut is_there: impl FnMut() -> bool) -> bool {
        let mut pauses = if self.must_post_at_once() { 0 } else { self.config.spins };
        loop {
            for _ in 0..POLLS.min(pauses).max(1) {
                if is_there() {
                    return true;
                }
                std::hint::spin_loop();
            }
            if pauses <= POLLS {
                break;
            }
            pauses -= POLLS;
            if self.transport.is_ready() {
                self.progress(&mut self.lock());
            }
        }
        self.yield_for(&mut is_there)
    }

    #[cold]
    #[inline(never)]
    fn yield_for(&self, is_there: &mut dyn FnMut() -> bool) -> bool {
        let mut backoff = Backoff::after_pauses(&self.config);
        backoff.adapt_to(&self.oversubscription);
        while self.transport.epoch() == 0 && backoff.step() == Step::Yield {
            self.progress_for_process();
            backoff.yield_now(&self.oversubscription);
            if is_there() {
                self.note_wait(&backoff);
                return true;
            }
            if self.transport.is_ready() {
                self.progress(&mut self.lock());
            }
        }
        false
    }
}
