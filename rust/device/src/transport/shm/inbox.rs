//! What a rank takes out of the others' queues.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, PoisonError};

use super::ShmWire;
use super::layout::{CONSUMED, DOORBELLS};
use super::peer::Source;
use super::ring::Damaged;
use crate::transport::{Header, Inbox, Incoming};

/// The receiving side of one rank.
#[derive(Debug)]
pub struct ShmInbox {
    wire: Arc<ShmWire>,
    /// Those whose queues are looked at, by rank.
    sources: Vec<Option<Source>>,
}

impl Inbox for ShmInbox {
    fn receive(&mut self, most: usize, each: &mut dyn FnMut(u32, Header, Incoming<'_>)) -> usize {
        let mut n = self.receive_own(most, each);
        self.look_at_news();
        let wire = self.wire.clone();
        for source in wire.active() {
            n += self.receive_from(source, most - n, each);
            if n == most {
                break;
            }
        }
        n
    }
}

impl ShmInbox {
    pub(super) fn new(wire: Arc<ShmWire>, ranks: usize) -> ShmInbox {
        ShmInbox { wire, sources: (0..ranks).map(|_| None).collect() }
    }

    fn receive_own(&mut self, most: usize, each: &mut dyn FnMut(u32, Header, Incoming<'_>)) -> usize {
        let mut n = 0;
        while n < most && self.wire.own_waits.load(Acquire) {
            let mut own = self.wire.own.lock().unwrap_or_else(PoisonError::into_inner);
            let packet = own.pop_front();
            if own.is_empty() {
                self.wire.own_waits.store(false, Release);
            }
            drop(own);
            let Some((header, payload)) = packet else { break };
            each(self.wire.rank, header, payload.map_or(Incoming::Nothing, Incoming::Reference));
            n += 1;
        }
        n
    }

    /// Looks from now on at the queues whose doorbells have rung.
    fn look_at_news(&mut self) {
        if !self.wire.has_news() {
            return;
        }
        let bell = self.wire.bell(self.wire.rank);
        for i in 0..self.wire.active.len() {
            let rung = self.wire.job.common.words()[bell + DOORBELLS + i].load(Acquire);
            let mut new = rung & !self.wire.active[i].load(Relaxed);
            while new != 0 {
                let source = i as u32 * 64 + new.trailing_zeros();
                new &= new - 1;
                if (source as usize) < self.sources.len() && source != self.wire.rank {
                    self.begin(source);
                }
                // Also a bit that means nothing: it is looked at once.
                self.wire.active[i].fetch_or(1 << (source % 64), Release);
            }
        }
    }

    /// Begins to look at a source's queue, if it is there.
    fn begin(&mut self, source: u32) {
        if self.sources[source as usize].is_none() {
            let found = self.wire.peer_of(source).map(|peer| (peer.clone(), peer.queue()));
            match found {
                Ok((peer, Ok(true))) => self.sources[source as usize] = Some(Source::new(peer)),
                // Rung by somebody else, or by a rank that has not come that far: its own ring comes.
                Ok((_, Ok(false))) => {}
                Ok((_, Err(Damaged(what)))) => self.wire.fail_because_of(source, what),
                Err(why) => self.wire.fail_because_of(source, &why),
            }
        }
    }

    fn receive_from(
        &mut self,
        source: u32,
        most: usize,
        each: &mut dyn FnMut(u32, Header, Incoming<'_>),
    ) -> usize {
        let Some(state) = self.sources.get_mut(source as usize) else { return 0 };
        if state.is_none() {
            return 0;
        }
        let mut n = 0;
        while n < most {
            let Some(from) = &mut self.sources[source as usize] else { break };
            from.flush_returns();
            match from.next(|header, body| each(source, header, body)) {
                Ok(true) => n += 1,
                Ok(false) => break,
                Err(Damaged(what)) => {
                    self.sources[source as usize] = None;
                    self.wire.fail_because_of(source, what);
                    return n;
                }
            }
            let position = from.position();
            self.wire.about(source, CONSUMED).store(position, Release);
        }
        n
    }
}
