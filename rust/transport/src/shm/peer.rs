//! Read-only view of another rank's segment: its queue to this rank, its slabs, and its words about itself.

use std::any::Any;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, fence};
use std::sync::{Arc, OnceLock};

use mpjdev_buffer::{Slab, SlabMemory};
use mpjdev_sys::memory::LINE;
use mpjdev_sys::segment::{Segment, Writers};
use mpjdev_sys::sync::{LockRank, Mutex};

use super::layout::{
    CLOSED, COLLECTED, CONSUMED, CREDIT, FAILED, FINISHED, HEARTBEAT, LEN, MAGIC, MATCHED, QUEUE_LINES,
    QUEUE_LINES_MAX, RANK, RANKS, RELEASED, RETURNED, RETURNS_MAX, STATE, WAITS, WHY, WHY_LEN, WHY_MAX,
    huge_at, peer as peer_at, queue_at, returns_at, slabs_at,
};
use super::pool::SegmentPool;
use super::ring::{self, Consumer, LEAST_OCTETS};
use super::segment_fault::{Damage, PacketFault, SegmentFault};
use super::{BY_REFERENCE, HEADED, IN_TWO, INLINE, NOTHING, PACKING, form, parse_form};
use crate::config::TOKEN_LEN;
use crate::pool::LEAD;
use crate::{Header, Incoming, Kind, Payload, PeerState, ProtocolViolation};

/// Largest physical message in octets: lengths and capacities fit 31 bits.
const LEN_MAX: usize = i32::MAX as usize;

/// Another rank as seen from this one.
#[derive(Debug)]
pub(super) struct Peer {
    rank: u32,
    /// Number of the rank that reads the segment.
    me: u32,
    ranks: usize,
    segment: Segment,
    /// First word and number of words of its queue to this rank, once the queue exists.
    queue: OnceLock<(usize, usize)>,
    /// The return ring for its slabs.
    returning: Mutex<Returning>,
    /// Some slabs wait for free entries in the return ring.
    returns_wait: AtomicBool,
    own: Arc<SegmentPool>,
}

/// The ring in this rank's segment that returns slabs to their owner.
#[derive(Debug, Default)]
struct Returning {
    /// The memory of the ring is allocated.
    is_there: bool,
    count: u64,
    /// Number of returned slabs that the owner had collected when it was last read.
    taken: u64,
    /// Slabs that found no free entry.
    waiting: VecDeque<u32>,
}

/// The text that a failed rank has written about its failure.
pub(super) fn why(words: &[AtomicU64]) -> String {
    let len = (words[WHY_LEN].load(Acquire) as usize).min(WHY_MAX);
    let mut octets = vec![0; len];
    mpjdev_buffer::octets::copy_out(words, WHY * 8, &mut octets);
    String::from_utf8_lossy(&octets).into_owned()
}

impl Peer {
    /// Maps the segment of a rank for the rank `me`. A lack of room triggers no garbage collection: the
    /// caller may hold the rank's lock, and threads that free memory may need that lock. Joining has made
    /// room before.
    ///
    /// # Errors
    /// The file is not the segment of that rank; the system refuses.
    pub(super) fn open(
        rank: u32,
        me: u32,
        ranks: usize,
        file: BorrowedFd<'_>,
        own: Arc<SegmentPool>,
    ) -> Result<Peer, SegmentFault> {
        let segment = Segment::open(file, slabs_at(ranks), Writers::Owner)?;
        segment.advise_huge(huge_at(ranks));
        let words = segment.words();
        let credit = own.segment.words()[CREDIT].load(Relaxed);
        let expected = [
            (0, MAGIC),
            (RANK, rank.into()),
            (RANKS, ranks as u64),
            (LEN, segment.len() as u64),
            (CREDIT, credit),
        ];
        for (word, expected) in expected {
            let found = words[word].load(Acquire);
            if found != expected {
                return Err(SegmentFault::Word { word, found, expected });
            }
        }
        Ok(Peer {
            rank,
            me,
            ranks,
            segment,
            queue: OnceLock::new(),
            returning: Mutex::new(LockRank::SlabReturns, Returning::default()),
            returns_wait: AtomicBool::new(false),
            own,
        })
    }

    /// A word of its segment about this rank.
    #[inline(always)]
    fn about_me(&self, what: usize) -> &AtomicU64 {
        &self.segment.words()[peer_at(self.me) + what]
    }

    pub(super) fn consumed(&self) -> u64 {
        self.about_me(CONSUMED).load(Acquire)
    }

    pub(super) fn matched(&self) -> u64 {
        self.about_me(MATCHED).load(Acquire)
    }

    /// One of its words about the slots of this rank that it has closed.
    pub(super) fn closed(&self, word: usize) -> u64 {
        self.about_me(CLOSED + word).load(Acquire)
    }

    #[inline(always)]
    pub(super) fn words(&self) -> &[AtomicU64] {
        self.segment.words()
    }

    pub(super) fn heartbeat(&self) -> u64 {
        self.segment.words()[HEARTBEAT].load(Relaxed)
    }

    pub(super) fn state(&self) -> PeerState {
        match self.segment.words()[STATE].load(Acquire) {
            FAILED => PeerState::Failed(why(self.segment.words())),
            FINISHED => PeerState::Finished,
            _ => PeerState::Alive,
        }
    }

    /// Whether its queue to this rank exists. The first success stores where it lies.
    ///
    /// # Errors
    /// The stated length is impossible.
    pub(super) fn queue(&self) -> Result<bool, Damage> {
        if self.queue.get().is_some() {
            return Ok(true);
        }
        let lines = self.about_me(QUEUE_LINES).load(Acquire);
        if lines == 0 {
            return Ok(false);
        }
        if !(2..=QUEUE_LINES_MAX as u64).contains(&lines) || !lines.is_power_of_two() {
            return Err(Damage::QueueLen);
        }
        let offset = queue_at(self.ranks, self.me);
        let place = (offset / 8, lines as usize * ring::LINE);
        self.queue.get_or_init(|| place);
        Ok(true)
    }

    #[inline(always)]
    fn ring(&self) -> &[AtomicU64] {
        match self.queue.get() {
            Some((first, words)) => &self.segment.words()[*first..][..*words],
            None => &[],
        }
    }

    /// Whether its queue has a record, or damage, at this position.
    #[inline]
    pub(super) fn is_ready_at(&self, position: u64) -> bool {
        let ring = self.ring();
        !ring.is_empty() && Consumer::is_ready_at(ring, position)
    }

    /// A quarter of its queue to this rank, in lines. The rank is woken for room at most once per quarter.
    pub(super) fn quarter(&self) -> u64 {
        (self.ring().len() / ring::LINE / 4) as u64
    }

    /// Whether it waits for room in its queue to this rank.
    pub(super) fn waits_for_room(&self) -> bool {
        self.about_me(WAITS).load(Relaxed) != 0
    }

    // ---- Slabs of this rank that the peer returns

    pub(super) fn returned(&self) -> u64 {
        self.about_me(RETURNED).load(Acquire)
    }

    /// The loan number in entry `index` of the return ring.
    pub(super) fn returned_slot(&self, index: u64) -> u32 {
        let at = returns_at(self.ranks, self.me) / 8 + index as usize % RETURNS_MAX;
        self.segment.words()[at].load(Relaxed) as u32
    }

    /// Whether it reads no slab of this rank any more, returned or not.
    pub(super) fn has_released(&self) -> bool {
        self.about_me(RELEASED).load(Acquire) != 0
    }

    /// Publishes the number of its returned slabs that this rank has collected.
    pub(super) fn publish_collected(&self, count: u64) {
        self.my_words_about_it(COLLECTED).store(count, Release);
    }

    // ---- Slabs of the peer that this rank returns

    fn my_words_about_it(&self, what: usize) -> &AtomicU64 {
        &self.own.segment.words()[peer_at(self.rank) + what]
    }

    /// Returns one of its slabs, which this rank reads no more.
    fn return_slab(&self, slot: u32) {
        let mut returning = self.returning.lock();
        returning.waiting.push_back(slot);
        self.write_returns(&mut returning);
    }

    /// Returns the slabs that found no free entry before.
    pub(super) fn flush_returns(&self) {
        if self.returns_wait.load(Relaxed) {
            self.write_returns(&mut self.returning.lock());
        }
    }

    fn write_returns(&self, returning: &mut Returning) {
        // The peer may get back all slabs on loan before it collects one. Slabs without a free entry
        // wait.
        self.returns_wait.store(true, Relaxed);
        let ring = returns_at(self.ranks, self.rank);
        if !returning.is_there && self.own.claim(ring, RETURNS_MAX * 8).is_err() {
            // Without memory for the ring the slabs stay on loan until a later call finds some.
            return;
        }
        returning.is_there = true;
        if returning.count.wrapping_sub(returning.taken) + returning.waiting.len() as u64 > RETURNS_MAX as u64
        {
            returning.taken = self.about_me(COLLECTED).load(Acquire);
        }
        let before = returning.count;
        while returning.count.wrapping_sub(returning.taken) < RETURNS_MAX as u64
            && let Some(slot) = returning.waiting.pop_front()
        {
            let at = ring / 8 + returning.count as usize % RETURNS_MAX;
            self.own.segment.words()[at].store(slot.into(), Relaxed);
            returning.count += 1;
        }
        if returning.count != before {
            self.my_words_about_it(RETURNED).store(returning.count, Release);
        }
        self.returns_wait.store(!returning.waiting.is_empty(), Relaxed);
    }

    /// The slab of this peer that a packet refers to. The caller has read `place` and `rest` exactly once.
    fn slab(self: &Arc<Self>, place: u64, rest: u64) -> Result<(Slab, usize), Damage> {
        let (first, count) = (place as u32 as usize * LINE, (place >> 32) as usize * LINE);
        let (slot, len) = (rest as u32, (rest >> 32) as usize);
        let end = first.checked_add(count).filter(|end| *end <= self.segment.len());
        match end {
            Some(end)
                if first >= slabs_at(self.ranks) && count > LEAD && len <= (count - LEAD).min(LEN_MAX) =>
            {
                let words = ((first + LEAD) / 8, end / 8);
                let memory = ForeignSlab { peer: self.clone(), words, slot };
                Ok((Slab::foreign(memory), len))
            }
            _ => Err(Damage::Slab),
        }
    }
}

/// The last reference to the segment is dropped: no queue of it is read and no slab is held. The owner
/// reclaims all slabs that were not returned, those of unread packets among them.
impl Drop for Peer {
    fn drop(&mut self) {
        self.own.release(self.rank);
    }
}

/// A slab in another rank's segment. Dropping it returns it to its owner.
#[derive(Debug)]
struct ForeignSlab {
    peer: Arc<Peer>,
    /// First word, and the word after the last.
    words: (usize, usize),
    slot: u32,
}

impl SlabMemory for ForeignSlab {
    #[inline]
    fn words(&self) -> &[AtomicU64] {
        &self.peer.segment.words()[self.words.0..self.words.1]
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn packed(&self) -> Option<&AtomicU64> {
        self.peer.segment.words().get(self.words.0 - LEAD / 8)
    }

    /// The owner reuses the slab for other messages, in the same mapping.
    fn hold(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(self.peer.clone())
    }
}

impl Drop for ForeignSlab {
    fn drop(&mut self) {
        self.peer.return_slab(self.slot);
    }
}

/// A rank whose queue is polled.
#[derive(Debug)]
pub(super) struct Source {
    peer: Arc<Peer>,
    consumer: Consumer,
    /// The position last published to it. `checked` is the position at the last check whether it waits for
    /// room.
    published: u64,
    checked: u64,
}

impl Source {
    pub(super) fn new(peer: Arc<Peer>) -> Source {
        Source { peer, consumer: Consumer::default(), published: 0, checked: 0 }
    }

    /// The position of this rank in the queue, if it has changed since it was last published.
    #[inline]
    pub(super) fn new_position(&mut self) -> Option<u64> {
        let position = self.consumer.position();
        (std::mem::replace(&mut self.published, position) != position).then_some(position)
    }

    #[inline]
    pub(super) fn flush_returns(&self) {
        self.peer.flush_returns();
    }

    /// Whether the rank waits for room and should be woken. It is asked at most once per quarter of the
    /// queue. The caller has published the position before.
    #[inline]
    pub(super) fn must_notify_room(&mut self) -> bool {
        if self.consumer.position() - self.checked < self.peer.quarter() {
            return false;
        }
        self.checked = self.consumer.position();
        fence(SeqCst);
        self.peer.waits_for_room()
    }

    /// Passes the next packet to `take` if it is an eager message of this context and tag with its octets in
    /// the record. Returns the number of octets if `take` takes it. Polls at most `polls` times. Finds no
    /// damage: [`next`](Self::next) does.
    #[inline(always)]
    pub(super) fn take_short(
        &mut self,
        context: u64,
        tag: i32,
        mut polls: u32,
        take: impl FnOnce(&[AtomicU64], usize) -> bool,
    ) -> Option<usize> {
        let Source { peer, consumer, .. } = self;
        let ring = peer.ring();
        while !Consumer::is_ready_at(ring, consumer.position()) {
            polls = polls.checked_sub(1)?;
            std::hint::spin_loop();
        }
        let (head, words) = consumer.peek(ring).ok()??;
        let is_it = (head.form, head.tag, head.context) == (form(Kind::Eager, INLINE), tag, context);
        if !is_it || !take(words, head.len) {
            return None;
        }
        consumer.pass(&head);
        consumer.prefetch(ring);
        Some(head.len)
    }

    /// Passes the next packet to `each`, which accepts or rejects it. Returns false when the queue is empty.
    ///
    /// # Errors
    /// The record is no packet, or `each` rejects the packet.
    #[inline]
    pub(super) fn next(
        &mut self,
        each: impl FnOnce(Header, Incoming<'_>) -> Result<(), ProtocolViolation>,
    ) -> Result<bool, PacketFault> {
        let Source { peer, consumer, .. } = self;
        let Some((head, words)) = consumer.peek(peer.ring())? else { return Ok(false) };
        let (kind, body) = parse_form(head.form).ok_or(Damage::Form)?;
        if head.tag < 0 {
            return Err(Damage::Tag.into());
        }
        let mut header = Header { kind, context: head.context, tag: head.tag, token: 0 };
        if kind == Kind::Eager && body == INLINE {
            each(header, Incoming::Inline(words, head.len))?;
            consumer.pass(&head);
            return Ok(true);
        }
        let token_len = if kind == Kind::Eager { 0 } else { TOKEN_LEN };
        let len = head.len.checked_sub(token_len).ok_or(Damage::PacketLen)?;
        // Most packets whose sender waits go by reference: they hold the sender's memory, not this rank's.
        if kind == Kind::Synchronous && body == INLINE {
            header.token = words[0].load(Relaxed);
            each(header, Incoming::Inline(&words[TOKEN_LEN / 8..], len))?;
            consumer.pass(&head);
            return Ok(true);
        }
        // The words are copied once, so that the checked values are the values used.
        let mut octets = [0; LEAST_OCTETS / 8];
        octets.iter_mut().zip(words).for_each(|(to, word)| *to = word.load(Relaxed));
        consumer.pass(&head);
        if token_len > 0 {
            header.token = octets[0];
        }
        let octets = &octets[token_len / 8..];
        let incoming = match (body, len) {
            (NOTHING, 0) => Incoming::Nothing,
            (BY_REFERENCE, 16) => {
                let (slab, len) = peer.slab(octets[0], octets[1])?;
                Incoming::Reference(Payload::Physical(slab, len))
            }
            (HEADED | PACKING, 40) => {
                let (slab, len) = peer.slab(octets[0], octets[1])?;
                let slab = if body == PACKING { slab.packing() } else { slab };
                Incoming::Reference(Payload::WithHeaders(
                    slab,
                    len,
                    [2, 3, 4].map(|i| octets[i].to_ne_bytes()),
                ))
            }
            (IN_TWO, 32) => {
                let first = peer.slab(octets[0], octets[1])?;
                Incoming::Reference(Payload::Split(first, peer.slab(octets[2], octets[3])?))
            }
            _ => return Err(Damage::PacketLen.into()),
        };
        each(header, incoming)?;
        Ok(true)
    }
}
