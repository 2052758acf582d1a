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
    intra: ShmSource,
    inter: TcpSource,
    /// The last intra-node receive left packets behind.
    is_intra_full: bool,
}

impl HybridSource {
    pub(super) fn new(transport: Arc<HybridTransport>, intra: ShmSource, inter: TcpSource) -> HybridSource {
        HybridSource { transport, intra, inter, is_intra_full: false }
    }

    #[inline]
    fn receive_intra(&mut self, most: usize, each: &mut PacketHandler<'_>) -> usize {
        let base = self.transport.base;
        let n = self.intra.receive(most, &mut |source, header, body| each(base + source, header, body));
        if n > 0 {
            self.transport.net_poll.record_intra_packet();
        }
        self.is_intra_full = n == most;
        n
    }

    /// Receives inter-node packets that have arrived or can be read, if a poll is due.
    fn receive_inter(&mut self, most: usize, each: &mut PacketHandler<'_>) -> usize {
        if !self.transport.should_poll_inter() {
            return 0;
        }
        let n = self.inter.receive(most, each);
        if n > 0 {
            self.transport.net_poll.record_inter_packet();
        }
        n
    }
}

impl PacketSource for HybridSource {
    #[inline]
    fn receive(&mut self, most: usize, each: &mut PacketHandler<'_>) -> usize {
        // Ranks of one kind that send without end must not starve those of the other kind.
        let inter_first = std::mem::take(&mut self.is_intra_full);
        let mut n = if inter_first { self.receive_inter(most, each) } else { 0 };
        if n < most {
            n += self.receive_intra(most - n, each);
        }
        match !inter_first && n < most {
            true => n += self.receive_inter(most - n, each),
            false => self.transport.flush_inter(),
        }
        n
    }

    fn poll_ended(&mut self) {
        self.intra.poll_ended();
    }
}
