//! A rank whose threads sleep on another wire, since one thread cannot wait for both: the thread beside the rank waits for the
//! channels meanwhile, and goes on for the rank. What completes something wakes whoever sleeps for it there.
//!
//! Going to sleep does not wake that thread: it rests where it is told of the channels once each time they are armed. So it is
//! told of nothing while the program polls.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::time::Duration;

use super::wire::TcpWire;
use crate::Wire;
use crate::net::sentry::Sentry;

impl TcpWire {
    /// Has the rank's threads sleep there from now on, and be woken there. To be said before any of them sleeps.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn sleep_on(&self, near: Arc<dyn Wire>) -> io::Result<()> {
        let sentry = Sentry::new(near, &self.poller, &self.watch.poller)?;
        let _ = self.watch.sentry.set(sentry);
        Ok(())
    }

    /// Sleeps on the other wire until something happens there or on a channel, somebody rings, or the time is over, unless
    /// `ready`.
    pub(crate) fn sleep_elsewhere(&self, most: Duration, ready: &mut dyn FnMut() -> bool) {
        let Some(sentry) = self.watch.sentry.get() else { return };
        self.watch.begin_sleep();
        sentry.near.sleep(most, &mut || ready() || self.arm(sentry));
        self.watch_room(&self.poller, false);
        self.watch.end_sleep(false);
    }

    /// Has the thread beside the rank told of the channels, unless they have something already, which is read.
    fn arm(&self, sentry: &Sentry) -> bool {
        self.watch_room(&self.poller, true);
        let has_something = self.has_news() || self.look_at_all();
        if !has_something {
            sentry.arm_for_sleeper(&self.poller);
        }
        has_something
    }

    /// Goes on by `help` for whoever sleeps elsewhere, as far as the channels have something.
    pub(super) fn go_on_elsewhere(&self, help: &dyn Fn()) {
        let Some(sentry) = self.watch.sentry.get() else { return };
        while self.watch.is_asleep.load(SeqCst) {
            // What has left perhaps is what somebody waits for, and completes nothing.
            let waits = self.waiting_count.load(SeqCst) > 0;
            self.look_at_all();
            help();
            if waits {
                sentry.wake();
            }
            if !self.arm(sentry) {
                return;
            }
        }
    }

    /// Whether there is something to take, or room was found; nothing is read for it.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.ready_count.load(Acquire) > 0 || self.own.has_some() || self.has_room.load(Relaxed)
    }
}
