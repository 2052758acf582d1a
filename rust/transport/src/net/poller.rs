//! Sleep until a channel has something, or somebody rings.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

/// Channels that are told of at a time.
const EVENTS: usize = 64;
/// What stands for the bell among the channels.
const BELL: u64 = u64::MAX;
/// What stands there for what is no channel.
const ASIDE: u64 = u64::MAX - 1;

/// All channels of a rank, and a bell.
#[derive(Debug)]
pub(in super::super) struct Poller {
    epoll: OwnedFd,
    bell: OwnedFd,
    /// Channels that it tells of room, too.
    watched: Mutex<Box<[bool]>>,
    has_aside: AtomicBool,
}

impl Poller {
    /// For so many channels.
    pub(in super::super) fn new(channels: usize) -> io::Result<Poller> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), EventFlags::IN)?;
        let watched = Mutex::new(vec![false; channels].into());
        Ok(Poller { epoll, bell, watched, has_aside: AtomicBool::new(false) })
    }

    /// Something that is no channel ends waits as well, and [`take_aside`](Self::take_aside) tells of it.
    pub(in super::super) fn add_aside(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(ASIDE), EventFlags::IN)?)
    }

    /// Whether a wait has ended because of that, since this was asked.
    #[inline]
    pub(in super::super) fn take_aside(&self) -> bool {
        self.has_aside.load(Relaxed) && self.has_aside.swap(false, Relaxed)
    }

    pub(in super::super) fn add(&self, channel: usize, socket: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(channel as u64), EventFlags::IN)?)
    }

    /// Tells from now on when one of those channels takes octets that are `full`, and of the others no more.
    pub(in super::super) fn watch_room<'a>(&self, channels: impl Iterator<Item = (BorrowedFd<'a>, bool)>) {
        // Each is asked under the lock, so that the last one who asks has the last word.
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        for ((at, watched), (socket, is_full)) in watched.iter_mut().enumerate().zip(channels) {
            if std::mem::replace(watched, is_full) != is_full {
                let flags = if is_full { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
                let _ = epoll::modify(&self.epoll, socket, EventData::new_u64(at as u64), flags);
            }
        }
    }

    /// Whether it tells when a channel takes octets.
    #[cfg(test)]
    pub(in super::super) fn is_watched(&self, channel: usize) -> bool {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)[channel]
    }

    pub(in super::super) fn remove(&self, socket: BorrowedFd<'_>) {
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// Tells of the channels that have something now. The bell stays for the one that sleeps: who is woken by it and finds it
    /// taken sleeps on.
    pub(in super::super) fn look(&self, told: &mut dyn FnMut(usize)) {
        self.events(Duration::ZERO, told);
    }

    /// Waits for so long at most, and tells of the channels that have something. For one thread at a time.
    pub(in super::super) fn wait(&self, most: Duration, told: &mut dyn FnMut(usize)) {
        if self.events(most, told) {
            let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        }
    }

    /// Whether somebody has rung.
    fn events(&self, most: Duration, told: &mut dyn FnMut(usize)) -> bool {
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); EVENTS];
        let timeout = Timespec::try_from(most).unwrap_or_default();
        // An interrupted wait is a short one.
        let Ok((events, _)) = epoll::wait(&self.epoll, &mut events, Some(&timeout)) else { return false };
        let mut has_rung = false;
        for event in events {
            match event.data.u64() {
                BELL => has_rung = true,
                ASIDE => self.has_aside.store(true, Relaxed),
                channel => told(channel as usize),
            }
        }
        has_rung
    }

    /// What others wait on to be told that something is here.
    pub(in super::super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Ends the wait of whoever waits, now or next.
    pub(in super::super) fn ring(&self) {
        let _ = rustix::io::write(self.bell.as_fd(), &1u64.to_ne_bytes());
    }
}
