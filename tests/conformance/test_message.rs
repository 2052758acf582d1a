//! Messages whose content is computed from a seed, so that a receiver can check it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use mpjdev_buffer::{Encoding, Message, SlabSource, Type, WriteBuffer};

/// Seed and lengths of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TestMessage {
    /// Seed of its content.
    pub(crate) seed: u64,
    /// Octets of primary payload, a multiple of 8: nothing, or one section of longs.
    pub(crate) primary: usize,
    /// Octets of secondary payload.
    pub(crate) secondary: usize,
    /// Capacity of the sender's buffer beyond the primary payload, before it is rounded up to a multiple of
    /// 8; the secondary one is appended when it is shorter.
    pub(crate) room: usize,
}

/// Octets of both headers.
const HEADERS: usize = 16;
/// Octets of the primary header and of a section header.
const BEFORE_DATA: usize = 16;

impl TestMessage {
    /// One physical message without a secondary payload.
    pub(crate) fn plain(seed: u64, primary: usize) -> TestMessage {
        TestMessage { seed, primary, secondary: 0, room: 0 }
    }

    /// One physical message with the secondary payload appended.
    pub(crate) fn appended(seed: u64, primary: usize, secondary: usize) -> TestMessage {
        TestMessage { seed, primary, secondary, room: secondary + 1 }
    }

    /// Two physical messages.
    pub(crate) fn split(seed: u64, primary: usize, secondary: usize) -> TestMessage {
        TestMessage { seed, primary, secondary, room: 0 }
    }

    /// Whether it is split on a transport of physical messages.
    pub(crate) fn is_split(&self) -> bool {
        self.secondary > 0 && self.secondary >= self.room.next_multiple_of(8)
    }

    /// Octets of the first physical message.
    pub(crate) fn first_len(&self) -> usize {
        HEADERS + self.primary + if self.is_split() { 0 } else { self.secondary }
    }

    /// Capacity that a receive needs.
    pub(crate) fn needs(&self) -> usize {
        self.first_len() - HEADERS
    }

    /// The message.
    pub(crate) fn write(&self, source: &Arc<dyn SlabSource>) -> Message {
        let capacity = (self.primary + self.room) as i64;
        let mut buffer = WriteBuffer::new(source.clone(), capacity, Encoding::NATIVE).expect("a capacity");
        if self.primary > 0 {
            buffer.stage(Type::Long, self.longs()).expect("room for the section");
            buffer.commit();
        }
        if self.secondary > 0 {
            let octets = self.octets();
            buffer.stage_secondary(octets.len()).expect("memory").put_octets(&octets);
            buffer.grow_secondary(octets.len());
        }
        let message = buffer.finish().expect("memory").clone();
        // The words of a native message, stored without the writer, which has its own tests.
        for (i, word) in message.first_words()[BEFORE_DATA / 8..][..self.longs()].iter().enumerate() {
            word.store(self.word(i), Relaxed);
        }
        message
    }

    /// Difference of a message from this one, or `None`.
    pub(crate) fn compare(&self, message: &Message) -> Option<String> {
        let lens = (message.primary_len(), message.secondary_len());
        if lens != (self.primary, self.secondary) {
            return Some(format!("{self:?} has {lens:?} octets"));
        }
        if self.primary > 0 {
            let section = message.first_section().map(|s| (s.element, s.count));
            if section != Some((Type::Long, self.longs())) {
                return Some(format!("{self:?} has the section {section:?}"));
            }
        }
        for (i, word) in message.first_words()[BEFORE_DATA / 8..][..self.longs()].iter().enumerate() {
            if word.load(Relaxed) != self.word(i) {
                return Some(format!("{self:?}: long {i} is {:#x}", word.load(Relaxed)));
            }
        }
        let mut octets = vec![0; self.secondary];
        message.copy_secondary(0, &mut octets);
        let expected = self.octets();
        if octets == expected {
            return None;
        }
        let wrong = octets.iter().zip(&expected).position(|(came, sent)| came != sent);
        wrong.map(|i| format!("{self:?}: octet {i} of the secondary payload is {:#x}", octets[i]))
    }

    /// # Panics
    /// When the message is not this one.
    #[track_caller]
    pub(crate) fn check(&self, message: &Message) {
        if let Some(difference) = self.compare(message) {
            panic!("{difference}");
        }
    }

    fn longs(&self) -> usize {
        self.primary.saturating_sub(8) / 8
    }

    fn word(&self, i: usize) -> u64 {
        (self.seed ^ (i as u64).rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// The secondary payload. Eight octets at a time: these tests are compiled without optimisation.
    fn octets(&self) -> Vec<u8> {
        let mut octets = vec![0; self.secondary];
        for (i, chunk) in octets.chunks_mut(8).enumerate() {
            let word = self.word(i) ^ u64::from_le_bytes([0x5a; 8]);
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        }
        octets
    }
}
