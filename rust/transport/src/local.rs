//! Transport between threads of one process: packets go through queues in the heap, large messages by
//! reference.

use std::sync::atomic::{self as plain, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use mpjdev_buffer::Message;
use mpjdev_buffer::octets::copy_words;
use mpjdev_sys::futex::Futex;
#[cfg(not(loom))]
use mpjdev_sys::processors;
use mpjdev_sys::queue::{Consumer, Queue};
use mpjdev_sys::sync::{AtomicU32, fence};

use super::{
    Header, Incoming, Outgoing, PacketHandler, PacketSource, Payload, PeerState, Transport, Unacked,
    goes_inline,
};
use crate::config::{Config, INLINE_MAX};

/// One packet in a queue. The fields that a small message needs are first: together with the queue's stamp
/// they fill one cache line.
#[derive(Debug)]
#[repr(C)]
struct Cell {
    source: u32,
    tag: i32,
    /// Length of the inline octets; otherwise [`BY_REFERENCE`] or [`NOTHING`].
    len: u32,
    kind: super::Kind,
    context: u64,
    words: [AtomicU64; INLINE_MAX / 8],
    token: u64,
    payload: Option<Payload>,
}

const BY_REFERENCE: u32 = u32::MAX;
const NOTHING: u32 = u32::MAX - 1;

impl Default for Cell {
    fn default() -> Self {
        Cell {
            source: 0,
            tag: 0,
            len: NOTHING,
            kind: super::Kind::Eager,
            context: 0,
            words: [const { AtomicU64::new(0) }; INLINE_MAX / 8],
            token: 0,
            payload: None,
        }
    }
}

/// States of a rank.
const ALIVE: u8 = 0;
const FINISHED: u8 = 1;

/// State shared by the ranks of one process.
#[derive(Debug)]
struct Shared {
    queues: Vec<Arc<Queue<Cell>>>,
    futexes: Vec<CachePadded<Futex>>,
    /// By rank: the processor of the last rank that woke it, plus 1; 0 for no processor.
    wakers: Vec<plain::AtomicU32>,
    states: Vec<AtomicU8>,
    heartbeats: Vec<CachePadded<AtomicU64>>,
    epoch: AtomicU32,
    abort: OnceLock<(u32, String)>,
    /// Matched octets by source and, within, by destination. A row exists from the first match on.
    matched: Vec<OnceLock<Box<[CachePadded<AtomicU64>]>>>,
}

impl Shared {
    fn matched(&self, source: u32, dest: u32) -> &AtomicU64 {
        let row = self.matched[source as usize]
            .get_or_init(|| (0..self.queues.len()).map(|_| CachePadded::default()).collect());
        &row[dest as usize]
    }

    fn wake_all(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        for futex in &self.futexes {
            futex.wake();
        }
    }
}

/// The sending side of one rank.
#[derive(Debug)]
pub struct LocalTransport {
    shared: Arc<Shared>,
    rank: u32,
    inline_max: usize,
}

/// The receiving side of one rank.
#[derive(Debug)]
pub struct LocalSource {
    consumer: Consumer<Cell>,
}

/// Both sides of each rank of a job of `ranks` ranks.
pub fn connect(ranks: usize, config: &Config) -> Vec<(LocalTransport, LocalSource)> {
    let (queues, consumers): (Vec<_>, Vec<_>) = (0..ranks).map(|_| Queue::new(config.queue_cells)).unzip();
    let shared = Arc::new(Shared {
        queues,
        futexes: (0..ranks).map(|_| CachePadded::new(Futex::new())).collect(),
        wakers: (0..ranks).map(|_| plain::AtomicU32::new(0)).collect(),
        states: (0..ranks).map(|_| AtomicU8::new(ALIVE)).collect(),
        heartbeats: (0..ranks).map(|_| CachePadded::default()).collect(),
        epoch: AtomicU32::new(0),
        abort: OnceLock::new(),
        matched: (0..ranks).map(|_| OnceLock::new()).collect(),
    });
    let end = |(rank, consumer)| {
        let rank = rank as u32;
        let transport = LocalTransport { shared: shared.clone(), rank, inline_max: config.inline_max };
        (transport, LocalSource { consumer })
    };
    consumers.into_iter().enumerate().map(end).collect()
}

impl LocalTransport {
    #[inline(always)]
    fn put_inline(&self, cell: &mut Cell, message: &Message) {
        let len = message.first_len();
        copy_words(message.first_words(), 0, &cell.words, 0, len);
        cell.len = len as u32;
    }

    /// Wakes a sleeping rank, and records the processor of this one for it.
    #[cold]
    fn wake_for_packet(&self, dest: u32) {
        #[cfg(not(loom))]
        self.shared.wakers[dest as usize].store(1 + processors::current(), Ordering::Relaxed);
        self.shared.futexes[dest as usize].wake();
    }
}

impl Transport for LocalTransport {
    #[inline]
    fn try_send(&self, dest: u32, header: Header, body: Outgoing<'_>) -> bool {
        let sent = self.shared.queues[dest as usize].push(|cell| {
            cell.source = self.rank;
            cell.tag = header.tag;
            cell.kind = header.kind;
            cell.context = header.context;
            if header.kind != super::Kind::Eager {
                cell.token = header.token;
            }
            match body {
                Outgoing::Nothing => cell.len = NOTHING,
                Outgoing::Message(message)
                    if header.kind == super::Kind::Eager && goes_inline(message, self.inline_max) =>
                {
                    self.put_inline(cell, message);
                }
                Outgoing::Message(message) => {
                    cell.payload = Some(Payload::Logical(message.clone()));
                    cell.len = BY_REFERENCE;
                }
                Outgoing::Payload(payload) => {
                    cell.payload = Some(payload.clone());
                    cell.len = BY_REFERENCE;
                }
            }
        });
        if sent {
            fence(Ordering::SeqCst);
            if self.shared.futexes[dest as usize].has_sleepers() {
                self.wake_for_packet(dest);
            }
        }
        sent
    }

    #[inline]
    fn is_ready(&self) -> bool {
        self.shared.queues[self.rank as usize].is_ready()
    }

    fn park(&self, most: Duration, ready: &mut dyn FnMut() -> bool) {
        self.shared.wakers[self.rank as usize].store(0, Ordering::Relaxed);
        self.shared.futexes[self.rank as usize].sleep(most, ready);
    }

    fn waker_processor(&self) -> Option<u32> {
        self.shared.wakers[self.rank as usize].load(Ordering::Relaxed).checked_sub(1)
    }

    fn wake(&self) {
        self.shared.futexes[self.rank as usize].wake();
    }

    #[inline]
    fn epoch(&self) -> u32 {
        self.shared.epoch.load(Ordering::Acquire)
    }

    fn peer(&self, rank: u32) -> PeerState {
        match self.shared.abort.get() {
            Some((failed, why)) if *failed == rank => PeerState::Failed(why.clone()),
            _ if self.shared.states[rank as usize].load(Ordering::Acquire) == FINISHED => PeerState::Finished,
            _ => PeerState::Alive,
        }
    }

    fn abort(&self) -> Option<(u32, String)> {
        self.shared.abort.get().cloned()
    }

    fn finish(&self) -> Vec<Unacked> {
        self.shared.states[self.rank as usize].store(FINISHED, Ordering::Release);
        self.shared.wake_all();
        Vec::new()
    }

    fn fail(&self, why: &str) {
        if self.shared.abort.set((self.rank, why.to_owned())).is_ok() {
            self.shared.wake_all();
        }
    }

    fn credits_returned_by(&self, dest: u32) -> u64 {
        self.shared.matched(self.rank, dest).load(Ordering::Acquire)
    }

    fn return_credit(&self, source: u32, octets: u64) {
        self.shared.matched(source, self.rank).store(octets, Ordering::Release);
    }

    #[inline]
    fn heartbeat(&self) {
        // Every caller holds the rank's lock, so no read-modify-write is needed.
        let heartbeat = &self.shared.heartbeats[self.rank as usize];
        heartbeat.store(heartbeat.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    fn heartbeat_of(&self, rank: u32) -> u64 {
        self.shared.heartbeats[rank as usize].load(Ordering::Relaxed)
    }

    fn name(&self) -> &'static str {
        "local"
    }
}

impl PacketSource for LocalSource {
    #[inline]
    fn receive(&mut self, most: usize, each: &mut PacketHandler<'_>) -> usize {
        let mut n = 0;
        while n < most {
            let taken = self.consumer.pop(|cell| {
                let mut header = Header { kind: cell.kind, context: cell.context, tag: cell.tag, token: 0 };
                if cell.kind != super::Kind::Eager {
                    header.token = cell.token;
                }
                let body = match cell.len {
                    NOTHING => Incoming::Nothing,
                    BY_REFERENCE => match cell.payload.take() {
                        Some(payload) => Incoming::Reference(payload),
                        None => Incoming::Nothing,
                    },
                    len => Incoming::Inline(&cell.words, len as usize),
                };
                // Ranks of one process send only what is allowed.
                let allowed = each(cell.source, header, body);
                debug_assert_eq!(allowed, Ok(()));
            });
            if taken.is_none() {
                break;
            }
            n += 1;
        }
        n
    }
}
