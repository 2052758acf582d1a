//! Receiving side of a rank: it passes on the datagrams that were read.

use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::{Arc, PoisonError};

use super::dispatch::Reader;
use super::liveness::Ended;
use super::poll::Told;
use super::wire::UdpWire;
use crate::{Each, Inbox, Wire};

/// Receiving side of one rank.
#[derive(Debug)]
pub struct UdpInbox {
    wire: Arc<UdpWire>,
    inline_max: usize,
    told: Told,
    reader: Reader,
}

impl UdpInbox {
    pub(super) fn new(wire: Arc<UdpWire>, inline_max: usize) -> UdpInbox {
        UdpInbox { wire, inline_max, told: Told::default(), reader: Reader::default() }
    }
}

impl Inbox for UdpInbox {
    fn receive(&mut self, most: usize, each: &mut Each<'_>) -> usize {
        let UdpInbox { wire, inline_max, told, reader } = self;
        wire.has_room.store(false, Relaxed);
        let mut n = wire.own.receive(wire.rank, *inline_max, most, each);
        let mut stage = wire.stage.lock().unwrap_or_else(PoisonError::into_inner);
        wire.is_staged.store(false, Relaxed);
        let now = wire.timers.now();
        let (ended, later): (Vec<_>, _) = wire.lines.take_ended().into_iter().partition(Ended::is_certain);
        wire.lines.put_back(later);
        let mut is_drained = false;
        let mut may_have_more = !ended.is_empty() || stage.is_empty() || stage.may_have_more(now);
        loop {
            while n < most
                && let Some(staged) = stage.take()
            {
                // A datagram without a message counts too: a peer that sends no others must not keep the lock
                // busy.
                n += 1;
                reader.take(wire, &mut stage, &staged, now, each);
            }
            if n >= most || !may_have_more {
                break;
            }
            if !wire.fill(&mut stage, now) {
                is_drained = true;
                break;
            }
            may_have_more = !ended.is_empty() || stage.may_have_more(now);
        }
        wire.send_waiting();
        let has_more = !stage.is_empty();
        wire.is_staged.store(has_more, Release);
        n += wire.settle(&mut stage, told, now, each);
        match is_drained {
            true => wire.judge(ended),
            false => wire.lines.put_back(ended),
        }
        if has_more {
            // The kernel does not report data that was read but not taken, and the thread that takes it may
            // leave now.
            wire.ring();
        }
        n
    }
}
