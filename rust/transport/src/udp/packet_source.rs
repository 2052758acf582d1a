//! Receiving side of a rank: it passes on the datagrams that were read.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::dispatch::Reader;
use super::liveness::Ended;
use super::poll::PeerEvents;
use super::transport::UdpTransport;
use crate::{PacketHandler, PacketSource};

/// Receiving side of one rank.
#[derive(Debug)]
pub struct UdpSource {
    transport: Arc<UdpTransport>,
    inline_max: usize,
    events: PeerEvents,
    reader: Reader,
}

impl UdpSource {
    pub(super) fn new(transport: Arc<UdpTransport>, inline_max: usize) -> UdpSource {
        UdpSource { transport, inline_max, events: PeerEvents::default(), reader: Reader::default() }
    }
}

impl PacketSource for UdpSource {
    fn receive(&mut self, most: usize, each: &mut PacketHandler<'_>) -> usize {
        let UdpSource { transport, inline_max, events, reader } = self;
        transport.net.has_room.store(false, Relaxed);
        let mut n = transport.net.loopback.receive(transport.net.rank, *inline_max, most, each);
        let mut stage = transport.stage.lock();
        transport.is_staged.store(false, Relaxed);
        let now = transport.timers.now();
        let (ended, later): (Vec<_>, _) =
            transport.liveness.take_ended().into_iter().partition(Ended::is_certain);
        transport.liveness.put_back(later);
        let mut is_drained = false;
        let mut may_have_more = !ended.is_empty() || stage.is_empty() || stage.may_have_more(now);
        loop {
            while n < most
                && let Some(staged) = stage.take()
            {
                // A datagram without a message counts too: a peer that sends no others must not keep the lock
                // busy.
                n += 1;
                reader.take(transport, &mut stage, &staged, now, each);
            }
            if n >= most || !may_have_more {
                break;
            }
            if !transport.fill(&mut stage, || now) {
                is_drained = true;
                break;
            }
            may_have_more = !ended.is_empty() || stage.may_have_more(now);
        }
        transport.send_waiting();
        let has_more = !stage.is_empty();
        transport.is_staged.store(has_more, Release);
        n += transport.process_peers(&mut stage, events, now, each);
        match is_drained {
            true => transport.handle_ended(ended),
            false => transport.liveness.put_back(ended),
        }
        if has_more {
            // The kernel does not report data that was read but not taken, and the thread that takes it may
            // leave now.
            transport.net.wake();
        }
        n
    }
}
