//! Waiting of a rank whose threads sleep on another transport. One thread cannot wait for both, so the
//! progress thread waits for the channels meanwhile and drives progress for the rank. A completion wakes the
//! thread that sleeps for it there.
//!
//! Going to sleep does not wake the progress thread. It waits on descriptors that report an event of the
//! channels once each time they are armed, so it receives no event while the program polls.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, SeqCst};
use std::time::Duration;

use super::transport::TcpTransport;
use crate::Transport;
use crate::net::epoll_waiter::EpollWaiter;

impl TcpTransport {
    /// Makes the rank's threads sleep on the transport `other`, and wakes them there. The caller does this
    /// before any thread sleeps.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn park_on(&self, other: Arc<dyn Transport>) -> io::Result<()> {
        let epoll_waiter = EpollWaiter::new(other, &self.net.poller, &self.net.progress.poller)?;
        let _ = self.net.progress.epoll_waiter.set(epoll_waiter);
        Ok(())
    }

    /// Sleeps on the other transport until there is an event there or on a channel, a wake, or `most` has
    /// passed. Returns at once if `ready`.
    pub(crate) fn park_external(&self, most: Duration, ready: &mut dyn FnMut() -> bool) {
        let Some(epoll_waiter) = self.net.progress.epoll_waiter.get() else { return };
        self.net.progress.begin_sleep();
        epoll_waiter.other.park(most, &mut || ready() || self.arm(epoll_waiter));
        self.watch_room(&self.net.poller, false);
        self.net.progress.end_sleep(false);
    }

    /// Arms the channels for the progress thread. If they have data already, reads it instead and returns
    /// true.
    fn arm(&self, epoll_waiter: &EpollWaiter) -> bool {
        self.watch_room(&self.net.poller, true);
        let has_something = self.has_ready_packets() || self.poll_channels();
        if !has_something {
            epoll_waiter.arm_for_sleeper(&self.net.poller);
        }
        has_something
    }

    /// Drives progress by `drive` for a thread that sleeps elsewhere, as long as the channels have data.
    pub(super) fn drive_for_sleeper(&self, drive: &dyn Fn()) {
        let Some(epoll_waiter) = self.net.progress.epoll_waiter.get() else { return };
        while self.net.progress.is_asleep.load(SeqCst) {
            // Some thread may wait for data to be written, which completes no request.
            let waits = self.net.waiting_count.load(SeqCst) > 0;
            self.poll_channels();
            drive();
            if waits {
                epoll_waiter.wake_sleeper();
            }
            if !self.arm(epoll_waiter) {
                return;
            }
        }
    }

    /// Whether there is a packet to take, or room was found. Reads nothing.
    #[inline]
    pub(crate) fn has_ready_packets(&self) -> bool {
        self.ready_count.load(Acquire) > 0 || self.net.has_local_work()
    }
}
