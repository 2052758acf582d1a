//! Channel between two ranks through memory that both map. Each rank has one thread and trusts its peer.
//!
//! A rank writes its own segment and reads that of its peer. A segment has a count of received records, a
//! ring of records, a ring of slabs to return, and slabs. A record is four cache lines. Its first word is
//! stored last and has its number and the length of the message. A longer message stays in the slab of its
//! sender, which the receiver borrows. A rank does not check the data of its peer, never sleeps, and waits
//! forever for a peer that has ended.

use std::collections::VecDeque;
use std::hint::spin_loop;
use std::ptr::copy_nonoverlapping;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::yield_now;

/// Records of a ring, a power of two.
const RECORDS: u32 = 256;
/// Octets of a record.
const RECORD_LEN: usize = 256;
/// Octets of a record before the message: number and length, envelope.
const RECORD_HEADER_LEN: usize = 16;
/// Octets of a message that fit a record.
const INLINE_MAX: usize = RECORD_LEN - RECORD_HEADER_LEN;
/// Octets of a message in the first cache line of its record, which are copied with a constant length.
const FIRST_LEN: usize = 64 - RECORD_HEADER_LEN;
/// Flag in a length: the record has index and offset of a slab with the message.
const BY_REFERENCE: u32 = 1 << 31;
/// Slots of the ring of returned slabs.
const RETURNS: u32 = 4096;

/// Offsets in a segment.
const RING: usize = 4096;
const RETURN_RING: usize = RING + RECORDS as usize * RECORD_LEN;
const SLABS: usize = (RETURN_RING + RETURNS as usize * 8).next_multiple_of(1 << 20);

/// Records after which the count of received ones is published.
const PUBLISH_AFTER: u32 = 64;
/// Loans of one slab after which returns are collected, so that their ring does not overflow.
const COLLECT_AFTER: u32 = 64;
/// Empty polls before a yield. On an idle machine a message takes fewer.
const POLLS: u32 = 1 << 14;

/// Octets of the message header, of a section header, and of the trailer after the sections.
const MESSAGE_HEADER_LEN: usize = 8;
const SECTION_HEADER_LEN: usize = 8;
const TRAILER_LEN: usize = 8;
/// Type code of doubles, the only elements.
const DOUBLES: u64 = 7;
/// Encoding of the message: native byte order.
const NATIVE: u64 = 1;

/// Limit of the buffers.
const BUFFERS: usize = 256;
const IN_USE: u64 = 1;

/// Shared memory that one rank writes.
#[derive(Clone, Copy)]
struct Segment(*mut u8);

impl Segment {
    unsafe fn word(self, offset: usize) -> &'static AtomicU64 {
        // SAFETY: as the caller promises, the offset is a multiple of eight within the segment.
        unsafe { &*self.0.add(offset).cast::<AtomicU64>() }
    }

    unsafe fn taken(self) -> &'static AtomicU64 {
        // SAFETY: it is the segment's first word.
        unsafe { self.word(0) }
    }

    unsafe fn record(self, number: u32) -> *mut u8 {
        // SAFETY: the ring is within the segment.
        unsafe { self.0.add(RING + (number % RECORDS) as usize * RECORD_LEN) }
    }

    unsafe fn returned(self, number: u32) -> &'static AtomicU64 {
        // SAFETY: the ring is within the segment.
        unsafe { self.word(RETURN_RING + (number % RETURNS) as usize * 8) }
    }
}

/// Memory for messages of this rank.
struct Slab {
    offset: usize,
    capacity: usize,
    /// Number of users: its buffer, and receivers that have not returned it.
    users: u32,
}

/// A message to write, or the last one received.
pub(crate) struct Buffer {
    slab: u32,
    capacity: usize,
    message: *mut u8,
    /// Slab of the peer with the message.
    borrowed: Option<u32>,
    /// Octets of the message without its trailer.
    len: usize,
    /// Offset of the section to read next.
    next: usize,
}

/// A buffer and its generation, whose last bit is set while a call uses the buffer.
struct Slot {
    state: AtomicU64,
    buffer: Option<Box<Buffer>>,
}

/// A message that arrived before a receive that it matches.
struct Unexpected {
    tag: i32,
    len: u32,
    octets: [u8; INLINE_MAX],
}

/// A lock that costs one read-modify-write and one store.
struct SpinLock(AtomicU32);

impl SpinLock {
    fn lock(&self) {
        while self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            spin_loop();
        }
    }

    fn unlock(&self) {
        self.0.store(0, Ordering::Release);
    }
}

/// A rank of two.
pub struct Channel {
    own: Segment,
    peer: Segment,
    len: usize,
    sending: SpinLock,
    receiving: SpinLock,
    sent: u32,
    /// Received records of the peer, as last read.
    room_from: u32,
    received: u32,
    published: u32,
    collected: u32,
    given_back: u32,
    unexpected: VecDeque<Unexpected>,
    slabs: Vec<Slab>,
    /// Indexes of slabs without users, by capacity.
    unused: Vec<(usize, Vec<u32>)>,
    used: usize,
    slots: Vec<Slot>,
}

impl Channel {
    /// A rank with its own segment and that of its peer, both of `len` octets that are zero at first.
    ///
    /// # Safety
    /// The segments stay mapped as long as the channel is used, and no rank but these two uses them.
    pub unsafe fn new(own: *mut u8, peer: *mut u8, len: usize) -> Channel {
        let slot = || Slot { state: AtomicU64::new(2), buffer: None };
        Channel {
            own: Segment(own),
            peer: Segment(peer),
            len,
            sending: SpinLock(AtomicU32::new(0)),
            receiving: SpinLock(AtomicU32::new(0)),
            sent: 0,
            room_from: 0,
            received: 0,
            published: 0,
            collected: 0,
            given_back: 0,
            unexpected: VecDeque::new(),
            slabs: Vec::new(),
            unused: Vec::new(),
            used: SLABS,
            slots: (0..BUFFERS).map(|_| slot()).collect(),
        }
    }

    /// Makes a buffer for sections of `capacity` octets with their headers. Returns its handle.
    pub fn new_buffer(&mut self, capacity: usize) -> u64 {
        let slab = self.take_slab(MESSAGE_HEADER_LEN + capacity + TRAILER_LEN);
        let message = self.octets(slab);
        let buffer = Buffer {
            slab,
            capacity,
            message,
            borrowed: None,
            len: MESSAGE_HEADER_LEN,
            next: MESSAGE_HEADER_LEN,
        };
        let index = self.slots.iter().position(|slot| slot.buffer.is_none()).expect("a free slot");
        let slot = &mut self.slots[index];
        slot.buffer = Some(Box::new(buffer));
        *slot.state.get_mut() << 32 | index as u64
    }

    /// Frees a buffer. Its handle is invalid afterwards.
    pub fn free_buffer(&mut self, handle: u64) {
        let slot = self.slots.get_mut(handle as u32 as usize).expect("a handle");
        assert_eq!(*slot.state.get_mut(), handle >> 32, "a handle of a freed buffer");
        *slot.state.get_mut() += 2;
        let buffer = slot.buffer.take().expect("a buffer");
        if let Some(slab) = buffer.borrowed {
            self.give_back(slab);
        }
        self.release(buffer.slab);
    }

    /// Runs `body` with exclusive use of a buffer.
    #[inline(always)]
    pub(crate) fn with<R>(&mut self, handle: u64, body: impl FnOnce(&mut Channel, &mut Buffer) -> R) -> R {
        let index = handle as u32 as usize;
        let generation = handle >> 32;
        let slot = self.slots.get_mut(index).expect("a handle");
        let free = slot.state.compare_exchange(
            generation,
            generation | IN_USE,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        assert!(free.is_ok(), "a freed buffer, or one in use");
        let buffer: *mut Buffer = slot.buffer.as_deref_mut().expect("a buffer");
        // SAFETY: the buffer has an address of its own, and its slot keeps others away from it.
        let result = body(self, unsafe { &mut *buffer });
        self.slots[index].state.store(generation, Ordering::Release);
        result
    }

    /// Empties a buffer and begins its section of `count` elements. Returns the memory of the elements.
    #[inline(always)]
    pub(crate) fn begin(&mut self, buffer: &mut Buffer, count: usize) -> *mut u8 {
        self.clear(buffer);
        let end = buffer.len + SECTION_HEADER_LEN + count * size_of::<f64>();
        assert!(end - MESSAGE_HEADER_LEN <= buffer.capacity, "the buffer is full");
        // SAFETY: the section is within the slab of the buffer.
        unsafe {
            let section = buffer.message.add(buffer.len);
            section.cast::<u64>().write(DOUBLES | (count as u64) << 32);
            buffer.len = end;
            section.add(SECTION_HEADER_LEN)
        }
    }

    /// The memory of the next section's elements.
    #[inline(always)]
    pub(crate) fn next(buffer: &mut Buffer, count: usize) -> *const u8 {
        let end = buffer.next + SECTION_HEADER_LEN + count * size_of::<f64>();
        assert!(end <= buffer.len, "no section is left");
        // SAFETY: the section is within the message.
        unsafe {
            let section = buffer.message.add(buffer.next);
            assert_eq!(section.cast::<u64>().read(), DOUBLES | (count as u64) << 32, "another section");
            buffer.next = end;
            section.add(SECTION_HEADER_LEN)
        }
    }

    fn clear(&mut self, buffer: &mut Buffer) {
        if self.slabs[buffer.slab as usize].users > 1 {
            self.collect();
            if self.slabs[buffer.slab as usize].users > 1 {
                let capacity = self.slabs[buffer.slab as usize].capacity;
                self.release(buffer.slab);
                buffer.slab = self.take_slab(capacity);
            }
        }
        buffer.message = self.octets(buffer.slab);
        buffer.len = MESSAGE_HEADER_LEN;
    }

    /// Sends the message of a buffer.
    #[inline(always)]
    pub(crate) fn send(&mut self, buffer: &mut Buffer, tag: i32) {
        self.sending.lock();
        let payload = (buffer.len - MESSAGE_HEADER_LEN) as u64;
        let mut polls = 0;
        // SAFETY: headers and trailer have their room in the slab, and the record in the ring is this rank's.
        unsafe {
            buffer.message.cast::<u64>().write(NATIVE | payload << 32);
            buffer.message.add(buffer.len).cast::<u64>().write(0);
            while self.sent.wrapping_sub(self.room_from) >= RECORDS {
                self.room_from = self.peer.taken().load(Ordering::Acquire) as u32;
                pause(&mut polls);
            }
            let len = buffer.len + TRAILER_LEN;
            let record = self.own.record(self.sent);
            record.add(8).cast::<u64>().write(tag as u32 as u64);
            let octets = record.add(RECORD_HEADER_LEN);
            let mut stated = len as u32;
            if len <= INLINE_MAX {
                // A slab has at least these octets. Those after the message are ignored.
                copy_nonoverlapping(buffer.message, octets, FIRST_LEN);
                if len > FIRST_LEN {
                    copy_nonoverlapping(
                        buffer.message.add(FIRST_LEN),
                        octets.add(FIRST_LEN),
                        len - FIRST_LEN,
                    );
                }
            } else {
                stated |= BY_REFERENCE;
                let offset = buffer.message.offset_from(self.own.0) as u64;
                octets.cast::<u64>().write(buffer.slab.into());
                octets.add(8).cast::<u64>().write(offset);
                let users = &mut self.slabs[buffer.slab as usize].users;
                *users += 1;
                if users.is_multiple_of(COLLECT_AFTER) {
                    self.collect();
                }
            }
            self.sent = self.sent.wrapping_add(1);
            let word = u64::from(self.sent) | u64::from(stated) << 32;
            (*record.cast::<AtomicU64>()).store(word, Ordering::Release);
        }
        self.sending.unlock();
    }

    /// Waits for a message with this tag. Returns the octets of its sections.
    #[inline(always)]
    pub(crate) fn recv(&mut self, buffer: &mut Buffer, tag: i32) -> u64 {
        self.receiving.lock();
        if let Some(slab) = buffer.borrowed.take() {
            self.give_back(slab);
        }
        let early = if self.unexpected.is_empty() {
            None
        } else {
            self.unexpected.iter().position(|message| message.tag == tag)
        };
        match early.and_then(|at| self.unexpected.remove(at)) {
            Some(message) => self.deliver(message.octets.as_ptr(), message.len, buffer),
            None => self.recv_next(buffer, tag),
        }
        self.receiving.unlock();
        (buffer.len - MESSAGE_HEADER_LEN) as u64
    }

    #[inline(always)]
    fn recv_next(&mut self, buffer: &mut Buffer, tag: i32) {
        let mut polls = 0;
        loop {
            // SAFETY: the record is in the peer's ring, and complete when it has its number.
            unsafe {
                let record = self.peer.record(self.received);
                let word = (*record.cast::<AtomicU64>()).load(Ordering::Acquire);
                if word as u32 != self.received.wrapping_add(1) {
                    pause(&mut polls);
                    continue;
                }
                let (octets, len) = (record.add(RECORD_HEADER_LEN), (word >> 32) as u32);
                let its_tag = record.add(8).cast::<u64>().read() as u32 as i32;
                let is_asked = its_tag == tag;
                if is_asked {
                    self.deliver(octets, len, buffer);
                } else {
                    let mut message = Unexpected { tag: its_tag, len, octets: [0; INLINE_MAX] };
                    copy_nonoverlapping(octets, message.octets.as_mut_ptr(), INLINE_MAX);
                    self.unexpected.push_back(message);
                }
                self.received = self.received.wrapping_add(1);
                if self.received.wrapping_sub(self.published) >= PUBLISH_AFTER {
                    self.published = self.received;
                    self.own.taken().store(self.received.into(), Ordering::Release);
                }
                if is_asked {
                    return;
                }
            }
        }
    }

    #[inline(always)]
    fn deliver(&mut self, octets: *const u8, stated: u32, buffer: &mut Buffer) {
        let len = (stated & !BY_REFERENCE) as usize;
        assert!(len <= MESSAGE_HEADER_LEN + buffer.capacity + TRAILER_LEN, "the message is too long");
        // SAFETY: a record has as many octets as its length says; each slab has those of the first line.
        unsafe {
            if stated & BY_REFERENCE == 0 {
                buffer.message = self.octets(buffer.slab);
                copy_nonoverlapping(octets, buffer.message, FIRST_LEN);
                if len > FIRST_LEN {
                    copy_nonoverlapping(
                        octets.add(FIRST_LEN),
                        buffer.message.add(FIRST_LEN),
                        len - FIRST_LEN,
                    );
                }
            } else {
                buffer.borrowed = Some(octets.cast::<u64>().read() as u32);
                buffer.message = self.peer.0.add(octets.add(8).cast::<u64>().read() as usize);
            }
            let payload = (buffer.message.cast::<u64>().read() >> 32) as usize;
            assert_eq!(MESSAGE_HEADER_LEN + payload + TRAILER_LEN, len, "lengths disagree");
            buffer.len = MESSAGE_HEADER_LEN + payload;
            buffer.next = MESSAGE_HEADER_LEN;
        }
    }

    fn give_back(&mut self, slab: u32) {
        self.given_back = self.given_back.wrapping_add(1);
        let word = u64::from(self.given_back) << 32 | u64::from(slab);
        // SAFETY: the slot is in this rank's ring.
        unsafe { self.own.returned(self.given_back).store(word, Ordering::Release) }
    }

    /// Collects the slabs that the peer has returned.
    fn collect(&mut self) {
        loop {
            let number = self.collected.wrapping_add(1);
            // SAFETY: the slot is in the peer's ring.
            let word = unsafe { self.peer.returned(number).load(Ordering::Acquire) };
            if (word >> 32) as u32 != number {
                return;
            }
            self.collected = number;
            self.release(word as u32);
        }
    }

    fn octets(&self, slab: u32) -> *mut u8 {
        // SAFETY: slabs are within the segment.
        unsafe { self.own.0.add(self.slabs[slab as usize].offset) }
    }

    /// Allocates a slab with one user.
    fn take_slab(&mut self, capacity: usize) -> u32 {
        let capacity = capacity.next_multiple_of(64);
        let unused = self.unused.iter_mut().find(|(of, _)| *of == capacity);
        if let Some(slab) = unused.and_then(|(_, slabs)| slabs.pop()) {
            self.slabs[slab as usize].users = 1;
            return slab;
        }
        let offset = self.used.next_multiple_of(if capacity < 1 << 20 { 64 } else { 4096 });
        assert!(offset + capacity <= self.len, "the segment is used up");
        self.used = offset + capacity;
        self.slabs.push(Slab { offset, capacity, users: 1 });
        (self.slabs.len() - 1) as u32
    }

    fn release(&mut self, slab: u32) {
        let Slab { capacity, users, .. } = &mut self.slabs[slab as usize];
        *users -= 1;
        if *users > 0 {
            return;
        }
        let capacity = *capacity;
        match self.unused.iter_mut().find(|(of, _)| *of == capacity) {
            Some((_, slabs)) => slabs.push(slab),
            None => self.unused.push((capacity, vec![slab])),
        }
    }
}

#[inline(always)]
fn pause(polls: &mut u32) {
    *polls += 1;
    if polls.is_multiple_of(POLLS) {
        yield_now();
    } else {
        spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 64 << 20;

    /// Two ranks, in memory that is zero.
    fn pair() -> (Vec<u64>, Vec<u64>, [Channel; 2]) {
        let (mut a, mut b) = (vec![0; LEN / 8], vec![0; LEN / 8]);
        let (first, second) = (a.as_mut_ptr().cast(), b.as_mut_ptr().cast());
        // SAFETY: the test keeps both as long as the ranks.
        let ranks = unsafe { [Channel::new(first, second, LEN), Channel::new(second, first, LEN)] };
        (a, b, ranks)
    }

    fn write(rank: &mut Channel, buffer: u64, elements: &[f64]) {
        rank.with(buffer, |rank, buffer| {
            let to = rank.begin(buffer, elements.len());
            // SAFETY: the section has room for them.
            unsafe { copy_nonoverlapping(elements.as_ptr(), to.cast(), elements.len()) }
        });
    }

    fn read(rank: &mut Channel, buffer: u64, count: usize) -> Vec<f64> {
        let from = rank.with(buffer, |_, buffer| Channel::next(buffer, count));
        // SAFETY: the section has as many elements.
        unsafe { std::slice::from_raw_parts(from.cast(), count).to_vec() }
    }

    #[test]
    fn message_of_any_length_keeps_its_elements() {
        let (_a, _b, [mut one, mut two]) = pair();
        for count in [1, 4, 5, 26, 27, 28, 128, 8192, 1 << 17] {
            let capacity = SECTION_HEADER_LEN + 8 * count;
            let (out, into) = (one.new_buffer(capacity), two.new_buffer(capacity));
            for turn in 0..600 / count.min(300) {
                let elements: Vec<f64> = (0..count).map(|i| (turn + i) as f64).collect();
                write(&mut one, out, &elements);
                one.with(out, |rank, buffer| rank.send(buffer, 1));
                let len = two.with(into, |rank, buffer| rank.recv(buffer, 1));
                assert_eq!(len as usize, capacity);
                assert_eq!(read(&mut two, into, count), elements, "{count} elements");
            }
            one.free_buffer(out);
            two.free_buffer(into);
        }
    }

    #[test]
    fn message_with_another_tag_waits_for_its_receive() {
        let (_a, _b, [mut one, mut two]) = pair();
        let (out, into) = (one.new_buffer(16), two.new_buffer(16));
        for tag in [1, 2, 3] {
            write(&mut one, out, &[f64::from(tag)]);
            one.with(out, |rank, buffer| rank.send(buffer, tag));
        }
        for tag in [3, 1, 2] {
            two.with(into, |rank, buffer| rank.recv(buffer, tag));
            assert_eq!(read(&mut two, into, 1), [f64::from(tag)]);
        }
    }

    #[test]
    fn returned_slab_is_reused() {
        let (_a, _b, [mut one, mut two]) = pair();
        let (out, into) = (one.new_buffer(8200), two.new_buffer(8200));
        for turn in 0..10_000 {
            write(&mut one, out, &[f64::from(turn); 1024]);
            one.with(out, |rank, buffer| rank.send(buffer, 1));
            two.with(into, |rank, buffer| rank.recv(buffer, 1));
        }
        assert!(one.slabs.len() <= 3, "{} slabs", one.slabs.len());
        assert_eq!(read(&mut two, into, 1024), [9999.0; 1024]);
    }

    #[test]
    #[should_panic(expected = "a freed buffer")]
    fn handle_of_a_freed_buffer_is_refused() {
        let (_a, _b, [mut one, _two]) = pair();
        let buffer = one.new_buffer(16);
        one.free_buffer(buffer);
        one.new_buffer(16);
        one.with(buffer, |_, _| ());
    }
}
