//! The counts of one thread.
//!
//! Only their thread writes them, so a count is a load and a store. Any thread may read them meanwhile.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64};

use mpjdev_sys::lock_order::{LockRank, Mutex};

use crate::call::Call;
use crate::switch;

/// Long calls that are kept.
pub(crate) const LONGEST: usize = 10;
/// Classes of message sizes.
pub(crate) const SIZES: usize = 65;
/// No peer.
pub(crate) const NONE: u32 = u32::MAX;

/// The counts of a call with one peer.
#[derive(Debug, Default)]
pub(crate) struct Count {
    pub(crate) calls: AtomicU64,
    pub(crate) ticks: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
}

/// The messages with one peer.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) messages_sent: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) messages_received: AtomicU64,
    pub(crate) received: AtomicU64,
}

/// A single call. Its start is in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Single {
    pub(crate) thread: u32,
    pub(crate) call: Call,
    pub(crate) peer: Option<u32>,
    pub(crate) begin: u64,
    pub(crate) ticks: u64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// The counts of a thread.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// Number of this thread among those that made calls.
    number: u32,
    /// Number of ranks.
    pub(crate) size: usize,
    keeps_events: bool,
    /// Ticks at the first call.
    pub(crate) begun: u64,
    /// Ticks at the start of the call in progress, 0 without one, and its number.
    current: AtomicU64,
    current_call: AtomicU8,
    /// By call, and by peer with one more for no peer.
    pub(crate) calls: [OnceLock<Box<[Count]>>; Call::ALL.len()],
    pub(crate) peers: OnceLock<Box<[Messages]>>,
    pub(crate) sizes: [AtomicU64; SIZES],
    short_ticks: [AtomicU64; Call::ALL.len()],
    /// Ticks that a call must exceed to be one of the longest.
    long_from: AtomicU64,
    pub(crate) longest: Mutex<Vec<Single>>,
    pub(crate) events: Mutex<Vec<Single>>,
}

/// Adds to a count of the calling thread.
#[inline(always)]
pub(crate) fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Relaxed) + more, Relaxed);
}

fn filled<T: Default>(len: usize) -> Box<[T]> {
    std::iter::repeat_with(T::default).take(len).collect()
}

impl Recorder {
    pub(crate) fn new(number: u32, size: usize, keeps_events: bool, begun: u64) -> Recorder {
        Recorder {
            number,
            size,
            keeps_events,
            begun,
            current: AtomicU64::new(0),
            current_call: AtomicU8::new(0),
            calls: [const { OnceLock::new() }; Call::ALL.len()],
            peers: OnceLock::new(),
            sizes: [const { AtomicU64::new(0) }; SIZES],
            short_ticks: [const { AtomicU64::new(0) }; Call::ALL.len()],
            long_from: AtomicU64::new(0),
            longest: Mutex::new(LockRank::Leaf, Vec::new()),
            events: Mutex::new(LockRank::Leaf, Vec::new()),
        }
    }

    /// The messages with a peer; `None` for a number that is no rank.
    #[inline(always)]
    pub(crate) fn messages(&self, peer: u32) -> Option<&Messages> {
        self.peers.get_or_init(|| filled(self.size)).get(peer as usize)
    }

    /// Counts a call that has no time of its own.
    #[inline(always)]
    pub(crate) fn note_untimed(&self, call: Call, peer: u32, octets: (u64, u64)) {
        self.note(call, peer, self.short_ticks(call), octets);
    }

    /// Counts a call.
    pub(crate) fn note_timed(&self, call: Call, peer: u32, begin: u64, ticks: u64, octets: (u64, u64)) {
        self.note(call, peer, ticks, octets);
        if ticks > self.long_from.load(Relaxed) || self.keeps_events {
            let peer = Some(peer).filter(|peer| (*peer as usize) < self.size);
            let (sent, received) = octets;
            self.keep(Single { thread: self.number, call, peer, begin, ticks, sent, received });
        }
    }

    #[inline(always)]
    fn note(&self, call: Call, peer: u32, ticks: u64, (sent, received): (u64, u64)) {
        let counts = self.calls[call as usize].get_or_init(|| filled(self.size + 1));
        if let Some(count) = counts.get((peer as usize).min(self.size)) {
            add(&count.calls, 1);
            add(&count.ticks, ticks);
            // A call mostly does one of them.
            if sent > 0 {
                add(&count.sent, sent);
            }
            if received > 0 {
                add(&count.received, received);
            }
        }
    }

    /// Ticks from which the call in progress is timed; 0 if it is not.
    #[inline(always)]
    pub(crate) fn begun_at(&self) -> u64 {
        self.current.load(Relaxed)
    }

    /// Ticks of the last short call of this name that was timed; 0 if none was.
    #[inline(always)]
    pub(crate) fn short_ticks(&self, call: Call) -> u64 {
        self.short_ticks[call as usize].load(Relaxed)
    }

    pub(crate) fn set_short_ticks(&self, call: Call, ticks: u64) {
        self.short_ticks[call as usize].store(ticks, Relaxed);
    }

    /// Whether a short call of this name needs no time of its own.
    #[inline(always)]
    pub(crate) fn may_stay_untimed(&self, call: Call) -> bool {
        self.short_ticks(call) != 0 && !self.keeps_events
    }

    /// Begins a call, which is timed from these ticks on, or not for 0.
    #[inline(always)]
    pub(crate) fn begin(&self, call: Call, begin: u64) {
        self.current_call.store(call as u8, Relaxed);
        self.current.store(begin, Relaxed);
    }

    /// The call in progress, as far as it is at `now`. Its peer is not known yet.
    pub(crate) fn current(&self, now: u64) -> Option<Single> {
        let begin = Some(self.current.load(Relaxed)).filter(|begin| (1..now).contains(begin))?;
        let call = *Call::ALL.get(usize::from(self.current_call.load(Relaxed)))?;
        let (thread, ticks) = (self.number, now - begin);
        Some(Single { thread, call, peer: None, begin, ticks, sent: 0, received: 0 })
    }

    #[cold]
    fn keep(&self, single: Single) {
        if single.ticks > self.long_from.load(Relaxed) {
            let mut longest = self.longest.lock();
            let at = longest.partition_point(|other| other.ticks >= single.ticks);
            longest.insert(at, single);
            longest.truncate(LONGEST);
            if let [.., shortest] = &longest[..]
                && longest.len() == LONGEST
            {
                self.long_from.store(shortest.ticks, Relaxed);
            }
        }
        if self.keeps_events && switch::take_event() {
            self.events.lock().push(single);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder(size: usize) -> Recorder {
        Recorder::new(0, size, false, 0)
    }

    #[test]
    fn call_counts_under_its_peer_or_under_none() {
        let recorder = recorder(2);
        recorder.note_timed(Call::Recv, 1, 1, 5, (0, 8));
        recorder.set_short_ticks(Call::Recv, 7);
        recorder.note_untimed(Call::Recv, 1, (0, 8));
        recorder.note_timed(Call::Recv, NONE, 2, 1, (0, 0));
        let counts = recorder.calls[Call::Recv as usize].get().expect("counts");
        let shown = |at: usize| {
            let Count { calls, ticks, received, .. } = &counts[at];
            (calls.load(Relaxed), ticks.load(Relaxed), received.load(Relaxed))
        };
        assert_eq!([shown(0), shown(1), shown(2)], [(0, 0, 0), (2, 12, 16), (1, 1, 0)]);
    }

    #[test]
    fn longest_calls_are_kept_in_their_order() {
        let recorder = recorder(1);
        for ticks in (1..=100).chain((1..=100).rev()) {
            recorder.note_timed(Call::Send, 0, 1, ticks, (0, 0));
        }
        recorder.set_short_ticks(Call::Send, 1000);
        recorder.note_untimed(Call::Send, 0, (0, 0));
        let longest: Vec<u64> = recorder.longest.lock().iter().map(|single| single.ticks).collect();
        assert_eq!(longest, [100, 100, 99, 99, 98, 98, 97, 97, 96, 96]);
    }

    #[test]
    fn call_in_progress_is_seen_until_it_ends() {
        let recorder = recorder(2);
        assert!(recorder.current(50).is_none());
        recorder.begin(Call::Recv, 20);
        let Some(Single { call, begin, ticks, .. }) = recorder.current(50) else { panic!("none") };
        assert_eq!((call, begin, ticks), (Call::Recv, 20, 30));
        assert!(recorder.current(10).is_none(), "it has begun later");
        recorder.begin(Call::Recv, 0);
        assert!(recorder.current(50).is_none());
    }

    #[test]
    fn message_to_no_rank_is_not_counted() {
        assert!(recorder(2).messages(2).is_none());
    }
}
