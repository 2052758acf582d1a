//! Loans: slabs that another rank reads until it returns them.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use mpjdev_buffer::Slab;
use mpjdev_sys::memory::LINE;

use super::layout::RETURNS_MAX;
use super::peer::Peer;
use super::pool::Chunk;
use super::segment_fault::Damage;

/// One slab of a packet: its first `len` octets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    pub(super) slab: &'a Slab,
    pub(super) chunk: Chunk,
    pub(super) len: usize,
}

impl Part<'_> {
    /// Encodes the slab in two words: its first line and its number of lines, then its octets and the number
    /// of the loan.
    pub(super) fn put(&self, slot: u32, to: &[AtomicU64]) {
        to[0].store((self.chunk.offset / LINE) as u64 | ((self.chunk.len / LINE) as u64) << 32, Relaxed);
        to[1].store((self.len as u64) << 32 | u64::from(slot), Relaxed);
    }
}

/// The slabs on loan to one other rank. Each loan has a number, which travels with the slab and is returned.
///
/// The entry holds a reference, so the memory is not reused, even if the message is dropped.
#[derive(Debug, Default)]
pub(super) struct SlabLoans {
    on_loan: slab::Slab<Slab>,
    /// Number of returned slabs collected so far.
    collected: u64,
    /// The other rank reads no slab any more, so its counts mean nothing.
    is_over: bool,
}

impl SlabLoans {
    /// Collects returned slabs if many are on loan.
    ///
    /// # Errors
    /// The other rank returns a slab that it does not have.
    pub(super) fn make_room(&mut self, peer: &Peer) -> Result<(), Damage> {
        if self.on_loan.len() >= RETURNS_MAX / 8 { self.collect_returns(peer, false) } else { Ok(()) }
    }

    /// Collects the returned slabs. Reclaims all of them when the other rank's process has ended or that rank
    /// has released them. Later loans are reclaimed as a whole too, because the counts of both sides no
    /// longer agree.
    ///
    /// # Errors
    /// As for [`make_room`](Self::make_room).
    pub(super) fn collect_returns(&mut self, peer: &Peer, has_ended: bool) -> Result<(), Damage> {
        if self.on_loan.is_empty() {
            return Ok(());
        }
        if self.is_over || has_ended || peer.has_released() {
            self.is_over = true;
            self.on_loan.clear();
            return Ok(());
        }
        let returned = peer.returned();
        let new = returned.wrapping_sub(self.collected);
        if new > self.on_loan.len() as u64 || new > RETURNS_MAX as u64 {
            return Err(Damage::ReturnedCount);
        }
        while self.collected < returned {
            let slot = peer.returned_slot(self.collected);
            self.collected += 1;
            self.take(slot).ok_or(Damage::ReturnedSlab)?;
        }
        peer.publish_collected(self.collected);
        Ok(())
    }

    /// Starts the loan of a slab and returns the number of the loan. The credit and the sender's requests
    /// bound the number of loans.
    pub(super) fn loan(&mut self, part: &Part<'_>) -> u32 {
        self.on_loan.insert(part.slab.clone()) as u32
    }

    /// Ends the loan of a slab unless its packet was sent.
    pub(super) fn cancel_unless_sent(&mut self, sent: &Result<bool, Damage>, slot: u32) {
        if *sent != Ok(true) {
            drop(self.take(slot));
        }
    }

    /// Ends the loan of one slab.
    pub(super) fn take(&mut self, slot: u32) -> Option<Slab> {
        self.on_loan.try_remove(slot as usize)
    }
}
