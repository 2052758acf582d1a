//! Single-producer queue from one rank to another: records of whole cache lines, written by the sender in its
//! own memory.
//!
//! ```text
//! word   0        1              2         3 ...
//!        stamp    tag    form    context   octets of the record: 40 in its first line, 64 in each other line
//!        + len
//! ```
//!
//! A record's stamp follows from its position and is never zero. The sender stores it last, with release.
//! Long before, it has cleared the stamps of all lines up to the one after the record, many lines at a time.
//! Clearing a line between a record and its stamp would cost the polling receiver two more cache-line
//! transfers.
//!
//! The receiver polls one word. Zero means that there is no record yet, the expected stamp means a record,
//! and every other value is damage. A record that does not fit before the end of the ring begins at the
//! start, and the lines before the end are skipped. The receiver publishes its position in its own segment.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

// tests/loom/ring.rs includes this file with the words of the model.
use super::words::{AtomicU64, prefetch};

use super::segment_fault::Damage;
use crate::config::RECORD_MAX;

/// Words of a cache line.
pub(super) const LINE: usize = 8;
/// Words before the octets of a record.
const HEADER: usize = 3;
/// Largest record in octets.
pub(super) const OCTETS_MAX: usize = RECORD_MAX;
/// Octets of the largest record that is never inline: a slab, three headers and a token.
pub(super) const LEAST_OCTETS: usize = 16 + 3 * 8 + 8;

/// Kind and form of a packet in eight bits. [`SKIP`] marks a record without a packet.
pub(super) type Form = u8;
/// Marks the lines up to the end of the ring as unused.
const SKIP: Form = 0xff;

/// Head of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) form: Form,
    pub(super) tag: i32,
    pub(super) context: u64,
    /// Octets that follow the head.
    pub(super) len: usize,
}

/// The stamp of the record that begins at this line. Lines are counted from the first one ever.
fn stamp(position: u64) -> u32 {
    (position as u32) << 1 | 1
}

/// Lines of a ring, a power of two.
#[inline(always)]
fn lines_of(ring: &[AtomicU64]) -> u64 {
    (ring.len() / LINE) as u64
}

/// Lines of a record of `len` octets.
#[inline(always)]
pub(super) fn lines(len: usize) -> usize {
    (HEADER + len.div_ceil(8)).div_ceil(LINE)
}

/// Lines that are cleared at a time.
const CLEARED: u64 = 16;

/// Sending side: a cursor into the words of the ring.
#[derive(Debug)]
pub(super) struct Producer {
    /// First line of the next record, counted from the first line ever.
    next: u64,
    /// The lines from `next` up to here have a zero stamp.
    cleared: u64,
    /// The receiver's position when it was last read.
    consumed: u64,
}

impl Producer {
    /// Producer of a ring of `lines` lines in fresh memory, which is zero.
    pub(super) fn new(lines: usize) -> Producer {
        Producer { next: 0, cleared: lines as u64, consumed: 0 }
    }

    /// First line of the next record, counted from the first line ever.
    pub(super) fn position(&self) -> u64 {
        self.next
    }

    /// The receiver's position when it was last read.
    pub(super) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Whether a record of `len` octets fits, and leaves at least half of the ring free. A false position of
    /// the receiver is detected when room is needed.
    pub(super) fn leaves_half(&self, ring: &[AtomicU64], len: usize, consumed: impl Fn() -> u64) -> bool {
        let end = self.next + lines(len) as u64;
        let half = lines_of(ring) / 2;
        end.saturating_sub(self.consumed) <= half || end.saturating_sub(consumed()) <= half
    }

    /// Writes a record; `fill` puts its octets into its words. Returns false when there is no room.
    /// `consumed` reads the receiver's position.
    ///
    /// # Errors
    /// The receiver states an impossible position.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        ring: &[AtomicU64],
        head: Head,
        consumed: impl Fn() -> u64,
        fill: impl FnOnce(&[AtomicU64]),
    ) -> Result<bool, Damage> {
        let ring_lines = lines_of(ring);
        let needed = lines(head.len) as u64;
        let to_end = ring_lines - (self.next & (ring_lines - 1));
        let skipped = if needed > to_end { to_end } else { 0 };
        // One more line is needed for the zero stamp after the record.
        let end = self.next + skipped + needed + 1;
        if end > self.cleared && !self.clear(ring, end, &consumed)? {
            return Ok(false);
        }
        if skipped > 0 {
            let at = self.at(ring_lines, 0);
            ring[at + 1].store(u64::from(SKIP), Relaxed);
            ring[at].store(u64::from(stamp(self.next)), Release);
            self.next += skipped;
        }
        let at = self.at(ring_lines, 0);
        ring[at + 1].store(u64::from(head.tag as u32) << 32 | u64::from(head.form), Relaxed);
        ring[at + 2].store(head.context, Relaxed);
        fill(&ring[at + HEADER..][..head.len.div_ceil(8)]);
        ring[at].store((head.len as u64) << 32 | u64::from(stamp(self.next)), Release);
        self.next += needed;
        if self.next + CLEARED > self.cleared {
            // The receiver is busy with this record meanwhile. A false position is detected when room is
            // needed.
            let _ = self.clear(ring, self.next + 1, &consumed);
        }
        Ok(true)
    }

    /// Clears the lines up to `end` and some more. Returns false when the receiver has not passed them.
    #[inline(never)]
    fn clear(&mut self, ring: &[AtomicU64], end: u64, consumed: &impl Fn() -> u64) -> Result<bool, Damage> {
        let ring_lines = lines_of(ring);
        let now = consumed();
        if now < self.consumed || now > self.next {
            return Err(Damage::Position);
        }
        self.consumed = now;
        let most = now + ring_lines;
        let cleared = end.max(self.next + 2 * CLEARED).min(most);
        for line in self.cleared..cleared {
            ring[(line & (ring_lines - 1)) as usize * LINE].store(0, Relaxed);
        }
        self.cleared = self.cleared.max(cleared);
        Ok(end <= most)
    }

    /// Index of the first word of the line that is `more` lines after the next one.
    fn at(&self, ring_lines: u64, more: u64) -> usize {
        ((self.next + more) & (ring_lines - 1)) as usize * LINE
    }
}

/// Receiving side: a cursor into the words of the ring.
#[derive(Debug, Default)]
pub(super) struct Consumer {
    /// First line of the next record, counted from the first line ever.
    next: u64,
}

impl Consumer {
    /// The position, for the sender to read.
    pub(super) fn position(&self) -> u64 {
        self.next
    }

    /// Whether there is a record, or damage, at this position.
    #[inline(always)]
    pub(super) fn is_ready_at(ring: &[AtomicU64], position: u64) -> bool {
        let at = (position & (lines_of(ring) - 1)) as usize * LINE;
        ring[at].load(Relaxed) as u32 != 0
    }

    /// The next record: its head and its words, which are valid until [`pass`](Self::pass).
    ///
    /// # Errors
    /// The words at this position are no record.
    #[inline]
    pub(super) fn peek<'a>(
        &mut self,
        ring: &'a [AtomicU64],
    ) -> Result<Option<(Head, &'a [AtomicU64])>, Damage> {
        let ring_lines = lines_of(ring);
        loop {
            let line = self.next & (ring_lines - 1);
            let at = line as usize * LINE;
            let first = ring[at].load(Acquire);
            if first as u32 == 0 {
                return Ok(None);
            }
            if first as u32 != stamp(self.next) {
                return Err(Damage::Stamp);
            }
            let second = ring[at + 1].load(Relaxed);
            let form = second as Form;
            if form == SKIP {
                if line == 0 {
                    return Err(Damage::Skip);
                }
                self.next += ring_lines - line;
                continue;
            }
            let len = (first >> 32) as usize;
            if len > OCTETS_MAX || line + lines(len) as u64 > ring_lines {
                return Err(Damage::RecordLen);
            }
            let context = ring[at + 2].load(Relaxed);
            let head = Head { form, tag: (second >> 32) as i32, context, len };
            return Ok(Some((head, &ring[at + HEADER..][..len.div_ceil(8)])));
        }
    }

    /// Fetches the first line of the next record, which may be there already. Meanwhile the receiver returns
    /// to its program.
    #[inline(always)]
    pub(super) fn prefetch(&self, ring: &[AtomicU64]) {
        let at = (self.next & (lines_of(ring) - 1)) as usize * LINE;
        prefetch(&ring[at]);
    }

    /// Passes the record that [`peek`](Self::peek) returned.
    #[inline]
    pub(super) fn pass(&mut self, head: &Head) {
        self.next += lines(head.len) as u64;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    fn ring(lines: usize) -> Vec<AtomicU64> {
        (0..lines * LINE).map(|_| AtomicU64::new(0)).collect()
    }

    fn head(len: usize, tag: i32) -> Head {
        Head { form: 1, tag, context: 7 << 40 | 5, len }
    }

    fn put(words: &[AtomicU64], seed: u64) {
        words.iter().zip(seed..).for_each(|(word, value)| word.store(value, Relaxed));
    }

    /// The ring is compared with a plain queue, with records of all lengths, in rings of minimal length and
    /// longer.
    #[test]
    fn records_of_any_length_round_trip() {
        for lines in [64, 128, 512] {
            let ring = ring(lines);
            let (mut producer, mut consumer) = (Producer::new(ring.len() / LINE), Consumer::default());
            let mut model = VecDeque::new();
            let mut seed = 1u64;
            for step in 0..20_000u64 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if seed >> 33 & 1 == 0 {
                    // At most a quarter of the ring, as of the packets that wait for room.
                    let len = (seed >> 40) as usize % (OCTETS_MAX.min(lines / 4 * LINE * 8) + 1);
                    let position = consumer.position();
                    let sent = producer.push(&ring, head(len, step as i32), || position, |w| put(w, step));
                    if sent == Ok(true) {
                        model.push_back((len, step));
                    } else {
                        assert_eq!(sent, Ok(false));
                        assert!(!model.is_empty(), "an empty ring has room");
                    }
                } else {
                    assert_eq!(Consumer::is_ready_at(&ring, consumer.position()), !model.is_empty());
                    let found = consumer.peek(&ring).expect("sound");
                    let Some((len, step)) = model.pop_front() else {
                        assert!(found.is_none());
                        continue;
                    };
                    let (found, words) = found.expect("a record");
                    assert_eq!(found, head(len, step as i32));
                    assert!(words.iter().zip(step..).all(|(word, value)| word.load(Relaxed) == value));
                    consumer.pass(&found);
                }
            }
        }
    }

    #[test]
    fn producer_and_consumer_threads_exchange_all_records() {
        const COUNT: u64 = 50_000;
        let ring = ring(64);
        let position = AtomicU64::new(0);
        std::thread::scope(|s| {
            s.spawn(|| {
                let mut producer = Producer::new(ring.len() / LINE);
                for i in 0..COUNT {
                    let head = head((i * 7 % 300) as usize, i as i32);
                    while !producer
                        .push(&ring, head, || position.load(Acquire), |w| put(w, i))
                        .expect("sound")
                    {
                        std::thread::yield_now();
                    }
                }
            });
            let mut consumer = Consumer::default();
            for i in 0..COUNT {
                loop {
                    if let Some((found, words)) = consumer.peek(&ring).expect("sound") {
                        assert_eq!((found.tag, found.len), (i as i32, (i * 7 % 300) as usize));
                        assert!(words.iter().zip(i..).all(|(word, value)| word.load(Relaxed) == value));
                        consumer.pass(&found);
                        position.store(consumer.position(), Release);
                        break;
                    }
                    std::thread::yield_now();
                }
            }
        });
    }

    #[test]
    fn arbitrary_ring_contents_are_a_record_or_damage() {
        let ring = ring(64);
        let mut seed = 1u64;
        for _ in 0..20_000 {
            let mut next = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                seed >> 17 ^ seed
            };
            let position = next() % 1000;
            let at = (position % 64) as usize * LINE;
            ring[at].store(next() << 32 | u64::from(stamp(position)), Relaxed);
            ring[at + 1].store(next(), Relaxed);
            let mut consumer = Consumer { next: position };
            if let Ok(Some((found, words))) = consumer.peek(&ring) {
                assert_eq!(words.len(), found.len.div_ceil(8));
            }
        }
        ring[0].store(12345 << 1 | 1, Relaxed);
        let found = Consumer::default().peek(&ring).map(drop);
        assert_eq!(found, Err(Damage::Stamp));
    }

    #[test]
    fn invalid_position_of_a_receiver_is_damage() {
        let ring = ring(64);
        let mut producer = Producer::new(ring.len() / LINE);
        let lie = || 1000;
        let pushed = (0..).map_while(|_| producer.push(&ring, head(100, 1), lie, |_| {}).ok()).count();
        assert!((1..=64 / 2).contains(&pushed), "it is believed for {pushed} records of two lines in 64");
        assert!(producer.push(&ring, head(100, 1), lie, |_| {}).is_err());
    }
}
