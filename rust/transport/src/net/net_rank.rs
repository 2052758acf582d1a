//! Parts of a rank that every network transport has.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};

use mpjdev_buffer::SlabSource;

use super::peer_table::PeerTable;
use super::poller::Poller;
use super::progress_thread::ProgressShared;
use crate::loopback::Loopback;

/// Most messages of a rank to itself that may wait.
const LOOPBACK_MAX: usize = 1024;

/// The sending side of a rank, as far as it is the same over all networks.
#[derive(Debug)]
pub(in super::super) struct NetRank {
    pub(in super::super) rank: u32,
    /// Memory of arriving messages.
    pub(in super::super) source: Arc<dyn SlabSource>,
    pub(in super::super) loopback: Loopback,
    pub(in super::super) peer_table: PeerTable,
    /// Descriptors that end a sleep of the program.
    pub(in super::super) poller: Poller,
    /// State shared with the progress thread.
    pub(in super::super) progress: Arc<ProgressShared>,
    /// A send that found no room may find some.
    pub(in super::super) has_room: AtomicBool,
    /// Number of channels or peers with data that waits for the next poll.
    pub(in super::super) waiting_count: AtomicUsize,
    /// Number of times the rank has written the waiting data.
    pub(in super::super) write_rounds: AtomicU32,
}

impl NetRank {
    /// Rank `rank` of `ranks`, with this number of channels.
    pub(in super::super) fn new(
        rank: u32,
        ranks: usize,
        channels: usize,
        source: Arc<dyn SlabSource>,
    ) -> io::Result<NetRank> {
        Ok(NetRank {
            rank,
            source,
            loopback: Loopback::new(LOOPBACK_MAX),
            peer_table: PeerTable::new(ranks),
            poller: Poller::new(channels)?,
            progress: Arc::new(ProgressShared::new(channels)?),
            has_room: AtomicBool::new(false),
            waiting_count: AtomicUsize::new(0),
            write_rounds: AtomicU32::new(0),
        })
    }

    /// Publishes a changed state of a rank, and wakes the thread that may wait for it.
    pub(in super::super) fn note_change(&self) {
        self.peer_table.note_change();
        self.wake();
    }

    /// Wakes the thread of this rank that sleeps on the channels, or elsewhere until they have events.
    pub(in super::super) fn wake(&self) {
        if self.progress.is_asleep.load(SeqCst) {
            match self.progress.epoll_waiter.get() {
                Some(epoll_waiter) => epoll_waiter.wake_sleeper(),
                None => self.poller.wake(),
            }
        }
    }

    /// Counts a round of writes. A round of another thread counts as well: it only makes this one's packets
    /// leave one by one again.
    #[inline]
    pub(in super::super) fn count_write_round(&self) {
        self.write_rounds.store(self.write_rounds.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Whether a message of this rank to itself waits, or room was found. Reads nothing.
    #[inline]
    pub(in super::super) fn has_local_work(&self) -> bool {
        self.loopback.has_packets() || self.has_room.load(Relaxed)
    }
}
