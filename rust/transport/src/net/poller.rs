//! Epoll set over the channels of a rank, and an eventfd that ends a wait.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use mpjdev_sys::sync::{LockRank, Mutex};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

/// Most channels reported at a time.
const EVENTS: usize = 64;
/// Event data of the eventfd.
const WAKE: u64 = u64::MAX;
/// Event data of a descriptor that is no channel.
const OTHER: u64 = u64::MAX - 1;

/// All channels of a rank, and an eventfd.
#[derive(Debug)]
pub(in super::super) struct Poller {
    epoll: OwnedFd,
    eventfd: OwnedFd,
    /// Channels that are watched for room to write as well.
    watched: Mutex<Box<[bool]>>,
    has_other: AtomicBool,
}

impl Poller {
    /// Poller of this many channels.
    pub(in super::super) fn new(channels: usize) -> io::Result<Poller> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let event_fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &event_fd, EventData::new_u64(WAKE), EventFlags::IN)?;
        let watched = Mutex::new(LockRank::Leaf, vec![false; channels].into());
        Ok(Poller { epoll, eventfd: event_fd, watched, has_other: AtomicBool::new(false) })
    }

    /// Adds a descriptor that is no channel. It ends waits too, and [`take_other`](Self::take_other) reports
    /// it.
    pub(in super::super) fn add_other(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(OTHER), EventFlags::IN)?)
    }

    /// Whether that descriptor has ended a wait since the last call.
    #[inline]
    pub(in super::super) fn take_other(&self) -> bool {
        self.has_other.load(Relaxed) && self.has_other.swap(false, Relaxed)
    }

    pub(in super::super) fn add(&self, channel: usize, socket: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(channel as u64), EventFlags::IN)?)
    }

    /// Watches the channels that are `full` for room to write, and the others no longer.
    pub(in super::super) fn watch_room<'a>(&self, channels: impl Iterator<Item = (BorrowedFd<'a>, bool)>) {
        // All flags are read under the lock, so that the latest caller wins.
        let mut watched = self.watched.lock();
        for ((at, watched), (socket, is_full)) in watched.iter_mut().enumerate().zip(channels) {
            if std::mem::replace(watched, is_full) != is_full {
                let flags = if is_full { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
                let _ = epoll::modify(&self.epoll, socket, EventData::new_u64(at as u64), flags);
            }
        }
    }

    /// Whether a channel is watched for room to write.
    #[cfg(test)]
    pub(in super::super) fn is_watched(&self, channel: usize) -> bool {
        self.watched.lock()[channel]
    }

    pub(in super::super) fn remove(&self, socket: BorrowedFd<'_>) {
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// Polls the channels and reports those with events. The eventfd is left to the sleeping thread: it
    /// would sleep again if it found the eventfd read.
    pub(in super::super) fn poll(&self, report: &mut dyn FnMut(usize)) {
        self.events(Duration::ZERO, report);
    }

    /// Waits at most for `most`, and reports the channels with events. Only one thread may wait at a time.
    pub(in super::super) fn wait(&self, most: Duration, report: &mut dyn FnMut(usize)) {
        if self.events(most, report) {
            let _ = rustix::io::read(&self.eventfd, &mut [0; 8]);
        }
    }

    /// Reports the channels with events. Returns whether the eventfd was signalled.
    fn events(&self, most: Duration, report: &mut dyn FnMut(usize)) -> bool {
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); EVENTS];
        let timeout = Timespec::try_from(most).unwrap_or_default();
        // An interrupted wait is a short one.
        let Ok((events, _)) = epoll::wait(&self.epoll, &mut events, Some(&timeout)) else { return false };
        let mut was_woken = false;
        for event in events {
            match event.data.u64() {
                WAKE => was_woken = true,
                OTHER => self.has_other.store(true, Relaxed),
                channel => report(channel as usize),
            }
        }
        was_woken
    }

    /// A descriptor that becomes readable when a channel has an event.
    pub(in super::super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Ends the current wait, or the next one.
    pub(in super::super) fn wake(&self) {
        let _ = rustix::io::write(self.eventfd.as_fd(), &1u64.to_ne_bytes());
    }
}
