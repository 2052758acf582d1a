//! Sending side of a rank, its view of the other ranks, and its sleep.

use std::fmt::Display;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use mpjdev_buffer::Slab;
use mpjdev_sys::sync::Mutex;
use tracing::{debug, warn};

use super::Job;
use super::hints::{EpochTracker, Room, futex_at};
use super::layout::{
    ALIVE, CONSUMED, FAILED, FINISHED, HEARTBEAT, MATCHED, QUEUE_LINES_MAX, STATE, peer as peer_at,
};
use super::peer::{self, Peer};
use super::pool::{Reclaim, SegmentPool, place};
use super::ring::{LEAST_OCTETS, lines};
use super::segment_fault::SegmentFault;
use super::send_queue::{SendQueue, Unsent};
use super::slot_table::SlotTable;
use super::status_page::set_failed;
use crate::config::{Config, INLINE_MAX};
use crate::loopback::Loopback;
use crate::slots::Slots;
use crate::{Header, Outgoing, PeerState, ShortSend, Transport, Unacked};

/// Sending side of one rank.
#[derive(Debug)]
pub struct ShmTransport {
    pub(super) rank: u32,
    pub(super) inline_max: usize,
    pub(super) queue_lines: usize,
    pub(super) pool: Arc<SegmentPool>,
    pub(super) job: Arc<Job>,
    pub(super) peers: Box<[OnceLock<Arc<Peer>>]>,
    /// Queues to the others, from first contact on.
    pub(super) send_queues: Box<[OnceLock<Mutex<SendQueue>>]>,
    /// Requests for room by destination, and their number.
    pub(super) room: Box<[Room]>,
    pub(super) room_asked: AtomicU32,
    /// Sources whose queues are polled without a doorbell, one bit each.
    pub(super) active: Box<[AtomicU64]>,
    /// Doorbells that are ignored: of no rank, or of a rank whose queue is damaged.
    pub(super) ignored: Box<[AtomicU64]>,
    pub(super) loopback: Loopback,
    /// Index of its first hint word.
    pub(super) own_futex: usize,
    pub(super) epochs: EpochTracker,
    pub(super) slot_table: SlotTable,
    abort: OnceLock<(u32, String)>,
    /// This rank has recorded why it fails.
    failure_written: Once,
    /// The last epoch in which no rank had failed.
    checked_epoch: AtomicU32,
}

/// Lines of a queue. A sender that waits for room is woken before the queue is empty ([`Peer::quarter`]).
fn queue_lines(config: &Config) -> usize {
    let largest = lines(LEAST_OCTETS.max(config.inline_max));
    let least = (4 * largest + 4).next_power_of_two();
    (config.queue_cells * largest.min(8)).next_power_of_two().clamp(least, QUEUE_LINES_MAX)
}

impl ShmTransport {
    pub(super) fn new(rank: u32, config: &Config, pool: Arc<SegmentPool>, job: Arc<Job>) -> ShmTransport {
        let ranks = job.ranks();
        let bits = || (0..ranks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        ShmTransport {
            rank,
            inline_max: config.inline_max.min(INLINE_MAX),
            queue_lines: queue_lines(config),
            peers: (0..ranks).map(|_| OnceLock::new()).collect(),
            send_queues: (0..ranks).map(|_| OnceLock::new()).collect(),
            room: (0..ranks).map(|_| Room::default()).collect(),
            room_asked: AtomicU32::new(0),
            active: bits(),
            ignored: bits(),
            loopback: Loopback::new(config.queue_cells),
            own_futex: futex_at(ranks, rank),
            epochs: EpochTracker::default(),
            slot_table: SlotTable::new(),
            abort: OnceLock::new(),
            failure_written: Once::new(),
            checked_epoch: AtomicU32::new(0),
            pool,
            job,
        }
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        self.pool.segment.words()
    }

    /// A word of this rank about a peer.
    #[inline(always)]
    pub(super) fn about(&self, peer: u32, what: usize) -> &AtomicU64 {
        &self.words()[peer_at(peer) + what]
    }

    pub(super) fn peer_of(&self, rank: u32) -> Result<&Arc<Peer>, SegmentFault> {
        let place = &self.peers[rank as usize];
        if let Some(peer) = place.get() {
            return Ok(peer);
        }
        // One thread maps the file; afterwards it is closed.
        let mut file = self.job.files[rank as usize].lock();
        if let Some(peer) = place.get() {
            return Ok(peer);
        }
        debug!(target: "mpjdev::shm", rank = self.rank, peer = rank, "segment of a peer is mapped");
        let open = file.as_ref().ok_or(SegmentFault::Closed)?;
        let peer = Peer::open(rank, self.rank, self.job.ranks(), open.as_fd(), self.pool.clone())?;
        *file = None;
        Ok(place.get_or_init(|| Arc::new(peer)))
    }

    /// Ends the job because of what another rank has written.
    #[cold]
    pub(super) fn fail_because_of(&self, rank: u32, what: &dyn Display) {
        self.fail(&format!("the shared memory of rank {} is damaged: {what}", self.job.base + rank));
    }

    fn send_slowly(&self, dest: u32, header: Header, body: Outgoing<'_>) -> bool {
        if dest == self.rank {
            let sent = self.loopback.send(header, body);
            if sent {
                self.wake(self.rank);
            }
            return sent;
        }
        let mut sent = self.send_to(dest, header, body);
        if let Ok(false) = sent {
            // There may have been room before the receiver could see the request.
            sent = self.send_to(dest, header, body);
        }
        match sent {
            Ok(true) => {
                self.notify(dest);
                return true;
            }
            Ok(false) => {}
            Err(Unsent::Peer(fault)) => self.fail_because_of(dest, &fault),
            Err(unsent) => self.fail(&unsent.to_string()),
        }
        false
    }

    /// The state of a rank according to its own segment.
    fn state_of(&self, rank: u32) -> PeerState {
        if rank == self.rank {
            return match self.words()[STATE].load(Acquire) {
                FAILED => PeerState::Failed(peer::why(self.words())),
                FINISHED => PeerState::Finished,
                _ => PeerState::Alive,
            };
        }
        match self.peer_of(rank) {
            Ok(peer) => peer.state(),
            Err(fault) => PeerState::Failed(fault.to_string()),
        }
    }
}

impl ShmTransport {
    #[inline(always)]
    fn is_ready_from(&self, source: u32) -> bool {
        let position = self.about(source, CONSUMED).load(Relaxed);
        self.peers[source as usize].get().is_some_and(|peer| peer.is_ready_at(position))
    }
}

/// Slabs on loan return to the pool, which is closed, so others may still read them. Ranks whose segments
/// were never mapped also get the notice that this rank holds none of their slabs.
impl Drop for ShmTransport {
    fn drop(&mut self) {
        self.pool.close();
        let unknown = (0..).zip(&self.peers).filter(|(_, peer)| peer.get().is_none());
        unknown.for_each(|(rank, _)| self.pool.release(rank));
    }
}

impl Reclaim for ShmTransport {
    fn collect_returns(&self) {
        for (rank, place) in self.send_queues.iter().enumerate() {
            let Some(peer) = self.peers[rank].get() else { continue };
            peer.flush_returns();
            let Some(mut send_queue) = place.get().and_then(|send_queue| send_queue.try_lock()) else {
                continue;
            };
            let has_ended = self.job.pages.has_ended(rank as u32);
            if let Err(damage) = send_queue.loans.collect_returns(peer, has_ended) {
                self.fail_because_of(rank as u32, &damage);
            }
        }
    }
}

impl Transport for ShmTransport {
    #[inline]
    fn try_send(&self, dest: u32, header: Header, body: Outgoing<'_>) -> bool {
        self.send_slowly(dest, header, body)
    }

    #[inline]
    fn try_send_short(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        words: &[AtomicU64],
        len: usize,
    ) -> ShortSend {
        self.send_short(dest, context, tag, words, len)
    }

    fn try_send_copy(&self, dest: u32, context: u64, tag: i32, words: &[AtomicU64], len: usize) -> ShortSend {
        self.send_copy(dest, context, tag, words, len)
    }

    fn prepay(&self, dest: u32, octets: u64) {
        self.prepay_short(dest, octets);
    }

    fn slots(&self) -> Option<&dyn Slots> {
        Some(self)
    }

    fn cancel_room_request(&self, dest: u32) {
        if let Some(send_queue) = self.send_queues[dest as usize].get() {
            let _send_queue = send_queue.lock();
            self.note_room(dest);
        }
    }

    #[inline]
    fn can_send_by_reference(&self, slab: &Slab) -> bool {
        place(slab, &self.pool).is_some()
    }

    #[inline]
    fn is_ready(&self) -> bool {
        if self.loopback.has_packets() || self.has_room() || self.has_awaited_slot() {
            return true;
        }
        let doorbells = self.own_doorbells();
        for (word, (active, rung)) in self.active.iter().zip(doorbells).enumerate() {
            let mut bits = active.load(Relaxed);
            if rung.load(Relaxed) & !bits != 0 && self.has_new_doorbells() {
                return true;
            }
            while bits != 0 {
                if self.is_ready_from(word as u32 * 64 + bits.trailing_zeros()) {
                    return true;
                }
                bits &= bits - 1;
            }
        }
        false
    }

    fn park(&self, most: Duration, ready: &mut dyn FnMut() -> bool) {
        self.sleep_on_futex(most, ready);
    }

    fn waker_processor(&self) -> Option<u32> {
        self.waker_processor()
    }

    fn has_progress_threads(&self) -> bool {
        true
    }

    fn kick_progress_thread(&self, rank: u32) {
        self.wake_progress_thread(rank);
    }

    fn wake(&self) {
        self.wake(self.rank);
    }

    #[inline]
    fn epoch(&self) -> u32 {
        self.epochs.epoch(self.hints())
    }

    fn peer(&self, rank: u32) -> PeerState {
        match self.job.pages.death_of(rank) {
            Some(death) => PeerState::Failed(death.to_string()),
            None => self.state_of(rank),
        }
    }

    fn abort(&self) -> Option<(u32, String)> {
        if let Some(abort) = self.abort.get() {
            return Some(abort.clone());
        }
        let epoch = self.epoch();
        if self.checked_epoch.load(Acquire) == epoch {
            return None;
        }
        let failed = (0..self.job.ranks() as u32).find_map(|rank| match self.state_of(rank) {
            PeerState::Failed(why) => Some((rank, why)),
            _ => None,
        });
        match failed {
            Some(failed) => Some(self.abort.get_or_init(|| {
                let (peer, why) = &failed;
                warn!(target: "mpjdev::failure", rank = self.rank, peer, why, "peer has ended the job");
                failed
            }).clone()),
            None => {
                self.checked_epoch.store(epoch, Release);
                None
            }
        }
    }

    fn finish(&self) -> Vec<Unacked> {
        let state = &self.words()[STATE];
        if state.compare_exchange(ALIVE, FINISHED, SeqCst, SeqCst).is_ok() {
            debug!(target: "mpjdev::shm", rank = self.rank, "finish is written to the segment");
            self.wake_all();
        }
        Vec::new()
    }

    fn fail(&self, why: &str) {
        let words = self.words();
        // Only the first text counts. A thread that fails at the same time returns when the text is complete.
        self.failure_written.call_once(|| {
            set_failed(words, why);
            self.wake_all();
        });
    }

    fn credits_returned_by(&self, dest: u32) -> u64 {
        if dest == self.rank {
            return self.about(dest, MATCHED).load(Acquire);
        }
        self.peers[dest as usize].get().map_or(0, |peer| peer.matched())
    }

    fn return_credit(&self, source: u32, octets: u64) {
        self.about(source, MATCHED).store(octets, Release);
    }

    #[inline]
    fn heartbeat(&self) {
        // Every caller holds the rank's lock, so no read-modify-write is needed.
        let heartbeat = &self.words()[HEARTBEAT];
        heartbeat.store(heartbeat.load(Relaxed) + 1, Relaxed);
    }

    fn heartbeat_of(&self, rank: u32) -> u64 {
        if rank == self.rank {
            return self.words()[HEARTBEAT].load(Relaxed);
        }
        self.peer_of(rank).map_or(0, |peer| peer.heartbeat())
    }

    fn name(&self) -> &'static str {
        "shm"
    }
}
