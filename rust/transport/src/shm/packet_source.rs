//! Receiving side of a rank: the queues of the other ranks, and its queue to itself.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, fence};

use mpjdev_buffer::octets::copy_words;

use super::layout::CONSUMED;
use super::peer::Source;
use super::transport::ShmTransport;
use crate::{PacketHandler, PacketSource, PeerState, ShortTaker, Transport};

/// Receiving side of one rank.
#[derive(Debug)]
pub struct ShmSource {
    transport: Arc<ShmTransport>,
    /// The sources whose queues are polled, by rank.
    sources: Vec<Option<Source>>,
    /// The source polled first: the one after the source of the last packet, so that no source starves.
    turn: u32,
}

impl PacketSource for ShmSource {
    fn receive(&mut self, most: usize, each: &mut PacketHandler<'_>) -> usize {
        let transport = &self.transport;
        let mut n = transport.loopback.receive(transport.rank, transport.inline_max, most, each);
        if self.transport.has_new_doorbells() {
            self.accept_doorbells();
        }
        let words = self.transport.active.len();
        let (first, from_turn) = (self.turn as usize / 64, u64::MAX << (self.turn % 64));
        // The first word is polled twice: first its bits from the start on, at the end those before it.
        for step in 0..=words {
            let word = if first + step < words { first + step } else { first + step - words };
            let mut bits = self.transport.active[word].load(Acquire);
            if step == 0 {
                bits &= from_turn;
            } else if step == words {
                bits &= !from_turn;
            }
            while bits != 0 && n < most {
                let source = word as u32 * 64 + bits.trailing_zeros();
                n += self.receive_in_turn(source, most - n, each);
                bits &= bits - 1;
            }
        }
        n
    }

    fn takes_short(&self) -> bool {
        true
    }

    #[inline]
    fn take_short(
        &mut self,
        source: u32,
        context: u64,
        tag: i32,
        polls: u32,
        to: &[AtomicU64],
    ) -> Option<usize> {
        self.take_from(source, |from| {
            from.take_short(context, tag, polls, |words, len| {
                let to = to.get(..words.len());
                to.map(|to| copy_words(words, 0, to, 0, len)).is_some()
            })
        })
    }

    #[inline]
    fn take_short_with(
        &mut self,
        source: u32,
        context: u64,
        tag: i32,
        polls: u32,
        take: &mut ShortTaker<'_>,
    ) -> Option<usize> {
        self.take_from(source, |from| from.take_short(context, tag, polls, take))
    }

    /// Every rank may clear doorbells, so the queues of ended ranks are polled without them.
    fn poll_ended(&mut self) {
        for source in 0..self.sources.len() as u32 {
            let (word, bit) = (source as usize / 64, 1 << (source % 64));
            let known =
                self.transport.active[word].load(Relaxed) | self.transport.ignored[word].load(Relaxed);
            if known & bit != 0
                || source == self.transport.rank
                || self.transport.peer(source) == PeerState::Alive
            {
                continue;
            }
            // The job survives a segment that cannot be mapped here: its rank has already ended.
            if self.transport.peer_of(source).is_ok() && self.begin(source) {
                self.transport.active[word].fetch_or(bit, Release);
            }
        }
    }
}

impl ShmTransport {
    /// Publishes this rank's position in the queue of a source, if it has changed. Skipped lines count as
    /// well.
    #[inline(always)]
    fn publish_position(&self, source: u32, from: &mut Source) {
        if let Some(position) = from.new_position() {
            self.about(source, CONSUMED).store(position, Release);
            if from.must_notify_room() {
                self.notify_room(source);
            }
        }
    }
}

impl ShmSource {
    /// Looks at the queue of one source.
    #[inline(always)]
    fn take_from(&mut self, source: u32, look: impl FnOnce(&mut Source) -> Option<usize>) -> Option<usize> {
        self.transport.heartbeat();
        let from = self.sources.get_mut(source as usize)?.as_mut()?;
        let taken = look(from);
        self.transport.publish_position(source, from);
        taken
    }

    pub(super) fn new(transport: Arc<ShmTransport>, ranks: usize) -> ShmSource {
        ShmSource { transport, sources: (0..ranks).map(|_| None).collect(), turn: 0 }
    }

    #[inline]
    fn receive_in_turn(&mut self, source: u32, most: usize, each: &mut PacketHandler<'_>) -> usize {
        let n = self.receive_from(source, most, each);
        if n > 0 {
            self.turn = if source as usize + 1 < self.sources.len() { source + 1 } else { 0 };
        }
        n
    }

    /// Begins to poll the queues whose doorbells have rung.
    #[cold]
    fn accept_doorbells(&mut self) {
        for i in 0..self.transport.active.len() {
            let transport = self.transport.clone();
            let doorbells = transport.doorbells(transport.rank, i as u32 * 64);
            let known = transport.active[i].load(Relaxed) | transport.ignored[i].load(Relaxed);
            let mut new = doorbells.load(Acquire) & !known;
            while new != 0 {
                let source = i as u32 * 64 + new.trailing_zeros();
                new &= new - 1;
                let bit = 1 << (source % 64);
                if source as usize >= self.sources.len() || source == transport.rank {
                    transport.ignored[i].fetch_or(bit, Release);
                    continue;
                }
                if !self.begin(source) {
                    // Another rank rang it, or the source has no queue yet. The source must be able to ring
                    // again.
                    doorbells.fetch_and(!bit, SeqCst);
                    fence(SeqCst);
                    if !self.begin(source) {
                        continue;
                    }
                }
                transport.active[i].fetch_or(bit, Release);
            }
        }
    }

    /// Begins to poll the queue of a source. Returns false when the queue does not exist.
    fn begin(&mut self, source: u32) -> bool {
        if self.sources[source as usize].is_some() {
            return true;
        }
        let found = self.transport.peer_of(source).map(|peer| (peer.clone(), peer.queue()));
        match found {
            Ok((peer, Ok(true))) => {
                self.sources[source as usize] = Some(Source::new(peer));
                return true;
            }
            Ok((_, Ok(false))) => {}
            Ok((_, Err(damage))) => self.drop_source(source, &damage),
            Err(fault) => self.drop_source(source, &fault),
        }
        false
    }

    /// Stops polling a source permanently, and ends the job because of it.
    #[cold]
    fn drop_source(&mut self, source: u32, what: &dyn Display) {
        let (word, bit) = (source as usize / 64, 1 << (source % 64));
        self.sources[source as usize] = None;
        self.transport.ignored[word].fetch_or(bit, Release);
        self.transport.active[word].fetch_and(!bit, Release);
        self.transport.fail_because_of(source, what);
    }

    fn receive_from(&mut self, source: u32, most: usize, each: &mut PacketHandler<'_>) -> usize {
        let Some(state) = self.sources.get_mut(source as usize) else { return 0 };
        if state.is_none() {
            return 0;
        }
        let mut n = 0;
        while n < most {
            let Some(from) = &mut self.sources[source as usize] else { break };
            from.flush_returns();
            let next = from.next(|header, body| each(source, header, body));
            self.transport.publish_position(source, from);
            match next {
                Ok(true) => n += 1,
                Ok(false) => break,
                Err(fault) => {
                    self.drop_source(source, &fault);
                    break;
                }
            }
        }
        n
    }
}
