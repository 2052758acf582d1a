//! Receiving side of a rank: its intra-node packets and its inter-node packets.

use std::sync::Arc;

use super::wire::SitesWire;
use crate::shm::ShmInbox;
use crate::tcp::TcpInbox;
use crate::{Each, Inbox};

/// Receiving side of one rank.
#[derive(Debug)]
pub struct SitesInbox {
    wire: Arc<SitesWire>,
    near: ShmInbox,
    far: TcpInbox,
    /// The last intra-node receive left packets behind.
    is_near_full: bool,
}

impl SitesInbox {
    pub(super) fn new(wire: Arc<SitesWire>, near: ShmInbox, far: TcpInbox) -> SitesInbox {
        SitesInbox { wire, near, far, is_near_full: false }
    }

    #[inline]
    fn receive_near(&mut self, most: usize, each: &mut Each<'_>) -> usize {
        let base = self.wire.base;
        let n = self.near.receive(most, &mut |source, header, body| each(base + source, header, body));
        if n > 0 {
            self.wire.turns.note_near();
        }
        self.is_near_full = n == most;
        n
    }

    /// Receives inter-node packets that have arrived or can be read, if a poll is due.
    fn receive_far(&mut self, most: usize, each: &mut Each<'_>) -> usize {
        if !self.wire.is_far_worth_a_look() {
            return 0;
        }
        let n = self.far.receive(most, each);
        if n > 0 {
            self.wire.turns.note_far();
        }
        n
    }
}

impl Inbox for SitesInbox {
    #[inline]
    fn receive(&mut self, most: usize, each: &mut Each<'_>) -> usize {
        // Intra-node ranks that send without end must not starve the inter-node ones, nor the other way
        // round.
        let far_first = std::mem::take(&mut self.is_near_full);
        let mut n = if far_first { self.receive_far(most, each) } else { 0 };
        if n < most {
            n += self.receive_near(most - n, each);
        }
        match !far_first && n < most {
            true => n += self.receive_far(most - n, each),
            false => self.wire.write_to_far(),
        }
        n
    }

    fn poll_gone(&mut self) {
        self.near.poll_gone();
    }
}
