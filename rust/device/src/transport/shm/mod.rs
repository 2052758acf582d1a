//! Ranks as processes of one machine: packets go through queues in shared memory, large messages by reference.
//!
//! Each rank has one segment that it alone writes: its queues to the others, its slabs, and how far it has come in what
//! the others have written. Everybody else maps it for reading. So a rank that writes nonsense harms itself only: what
//! it says is copied out once, checked, and then used. One page is written by all: who should look where, who should wake
//! up, and, until the monitor has a page of its own, who has died.

pub mod death;
mod inbox;
mod layout;
mod lending;
mod peer;
mod pool;
mod ring;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use mpjdev_buffer::octets::copy_words;
use mpjdev_buffer::{Slab, SlabSource};
pub use mpjdev_sys::segment::Segment;
use mpjdev_sys::segment::Writers;

use super::{Header, Kind, Outgoing, Payload, PeerState, Wire, goes_inline};
use crate::config::Config;
pub use inbox::ShmInbox;
use layout::{
    ALIVE, BELLS, CONSUMED, DEATH, DOORBELLS, EPOCH, FAILED, FINISHED, HELPER, LEN, LIFE, MAGIC, MATCHED,
    QUEUE, QUEUE_LINES, RANK, RANKS, STATE, WHY, WHY_LEN, WHY_MAX, bell_words, common_len, peer as peer_at,
    tables_len,
};
use lending::{Lending, Part};
use peer::Peer;
pub use pool::SegmentPool;
use pool::{Reclaim, place};
use ring::{Damaged, Head, LINE, OCTETS_MAX, Producer};

/// What the ranks of a job have of each other before the first packet.
#[derive(Debug)]
pub struct Job {
    /// The page that all write.
    pub common: Segment,
    /// The segments' files, by rank.
    pub files: Vec<OwnedFd>,
}

/// The sending side of one rank.
#[derive(Debug)]
pub struct ShmWire {
    rank: u32,
    inline_max: usize,
    queue_lines: usize,
    pool: Arc<SegmentPool>,
    job: Arc<Job>,
    peers: Box<[OnceLock<Arc<Peer>>]>,
    /// Queues to the others, from first contact on.
    sending: Box<[OnceLock<Mutex<Sending>>]>,
    /// Sources whose queues are looked at without a doorbell, one bit each, and how far this rank has come in them.
    active: Box<[AtomicU64]>,
    /// Doorbells that mean nothing, or belong to a rank whose queue is damaged.
    ignored: Box<[AtomicU64]>,
    /// Packets of this rank to itself.
    own: Mutex<std::collections::VecDeque<(Header, Option<Payload>)>>,
    own_waits: AtomicBool,
    own_max: usize,
    abort: OnceLock<(u32, String)>,
}

/// What a rank's helper sleeps on; it keeps nothing of the rank alive.
#[derive(Debug)]
pub struct HelperBell {
    job: Arc<Job>,
    word: usize,
}

impl HelperBell {
    /// Sleeps until a rank calls the helper, which it says, or the time is over.
    pub fn sleep(&self, most: Duration) -> bool {
        let bell = self.job.common.bell(self.word);
        let before = bell.rings();
        bell.sleep(most, || bell.rings() != before);
        bell.rings() != before
    }
}

/// A queue to one other rank.
#[derive(Debug)]
struct Sending {
    /// Where its ring begins in the segment, in words.
    ring: usize,
    producer: Producer,
    lending: Lending,
}

/// How a packet's octets travel; together with its kind this is the form of a record.
const NOTHING: u8 = 0;
const INLINE: u8 = 1;
const BY_REFERENCE: u8 = 2;
const IN_TWO: u8 = 3;

fn form(kind: Kind, body: u8) -> ring::Form {
    let kind = match kind {
        Kind::Eager => 0,
        Kind::Synchronous => 1,
        Kind::Matched => 2,
    };
    kind << 4 | body
}

fn parse_form(form: ring::Form) -> Option<(Kind, u8)> {
    let kind = match form >> 4 {
        0 => Kind::Eager,
        1 => Kind::Synchronous,
        2 => Kind::Matched,
        _ => return None,
    };
    (form & 15 <= IN_TWO).then_some((kind, form & 15))
}

/// Makes a rank's segment. Its messages take memory from the pool that is given back.
///
/// # Errors
/// The system refuses.
pub fn create(
    rank: u32,
    ranks: usize,
    segment_len: usize,
    private: Arc<dyn SlabSource>,
) -> io::Result<Arc<SegmentPool>> {
    let (segment, file) = Segment::create(&format!("mpjdev-rank-{rank}"), segment_len, Writers::Owner)?;
    let tables = tables_len(ranks);
    if tables >= segment_len {
        return Err(io::Error::other(format!(
            "a segment of {segment_len} octets is too small for {ranks} ranks"
        )));
    }
    mpjdev_sys::segment::allocate(file.as_fd(), 0, tables)?;
    let words = segment.words();
    words[RANK].store(u64::from(rank), Relaxed);
    words[RANKS].store(ranks as u64, Relaxed);
    words[LEN].store(segment_len as u64, Relaxed);
    words[STATE].store(ALIVE, Relaxed);
    words[0].store(MAGIC, Release);
    Ok(SegmentPool::new(segment, file, tables, private))
}

/// Makes the page that all ranks of a job write, and its file for the others.
///
/// # Errors
/// The system refuses.
pub fn create_common(ranks: usize) -> io::Result<(Segment, OwnedFd)> {
    let (segment, file) = Segment::create("mpjdev-job", common_len(ranks), Writers::All)?;
    mpjdev_sys::segment::allocate(file.as_fd(), 0, common_len(ranks))?;
    Ok((segment, file))
}

/// A mapping of the page that another process has made.
///
/// # Errors
/// It is no such page; the system refuses.
pub fn open_common(file: &OwnedFd, ranks: usize) -> io::Result<Segment> {
    Segment::open(file.as_fd(), common_len(ranks), Writers::All)
}

/// The wire and the inbox of a rank.
pub fn connect(
    rank: u32,
    config: &Config,
    pool: Arc<SegmentPool>,
    job: Arc<Job>,
) -> (Arc<ShmWire>, ShmInbox) {
    let ranks = job.files.len();
    let wire = Arc::new(ShmWire {
        rank,
        inline_max: config.inline_max.min(OCTETS_MAX - 8),
        queue_lines: queue_lines(config),
        peers: (0..ranks).map(|_| OnceLock::new()).collect(),
        sending: (0..ranks).map(|_| OnceLock::new()).collect(),
        active: (0..ranks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
        ignored: (0..ranks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
        own: Mutex::default(),
        own_waits: AtomicBool::new(false),
        own_max: config.queue_cells,
        abort: OnceLock::new(),
        pool,
        job,
    });
    let as_reclaim: std::sync::Weak<dyn Reclaim> = Arc::downgrade(&wire) as _;
    wire.pool.set_reclaim(as_reclaim);
    let inbox = ShmInbox::new(wire.clone(), ranks);
    (wire, inbox)
}

/// Lines of a queue: room for as many small packets as the configuration asks for, and for the largest packet.
fn queue_lines(config: &Config) -> usize {
    let largest = (3 + OCTETS_MAX.div_ceil(8)).div_ceil(LINE);
    (config.queue_cells * 8).clamp(2 * largest + 2, 960)
}

impl ShmWire {
    fn words(&self) -> &[AtomicU64] {
        self.pool.segment.words()
    }

    /// The words of this rank about a peer.
    #[inline(always)]
    fn about(&self, peer: u32, what: usize) -> &AtomicU64 {
        &self.words()[peer_at(peer) + what]
    }

    fn bell(&self, rank: u32) -> usize {
        BELLS + rank as usize * bell_words(self.job.files.len())
    }

    /// What this rank's helper sleeps on.
    pub fn helper_bell(&self) -> HelperBell {
        HelperBell { job: self.job.clone(), word: self.bell(self.rank) + HELPER }
    }

    /// The doorbell that says that `source` has put something into its queue for `dest`.
    fn doorbell(&self, dest: u32, source: u32) -> &AtomicU64 {
        &self.job.common.words()[self.bell(dest) + DOORBELLS + source as usize / 64]
    }

    fn peer_of(&self, rank: u32) -> Result<&Arc<Peer>, String> {
        let place = &self.peers[rank as usize];
        if let Some(peer) = place.get() {
            return Ok(peer);
        }
        let peer = Peer::open(rank, self.rank, &self.job, self.pool.clone())?;
        Ok(place.get_or_init(|| Arc::new(peer)))
    }

    fn sending_to(&self, dest: u32) -> Option<MutexGuard<'_, Sending>> {
        let place = &self.sending[dest as usize];
        if place.get().is_none() {
            let chunk = self.pool.fresh(self.queue_lines * LINE * 8)?;
            let made = Sending {
                ring: chunk.offset / 8,
                producer: Producer::default(),
                lending: Lending::default(),
            };
            if place.set(Mutex::new(made)).is_ok() {
                self.about(dest, QUEUE_LINES).store(self.queue_lines as u64, Relaxed);
                self.about(dest, QUEUE).store(chunk.offset as u64, Release);
            }
        }
        place.get().map(|sending| sending.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the job because of what another rank has written.
    #[cold]
    fn fail_because_of(&self, rank: u32, what: &str) {
        self.fail(&format!("the shared memory of rank {rank} is damaged: {what}"));
    }

    fn send_to_myself(&self, header: Header, body: Outgoing<'_>) -> bool {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if own.len() >= self.own_max {
            return false;
        }
        let payload = match body {
            Outgoing::Nothing => None,
            Outgoing::Payload(payload) => Some(payload.clone()),
            Outgoing::Message(message) => Some(Payload::Whole(message.clone())),
        };
        own.push_back((header, payload));
        self.own_waits.store(true, Release);
        drop(own);
        self.ring();
        true
    }

    /// What a packet takes along; none when there is no memory for it now.
    fn parcel<'a>(&self, body: Outgoing<'a>) -> Option<Parcel<'a>> {
        Some(match body {
            Outgoing::Nothing => Parcel::Nothing,
            Outgoing::Message(message) | Outgoing::Payload(Payload::Whole(message)) => {
                if goes_inline(message, self.inline_max) {
                    return Some(Parcel::Inline(message.first_words(), message.first_len()));
                }
                let second = match message.second_slab() {
                    Some(slab) => Some(self.lendable(slab, message.secondary_len())?),
                    None => None,
                };
                Parcel::Lent(self.lendable(message.first_slab(), message.first_len())?, second)
            }
            Outgoing::Payload(Payload::Physical(slab, len)) => Parcel::Lent(self.lendable(slab, *len)?, None),
            Outgoing::Payload(Payload::Parts(first, second)) => {
                Parcel::Lent(self.lendable(&first.0, first.1)?, Some(self.lendable(&second.0, second.1)?))
            }
        })
    }

    /// The first octets of a slab as memory that others can read: itself, or a copy when it is not in the segment.
    fn lendable(&self, slab: &Slab, len: usize) -> Option<Part> {
        if let Some(chunk) = place(slab, &self.pool) {
            return Some(Part { slab: slab.clone(), chunk, len });
        }
        let copy = self.pool.own(len)?;
        copy_words(slab.words(), 0, copy.words(), 0, len);
        let chunk = place(&copy, &self.pool)?;
        Some(Part { slab: copy, chunk, len })
    }

    fn send_to(&self, dest: u32, header: Header, body: Outgoing<'_>) -> Result<bool, Damaged> {
        let peer = match self.peer_of(dest) {
            Ok(peer) => peer,
            Err(why) => {
                self.fail_because_of(dest, &why);
                return Ok(false);
            }
        };
        // Before the lock: looking for memory takes back what the others have returned, this one too.
        let Some(parcel) = self.parcel(body) else { return Ok(false) };
        let Some(mut sending) = self.sending_to(dest) else { return Ok(false) };
        let Sending { ring, producer, lending } = &mut *sending;
        let ring = &self.words()[*ring..][..self.queue_lines * LINE];
        let consumed = || peer.consumed();
        let token = (header.kind != Kind::Eager).then_some(header.token);
        let token_len = token.map_or(0, |_| 8);
        let head = |body, len| Head {
            form: form(header.kind, body),
            tag: header.tag,
            context: header.context,
            len: token_len + len,
        };
        let put_token = |words: &[AtomicU64]| {
            if let Some(token) = token {
                words[0].store(token, Relaxed);
            }
        };
        match parcel {
            Parcel::Nothing => producer.push(ring, head(NOTHING, 0), consumed, put_token),
            Parcel::Inline(words, len) => producer.push(ring, head(INLINE, len), consumed, |to| {
                put_token(to);
                copy_words(words, 0, &to[token_len / 8..], 0, len);
            }),
            Parcel::Lent(first, second) => {
                lending.make_room(peer)?;
                let parts: Vec<Part> = [Some(first), second].into_iter().flatten().collect();
                let slots = lending.lend(&parts);
                let body = if parts.len() == 2 { IN_TWO } else { BY_REFERENCE };
                let sent = producer.push(ring, head(body, 16 * parts.len()), consumed, |to| {
                    put_token(to);
                    for (i, (part, slot)) in parts.iter().zip(&slots).enumerate() {
                        let to = &to[token_len / 8 + 2 * i..];
                        to[0].store(part.place(), Relaxed);
                        to[1].store((part.len as u64) << 32 | u64::from(*slot), Relaxed);
                    }
                });
                if sent != Ok(true) {
                    slots.into_iter().for_each(|slot| drop(lending.take(slot)));
                }
                sent
            }
        }
    }

    /// Tells a rank that there is something in this rank's queue to it.
    #[inline]
    fn notify(&self, dest: u32) {
        fence(SeqCst);
        let (doorbell, bit) = (self.doorbell(dest, self.rank), 1 << (self.rank % 64));
        // Set already as long as the receiver looks at the queue by itself.
        if doorbell.load(Relaxed) & bit == 0 {
            doorbell.fetch_or(bit, SeqCst);
        }
        self.job.common.bell(self.bell(dest)).ring();
    }

    /// Sources whose queues are looked at, one after the other.
    fn active(&self) -> impl Iterator<Item = u32> + '_ {
        self.active.iter().enumerate().flat_map(|(i, word)| {
            let mut bits = word.load(Acquire);
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
                (bit < 64).then_some(i as u32 * 64 + bit)
            })
        })
    }

    /// Whether there is a doorbell of a source that is not looked at.
    fn has_news(&self) -> bool {
        let bell = self.bell(self.rank);
        let doorbells = &self.job.common.words()[bell + DOORBELLS..][..self.active.len()];
        let known = self.active.iter().zip(&self.ignored).map(|(a, b)| a.load(Relaxed) | b.load(Relaxed));
        doorbells.iter().zip(known).any(|(rung, known)| rung.load(Relaxed) & !known != 0)
    }

    fn ring_all(&self) {
        self.job.common.words()[EPOCH].fetch_add(1, SeqCst);
        for rank in 0..self.job.files.len() as u32 {
            self.job.common.bell(self.bell(rank)).ring();
        }
    }

    /// How a rank's process has ended, when it has without finishing.
    fn death_of(&self, rank: u32) -> Option<String> {
        death::parse(self.job.common.words()[self.bell(rank) + DEATH].load(Acquire))
    }

    /// The state of a rank as itself says it.
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
            Err(why) => PeerState::Failed(why),
        }
    }
}

impl Reclaim for ShmWire {
    fn take_back(&self) {
        for (rank, place) in self.sending.iter().enumerate() {
            let Some(peer) = self.peers[rank].get() else { continue };
            peer.flush_returns();
            if let Some(sending) = place.get()
                && let Ok(mut sending) = sending.try_lock()
                && let Err(Damaged(what)) = sending.lending.take_back(peer)
            {
                self.fail_because_of(rank as u32, what);
            }
        }
    }
}

impl Wire for ShmWire {
    #[inline]
    fn try_send(&self, dest: u32, header: Header, body: Outgoing<'_>) -> bool {
        if dest == self.rank {
            return self.send_to_myself(header, body);
        }
        match self.send_to(dest, header, body) {
            Ok(true) => {
                self.notify(dest);
                true
            }
            Ok(false) => false,
            Err(Damaged(what)) => {
                self.fail_because_of(dest, what);
                false
            }
        }
    }

    #[inline]
    fn carries(&self, slab: &Slab) -> bool {
        place(slab, &self.pool).is_some()
    }

    #[inline]
    fn is_ready(&self) -> bool {
        if self.own_waits.load(Acquire) || self.has_news() {
            return true;
        }
        self.active().any(|source| {
            let position = self.about(source, CONSUMED).load(Relaxed);
            self.peers[source as usize].get().is_some_and(|peer| peer.is_ready_at(position))
        })
    }

    fn sleep(&self, most: Duration, ready: &mut dyn FnMut() -> bool) {
        self.job.common.bell(self.bell(self.rank)).sleep(most, ready);
    }

    fn has_helpers(&self) -> bool {
        true
    }

    fn call(&self, rank: u32) {
        self.job.common.bell(self.bell(rank) + HELPER).ring();
    }

    fn tells_room(&self) -> bool {
        false
    }

    fn ring(&self) {
        self.job.common.bell(self.bell(self.rank)).ring();
    }

    #[inline]
    fn epoch(&self) -> u32 {
        self.job.common.words()[EPOCH].load(Acquire) as u32
    }

    fn peer(&self, rank: u32) -> PeerState {
        match self.death_of(rank) {
            Some(how) => PeerState::Failed(how),
            None => self.state_of(rank),
        }
    }

    fn abort(&self) -> Option<(u32, String)> {
        if let Some(abort) = self.abort.get() {
            return Some(abort.clone());
        }
        let failed = (0..self.job.files.len() as u32).find_map(|rank| match self.state_of(rank) {
            PeerState::Failed(why) => Some((rank, why)),
            _ => None,
        })?;
        Some(self.abort.get_or_init(|| failed).clone())
    }

    fn finish(&self) {
        let state = &self.words()[STATE];
        if state.compare_exchange(ALIVE, FINISHED, SeqCst, SeqCst).is_ok() {
            self.ring_all();
        }
    }

    fn fail(&self, why: &str) {
        let words = self.words();
        if words[STATE].load(Acquire) == FAILED {
            return;
        }
        let mut len = why.len().min(WHY_MAX);
        while !why.is_char_boundary(len) {
            len -= 1;
        }
        mpjdev_buffer::octets::copy_in(words, WHY * 8, &why.as_bytes()[..len]);
        words[WHY_LEN].store(len as u64, Relaxed);
        words[STATE].store(FAILED, Release);
        self.ring_all();
    }

    fn matched_by(&self, dest: u32) -> u64 {
        if dest == self.rank {
            return self.about(dest, MATCHED).load(Acquire);
        }
        self.peers[dest as usize].get().map_or(0, |peer| peer.matched())
    }

    fn tell_matched(&self, source: u32, octets: u64) {
        self.about(source, MATCHED).store(octets, Release);
    }

    #[inline]
    fn show_life(&self) {
        // Only ever called under the rank's lock, so no read-modify-write is needed.
        let life = &self.words()[LIFE];
        life.store(life.load(Relaxed) + 1, Relaxed);
    }

    fn life(&self, rank: u32) -> u64 {
        if rank == self.rank {
            return self.words()[LIFE].load(Relaxed);
        }
        self.peer_of(rank).map_or(0, |peer| peer.life())
    }
}

/// What a packet takes along.
enum Parcel<'a> {
    Nothing,
    Inline(&'a [AtomicU64], usize),
    Lent(Part, Option<Part>),
}
