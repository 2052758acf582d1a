//! Receiving side of a rank: its intra-node packets and its inter-node packets.

use std::sync::Arc;

use super::transport::HybridTransport;
use crate::shm::ShmSource;
use crate::tcp::TcpSource;
use crate::{PacketHandler, PacketSource};

/// Receiving side of one rank.
#[derive(Debug)]
pub struct HybridSource {
    transport: Arc<HybridTransport>,
    near: ShmSource,
    far: TcpSource,
    /// The last intra-node receive left packets behind.
    is_near_full: bool,
}

impl HybridSource {
    pub(super) fn new(transport: Arc<HybridTransport>, near: ShmSource, far: TcpSource) -> HybridSource {
        HybridSource { transport, near, far, is_near_full: false }
    }

    #[inline]
    fn receive_near(&mut self, most: usize, each: &mut PacketHandler<'_>) -> usize {
        let base = self.transport.base;
        let n = self.near.receive(most, &mut |source, header, body| each(base + source, header, body));
        if n > 0 {
            self.transport.turns.note_near();
        }
        self.is_near_full = n == most;
        n
    }

    /// Receives inter-node packets that have arrived or can be read, if a poll is due.
    fn receive_far(&mut self, most: usize, each: &mut PacketHandler<'_>) -> usize {
        if !self.transport.is_far_worth_a_look() {
            return 0;
        }
        let n = self.far.receive(most, each);
        if n > 0 {
            self.transport.turns.note_far();
        }
        n
    }
}

impl PacketSource for HybridSource {
    #[inline]
    fn receive(&mut self, most: usize, each: &mut PacketHandler<'_>) -> usize {
        // Intra-node ranks that send without end must not starve the inter-node ones, nor the other way
        // round.
        let far_first = std::mem::take(&mut self.is_near_full);
        let mut n = if far_first { self.receive_far(most, each) } else { 0 };
        if n < most {
            n += self.receive_near(most - n, each);
        }
        match !far_first && n < most {
            true => n += self.receive_far(most - n, each),
            false => self.transport.write_to_far(),
        }
        n
    }

    fn poll_gone(&mut self) {
        self.near.poll_gone();
    }
}
