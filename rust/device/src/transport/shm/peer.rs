//! Another rank's segment, for reading: its queue to this rank, its slabs, what it says about itself.

use std::any::Any;
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mpjdev_buffer::{Slab, SlabMemory};
use mpjdev_sys::memory::LINE;
use mpjdev_sys::segment::{Segment, Writers};

use super::layout::{
    CONSUMED, FAILED, FINISHED, LEN, LIFE, MAGIC, MATCHED, QUEUE, QUEUE_LINES, RANK, RANKS, RETURNED,
    RETURNS, RETURNS_MAX, STATE, TAKEN_BACK, WHY, WHY_LEN, WHY_MAX, peer as peer_at, tables_len,
};
use super::pool::SegmentPool;
use super::ring::{self, Consumer, Damaged, OCTETS_MAX};
use super::{BY_REFERENCE, IN_TWO, INLINE, Job, NOTHING, parse_form};
use crate::pool::LEAD;
use crate::transport::{Header, Incoming, Kind, Payload, PeerState};

/// Another rank as this one sees it.
#[derive(Debug)]
pub(super) struct Peer {
    rank: u32,
    /// Number of the rank that looks.
    me: u32,
    ranks: usize,
    segment: Segment,
    /// First word and number of words of its queue to this rank, once it is there.
    queue: OnceLock<(usize, usize)>,
    /// Where this rank returns slabs to it.
    returning: Mutex<Returning>,
    /// Some slabs wait for room to be returned.
    returns_wait: AtomicBool,
    own: Arc<SegmentPool>,
}

/// The ring in this rank's segment by which slabs go back.
#[derive(Debug, Default)]
struct Returning {
    /// Its first word.
    ring: Option<usize>,
    count: u64,
    /// Those that found no room.
    waiting: VecDeque<u32>,
}

/// Why a rank has failed, as its own words say.
pub(super) fn why(words: &[AtomicU64]) -> String {
    let len = (words[WHY_LEN].load(Acquire) as usize).min(WHY_MAX);
    let mut octets = vec![0; len];
    mpjdev_buffer::octets::copy_out(words, WHY * 8, &mut octets);
    String::from_utf8_lossy(&octets).into_owned()
}

impl Peer {
    /// Maps the segment of a rank for the rank `me`.
    ///
    /// # Errors
    /// It is no segment of that rank; the system refuses.
    pub(super) fn open(rank: u32, me: u32, job: &Job, own: Arc<SegmentPool>) -> Result<Peer, String> {
        let file = &job.files[rank as usize];
        let ranks = job.files.len();
        let segment =
            Segment::open(file.as_fd(), tables_len(ranks), Writers::Owner).map_err(|e| e.to_string())?;
        let words = segment.words();
        let expected = [(0, MAGIC), (RANK, rank.into()), (RANKS, ranks as u64), (LEN, segment.len() as u64)];
        for (word, expected) in expected {
            let found = words[word].load(Acquire);
            if found != expected {
                return Err(format!("word {word} of its segment is {found:#x}, not {expected:#x}"));
            }
        }
        Ok(Peer {
            rank,
            me,
            ranks,
            segment,
            queue: OnceLock::new(),
            returning: Mutex::default(),
            returns_wait: AtomicBool::new(false),
            own,
        })
    }

    /// What it says about this rank.
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

    pub(super) fn life(&self) -> u64 {
        self.segment.words()[LIFE].load(Relaxed)
    }

    pub(super) fn state(&self) -> PeerState {
        match self.segment.words()[STATE].load(Acquire) {
            FAILED => PeerState::Failed(why(self.segment.words())),
            FINISHED => PeerState::Finished,
            _ => PeerState::Alive,
        }
    }

    /// Whether its queue to this rank is there; looks for it the first time.
    ///
    /// # Errors
    /// It is outside the segment.
    pub(super) fn queue(&self) -> Result<bool, Damaged> {
        if self.queue.get().is_some() {
            return Ok(true);
        }
        let offset = self.about_me(QUEUE).load(Acquire);
        if offset == 0 {
            return Ok(false);
        }
        let lines = self.about_me(QUEUE_LINES).load(Relaxed);
        // Room for the largest record and the line behind it.
        let least = ((3 + OCTETS_MAX.div_ceil(8)).div_ceil(ring::LINE) + 1) as u64;
        let end = lines.checked_mul(LINE as u64).and_then(|len| len.checked_add(offset));
        let is_inside = end.is_some_and(|end| end <= self.segment.len() as u64)
            && offset >= tables_len(self.ranks) as u64
            && offset.is_multiple_of(LINE as u64)
            && lines >= least;
        if !is_inside {
            return Err(Damaged("the place of its queue"));
        }
        let place = (offset as usize / 8, lines as usize * ring::LINE);
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

    /// Whether there is something in its queue at this position.
    #[inline]
    pub(super) fn is_ready_at(&self, position: u64) -> bool {
        let ring = self.ring();
        !ring.is_empty() && Consumer::is_ready_at(ring, position)
    }

    // ---- Slabs of this rank's that it returns

    pub(super) fn returned(&self) -> u64 {
        self.about_me(RETURNED).load(Acquire)
    }

    /// The number of the slab that was returned as the `index`th.
    pub(super) fn returned_slot(&self, index: u64) -> Result<u32, Damaged> {
        let offset = self.about_me(RETURNS).load(Acquire) as usize;
        let is_inside = offset.is_multiple_of(8)
            && offset >= tables_len(self.ranks)
            && offset.checked_add(RETURNS_MAX * 8).is_some_and(|end| end <= self.segment.len());
        if !is_inside {
            return Err(Damaged("the place of the slabs it returns"));
        }
        let at = offset / 8 + index as usize % RETURNS_MAX;
        Ok(self.segment.words()[at].load(Relaxed) as u32)
    }

    /// Tells it how many of the slabs that it has returned are taken back.
    pub(super) fn tell_taken_back(&self, count: u64) {
        self.my_words_about_it(TAKEN_BACK).store(count, Release);
    }

    // ---- Its slabs that this rank returns

    fn my_words_about_it(&self, what: usize) -> &AtomicU64 {
        &self.own.segment.words()[peer_at(self.rank) + what]
    }

    /// Tells it that this rank reads one of its slabs no more.
    fn give_back(&self, slot: u32) {
        let mut returning = self.returning.lock().unwrap_or_else(PoisonError::into_inner);
        returning.waiting.push_back(slot);
        self.hand_back(&mut returning);
    }

    /// Hands back what found no room before.
    pub(super) fn flush_returns(&self) {
        if self.returns_wait.load(Relaxed) {
            self.hand_back(&mut self.returning.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn hand_back(&self, returning: &mut Returning) {
        // As many as it has lent may come back before it takes one: what finds no place waits.
        let ring = match returning.ring {
            Some(ring) => ring,
            None => {
                // Without memory for this the slabs stay lent, and their owner does without them.
                let Some(chunk) = self.own.fresh(RETURNS_MAX * 8) else { return };
                self.my_words_about_it(RETURNS).store(chunk.offset as u64, Release);
                *returning.ring.insert(chunk.offset / 8)
            }
        };
        let taken = self.about_me(TAKEN_BACK).load(Acquire);
        let before = returning.count;
        while returning.count.wrapping_sub(taken) < RETURNS_MAX as u64
            && let Some(slot) = returning.waiting.pop_front()
        {
            let at = ring + returning.count as usize % RETURNS_MAX;
            self.own.segment.words()[at].store(slot.into(), Relaxed);
            returning.count += 1;
        }
        if returning.count != before {
            self.my_words_about_it(RETURNED).store(returning.count, Release);
        }
        self.returns_wait.store(!returning.waiting.is_empty(), Relaxed);
    }

    /// A slab of its that a packet refers to: place and slot as they were read, once.
    fn slab(self: &Arc<Self>, place: u64, rest: u64) -> Result<(Slab, usize), Damaged> {
        let (first, count) = (place as u32 as usize * LINE, (place >> 32) as usize * LINE);
        let (slot, len) = (rest as u32, (rest >> 32) as usize);
        let end = first.checked_add(count).filter(|end| *end <= self.segment.len());
        match end {
            Some(end) if first >= tables_len(self.ranks) && count > LEAD && len <= count - LEAD => {
                let words = ((first + LEAD) / 8, end / 8);
                let memory = ForeignSlab { peer: self.clone(), words, slot };
                Ok((Slab::foreign(memory), len))
            }
            _ => Err(Damaged("the place of a slab")),
        }
    }
}

/// A slab in another rank's segment; dropping it tells its owner.
#[derive(Debug)]
struct ForeignSlab {
    peer: Arc<Peer>,
    /// First word, and the one behind the last.
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
}

impl Drop for ForeignSlab {
    fn drop(&mut self) {
        self.peer.give_back(self.slot);
    }
}

/// A rank whose queue is looked at.
#[derive(Debug)]
pub(super) struct Source {
    peer: Arc<Peer>,
    consumer: Consumer,
    /// The octets of the record at hand: copied out once, before anybody looks at them.
    octets: Box<[u64; OCTETS_MAX / 8]>,
}

impl Source {
    pub(super) fn new(peer: Arc<Peer>) -> Source {
        Source { peer, consumer: Consumer::default(), octets: Box::new([0; OCTETS_MAX / 8]) }
    }

    pub(super) fn position(&self) -> u64 {
        self.consumer.position()
    }

    #[inline]
    pub(super) fn flush_returns(&self) {
        self.peer.flush_returns();
    }

    /// Hands the next packet to `each`; false when there is none.
    ///
    /// # Errors
    /// What stands there is no packet.
    #[inline]
    pub(super) fn next(&mut self, each: impl FnOnce(Header, Incoming<'_>)) -> Result<bool, Damaged> {
        let Source { peer, consumer, octets } = self;
        let Some((head, words)) = consumer.peek(peer.ring())? else { return Ok(false) };
        for (to, word) in octets.iter_mut().zip(words) {
            *to = word.load(Relaxed);
        }
        consumer.pass(&head);
        let (kind, body) = parse_form(head.form).ok_or(Damaged("the form of a packet"))?;
        let token_len = if kind == Kind::Eager { 0 } else { 8 };
        let len = head.len.checked_sub(token_len).ok_or(Damaged("the length of a packet"))?;
        let token = if token_len > 0 { octets[0] } else { 0 };
        let header = Header { kind, context: head.context, tag: head.tag, token };
        let octets = &octets[token_len / 8..];
        let incoming = match (body, len) {
            (NOTHING, 0) => Incoming::Nothing,
            (INLINE, len) => Incoming::Inline(octets, len),
            (BY_REFERENCE, 16) => {
                let (slab, len) = peer.slab(octets[0], octets[1])?;
                Incoming::Reference(Payload::Physical(slab, len))
            }
            (IN_TWO, 32) => {
                let first = peer.slab(octets[0], octets[1])?;
                Incoming::Reference(Payload::Parts(first, peer.slab(octets[2], octets[3])?))
            }
            _ => return Err(Damaged("the length of a packet")),
        };
        each(header, incoming);
        Ok(true)
    }
}
