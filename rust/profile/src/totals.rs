//! The counts of several threads, and their form in the file.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use crate::call::Call;
use crate::rank_profile::{CallCount, Event, LongCall, PeerCount, RankProfile, VERSION};
use crate::recorder::{LONGEST, Recorder, SIZES, Single};

/// Converts ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Ticks at the end of init.
    pub(crate) begun: u64,
    /// Nanoseconds of one.
    pub(crate) tick: f64,
}

impl Clock {
    pub(crate) fn time(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.tick) as u64
    }

    fn since_begin(&self, at: u64) -> u64 {
        self.time(at.saturating_sub(self.begun))
    }
}

/// Calls, ticks, octets sent and received.
type Counted = [u64; 4];

/// The sum of the counts of threads.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    /// By number of the call and peer; a peer that is no rank is none.
    calls: BTreeMap<(usize, usize), Counted>,
    /// Messages and octets sent, messages and octets received.
    peers: BTreeMap<usize, Counted>,
    sizes: [u64; SIZES],
    /// Ticks from the first call of each thread to its end.
    threads: u64,
    longest: Vec<Single>,
    events: Vec<Single>,
}

impl Default for Totals {
    fn default() -> Totals {
        Totals {
            calls: BTreeMap::new(),
            peers: BTreeMap::new(),
            sizes: [0; SIZES],
            threads: 0,
            longest: Vec::new(),
            events: Vec::new(),
        }
    }
}

fn add<K: Ord>(sums: &mut BTreeMap<K, Counted>, key: K, more: Counted) {
    if more != [0; 4] {
        let sum = sums.entry(key).or_default();
        sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
}

impl Totals {
    /// The counts of a thread that has run until `now`, those of a call in progress among them.
    pub(crate) fn of(recorder: &Recorder, now: u64) -> Totals {
        let mut totals = Totals::default();
        for (call, counts) in recorder.calls.iter().enumerate() {
            for (peer, count) in counts.get().into_iter().flatten().enumerate() {
                let counted = [&count.calls, &count.ticks, &count.sent, &count.received];
                let peer = if peer < recorder.size { peer } else { usize::MAX };
                add(&mut totals.calls, (call, peer), counted.map(|count| count.load(Relaxed)));
            }
        }
        for (peer, count) in recorder.peers.get().into_iter().flatten().enumerate() {
            let counted = [&count.messages_sent, &count.sent, &count.messages_received, &count.received];
            add(&mut totals.peers, peer, counted.map(|count| count.load(Relaxed)));
        }
        totals.sizes = std::array::from_fn(|size| recorder.sizes[size].load(Relaxed));
        // A rank that is ended waits in it.
        if let Some(current) = recorder.current(now) {
            add(&mut totals.calls, (current.call as usize, usize::MAX), [1, current.ticks, 0, 0]);
            totals.longest.push(current);
        }
        totals.threads = now.saturating_sub(recorder.begun);
        totals.longest.extend_from_slice(&recorder.longest.lock());
        totals.events = recorder.events.lock().clone();
        totals
    }

    pub(crate) fn merge(&mut self, other: Totals) {
        other.calls.into_iter().for_each(|(key, more)| add(&mut self.calls, key, more));
        other.peers.into_iter().for_each(|(key, more)| add(&mut self.peers, key, more));
        self.sizes.iter_mut().zip(other.sizes).for_each(|(sum, more)| *sum += more);
        self.threads += other.threads;
        self.longest.extend(other.longest);
        self.longest.sort_by_key(|single| std::cmp::Reverse(single.ticks));
        self.longest.truncate(LONGEST);
        self.events.extend(other.events);
    }

    /// The counts in the form of the file.
    pub(crate) fn profile(self, ranks: u32, clock: &Clock) -> RankProfile {
        let in_calls = self.calls.values().map(|[_, ticks, ..]| ticks).sum();
        let calls = self.calls.into_iter().map(|((call, peer), [count, ticks, sent, received])| CallCount {
            call: Call::ALL[call].name().to_owned(),
            peer: u32::try_from(peer).ok().filter(|peer| *peer < ranks),
            count,
            ns: clock.time(ticks),
            sent,
            received,
        });
        let peers =
            self.peers.into_iter().map(|(peer, [messages_sent, sent, messages_received, received])| {
                PeerCount { peer: peer as u32, messages_sent, sent, messages_received, received }
            });
        let longest = self.longest.iter().map(|single| LongCall {
            call: single.call.name().to_owned(),
            peer: single.peer,
            at_ns: clock.since_begin(single.begin),
            ns: clock.time(single.ticks),
            octets: single.sent + single.received,
        });
        let event = |single: &Single| {
            let peer = single.peer.map_or(-1, i64::from);
            let (begin, time) = (clock.since_begin(single.begin), clock.time(single.ticks));
            Event(single.thread, single.call as u8, begin, time, peer, single.sent, single.received)
        };
        let used = self.sizes.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        RankProfile {
            version: VERSION,
            ranks,
            thread_ns: clock.time(self.threads),
            calls_ns: clock.time(in_calls),
            calls: calls.collect(),
            peers: peers.collect(),
            sizes: self.sizes[..used].to_vec(),
            longest: longest.collect(),
            events: self.events.iter().map(event).collect(),
            ..RankProfile::default()
        }
    }
}
