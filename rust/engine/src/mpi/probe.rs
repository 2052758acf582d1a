//! Probes over a C MPI.
//!
//! An RTS states the length of its message in its octets, not by its own length. So a probe spills the
//! library's messages and searches the spilled ones.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mpjdev_buffer::Message;
use mpjdev_proto::collective::ABANDONED_TAG;
use mpjdev_proto::send_policy::HEADERS_LEN;
use mpjdev_sys::mpi::{self, Matched, Operation};
use mpjdev_transport::wait::{Backoff, WaitControl};

use super::channel::Channel;
use super::group::Group;
use super::memory;
use super::probed_messages::{Physical, ProbedForm, ProbedMessage, ProbedMessages};
use super::recv::Receive;
use super::spill::BATCH;
use super::{Rank, Wanted};
use crate::error::DeviceError;
use crate::operation::{Probed, Unreceived};
use crate::request::RequestId;

/// Empty tests and probes after which a rank drives all its progress.
const EMPTY_POLLS: u32 = 64;
/// Polls of the receives of a collective operation per poll for a notice, which is rare.
const NOTICE_POLLS: u32 = 8;

impl Group {
    /// Polls for a message without receiving it.
    pub(crate) fn probe_now(self: &Arc<Self>, wanted: Wanted) -> Result<Option<Probed>, DeviceError> {
        let rank = self.owner();
        rank.check_unfinished()?;
        self.check_kept()?;
        let seen = self.poll_spilled(wanted)?;
        if seen.is_none() {
            rank.note_empty_poll();
            if let Some(error) = rank.unsatisfiable_probe(self, wanted) {
                // A rank that has finished may have sent just before.
                let seen = self.poll_spilled(wanted)?;
                let is_there = seen.is_some() || self.spilled.lock().messages.find(wanted).is_some();
                return if is_there { Ok(seen) } else { Err(error) };
            }
        }
        Ok(seen)
    }

    /// Waits for a message without receiving it.
    pub(crate) fn probe(
        self: &Arc<Self>,
        wanted: Wanted,
        wait_control: &mut dyn WaitControl,
    ) -> Result<Probed, DeviceError> {
        let rank = self.owner();
        rank.block(None, Backoff::new(&rank.config), wait_control, || self.probe_now(wanted))
    }

    fn poll_spilled(self: &Arc<Self>, wanted: Wanted) -> Result<Option<Probed>, DeviceError> {
        let spills = &mut self.spilled.lock().messages;
        self.spill_until(spills, wanted)?;
        if let Some(error) = spills.advance(wanted) {
            if let Some(taken) = spills.take(wanted) {
                self.note_taken(spills, &taken);
            }
            return Err(error.into());
        }
        let seen = |found: &ProbedMessage| Probed {
            envelope: self.envelope(found.source, found.tag),
            size: found.len.saturating_sub(HEADERS_LEN),
            first: found.first_section(),
        };
        Ok(spills.find(wanted).filter(|found| !found.is_arriving()).map(seen))
    }

    /// Spills messages until one of them matches, or the library has none that does.
    fn spill_until(&self, spills: &mut ProbedMessages, wanted: Wanted) -> Result<(), DeviceError> {
        let rank = self.owner();
        // MPICH makes progress on a probe, and none on a matched probe.
        while spills.find(wanted).is_none()
            && rank.mpi.iprobe(wanted.recv_from(), self.comm(Channel::Program))?.is_some()
        {
            self.spill(spills)?;
        }
        Ok(())
    }

    /// Takes the notice of an abandoned collective operation: the world rank of its sender, and the message.
    pub(crate) fn take_abandonment(
        self: &Arc<Self>,
        capacity: usize,
    ) -> Result<Option<(u32, Option<Message>)>, DeviceError> {
        let rank = self.owner();
        rank.check_unfinished()?;
        let notices = mpi::RecvFrom { source: None, tag: Some(ABANDONED_TAG) };
        let taken = rank.mpi.improbe(notices, self.comm(Channel::Collective))?;
        let Some((matched, mpi::Envelope { source, tag, len })) = taken else { return Ok(None) };
        let world = self.members()[source as usize];
        rank.note_received(world);
        let what = ProbedForm::Physical(Physical::Matched(matched));
        let taken = ProbedMessage { source, tag, len, what };
        let mut receive = Receive::taken(self, taken, capacity, None);
        // The notice has arrived: it is shorter than any message that the library itself sends by rendezvous.
        let received = loop {
            match receive.advance() {
                Ok(None) => std::thread::yield_now(),
                over => break over,
            }
        };
        Ok(Some((world, received.ok().flatten().and_then(|received| received.message))))
    }

    /// Waits until one of these receives of a collective operation is complete, or a notice has arrived.
    pub(crate) fn wait_collective(
        &self,
        pending: &[RequestId],
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        let rank = self.owner();
        let notices = mpi::RecvFrom { source: None, tag: Some(ABANDONED_TAG) };
        let mut polls = 0_u32;
        rank.block_for(pending.len(), None, Backoff::new(&rank.config), wait_control, || {
            let mut state = rank.state();
            if pending.iter().any(|id| rank.poll_request(&mut state, *id).unwrap_or(true)) {
                return Ok(Some(()));
            }
            drop(state);
            polls = polls.wrapping_add(1);
            let asks = polls.is_multiple_of(NOTICE_POLLS);
            let is_there = asks && rank.mpi.iprobe(notices, self.comm(Channel::Collective))?.is_some();
            Ok(is_there.then_some(()))
        })
    }

    /// Takes all unreceived messages, counts them and drops them.
    pub(super) fn note_unreceived(&self, unreceived: &mut Unreceived) {
        // A message that the library refuses is not counted. The error is returned where a thread waits.
        while let Ok(BATCH) = self.spill(&mut self.spilled.lock().messages) {}
        for ProbedMessage { source, tag, len, what } in self.take_all_spilled() {
            let second_len = match &what {
                ProbedForm::Rts(rts) => rts.second_len as usize,
                ProbedForm::Physical(_) => 0,
            };
            unreceived.add(&self.envelope(source, tag), len.saturating_sub(HEADERS_LEN) + second_len);
            if let ProbedForm::Physical(Physical::Matched(matched)) = what {
                self.consume(matched, len);
            }
        }
    }

    /// Receives an unwanted message: the library would keep a matched one until then.
    fn consume(&self, matched: Matched, len: usize) {
        let rank = self.owner();
        let Ok(slab) = rank.source.take_arrived(len) else { return };
        let memory = Box::new(memory::Octets(slab));
        let taken = Operation::receive_matched(rank.mpi, memory, len, matched);
        drop(taken.and_then(Operation::finish));
    }
}

impl Rank {
    /// Counts an empty test or probe, and occasionally drives all progress.
    pub(super) fn note_empty_poll(&self) {
        if self.empty_polls.fetch_add(1, Ordering::Relaxed) % EMPTY_POLLS == EMPTY_POLLS - 1 {
            self.progress();
        }
    }
}
