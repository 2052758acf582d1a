//! Epoll waiter of a progress thread, for a rank whose program threads sleep on another transport. One thread
//! cannot wait for both.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

use super::poller::Poller;
use crate::Transport;

/// Event data: a wake, an event for a sleeping thread, an event for the progress thread itself.
const WOKEN: u64 = 0;
const FOR_SLEEPER: u64 = 1;
const FOR_ITSELF: u64 = 2;

/// Epoll set that a progress thread waits on.
#[derive(Debug)]
pub(in super::super) struct EpollWaiter {
    epoll: OwnedFd,
    eventfd: OwnedFd,
    /// The channels are armed to report once for a sleeping thread.
    is_armed: AtomicBool,
    /// The transport that the program's threads sleep on.
    pub(in super::super) other: Arc<dyn Transport>,
}

impl EpollWaiter {
    /// Waiter for threads that sleep on `other` and need the channels of `sleeper`. The thread itself waits
    /// for the same channels through `own`.
    pub(in super::super) fn new(
        other: Arc<dyn Transport>,
        sleeper: &Poller,
        own: &Poller,
    ) -> io::Result<EpollWaiter> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let event_fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &event_fd, EventData::new_u64(WOKEN), EventFlags::IN)?;
        for (poller, data) in [(sleeper, FOR_SLEEPER), (own, FOR_ITSELF)] {
            epoll::add(&epoll, poller.as_fd(), EventData::new_u64(data), EventFlags::ONESHOT)?;
        }
        Ok(EpollWaiter { epoll, eventfd: event_fd, is_armed: AtomicBool::new(false), other })
    }

    fn arm(&self, poller: &Poller, data: u64) {
        let flags = EventFlags::IN | EventFlags::ONESHOT;
        let _ = epoll::modify(&self.epoll, poller.as_fd(), EventData::new_u64(data), flags);
    }

    /// Arms the channels to report once more, for events of now or later.
    pub(in super::super) fn arm_for_itself(&self, own: &Poller) {
        self.arm(own, FOR_ITSELF);
    }

    /// As [`arm_for_itself`](Self::arm_for_itself), for a thread that has recorded that it sleeps.
    pub(in super::super) fn arm_for_sleeper(&self, sleeper: &Poller) {
        if !self.is_armed.swap(true, SeqCst) {
            self.arm(sleeper, FOR_SLEEPER);
        }
    }

    /// Ends the current wait, or the next one.
    pub(in super::super) fn wake(&self) {
        let _ = rustix::io::write(self.eventfd.as_fd(), &1u64.to_ne_bytes());
    }

    /// Wakes the thread that sleeps on the other transport.
    pub(in super::super) fn wake_sleeper(&self) {
        self.other.wake();
    }

    /// Waits until a wake or an event of the channels, at most for `most`. Returns whether an event was for a
    /// sleeping thread.
    pub(in super::super) fn wait(&self, most: Duration) -> bool {
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); 3];
        let timeout = Timespec::try_from(most).unwrap_or_default();
        // An interrupted wait is a short one.
        let Ok((events, _)) = epoll::wait(&self.epoll, &mut events, Some(&timeout)) else { return false };
        let mut is_for_sleeper = false;
        for event in events {
            match event.data.u64() {
                WOKEN => drop(rustix::io::read(&self.eventfd, &mut [0; 8])),
                FOR_SLEEPER => {
                    // A thread that goes to sleep from now on arms the channels again. An earlier one is seen
                    // as asleep.
                    self.is_armed.store(false, SeqCst);
                    is_for_sleeper = true;
                }
                _ => {}
            }
        }
        is_for_sleeper
    }
}
