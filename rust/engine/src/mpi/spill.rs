//! The spill: a rank takes messages from the library before a receive asks for them.
//!
//! A library searches its unexpected messages in order, and some search those of all communicators together.
//! So the library keeps few of them: a rank takes them while it waits, and occasionally when it posts a
//! receive. Receives search the spilled messages before the library's, so nothing is overtaken.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mpjdev_proto::rts::RTS_LEN;
use mpjdev_proto::send_policy::LengthError;
use mpjdev_sys::mpi::{self, Operation};

use super::channel::Channel;
use super::group::Group;
use super::memory;
use super::probed_messages::{Physical, ProbedForm, ProbedMessage, ProbedMessages};
use super::{Rank, Wanted};
use crate::error::DeviceError;
use crate::operation::lengths;

/// Messages that are spilled at a time: a flood does not occupy the thread.
pub(super) const BATCH: usize = 1024;
/// Communicators whose messages are spilled per call of progress.
const VISITS: usize = 4;
/// The number of RTS without a receive from which on the physical messages behind them are spilled too.
const RTS_MANY: usize = 16;

impl Group {
    /// Spills messages of the library and returns their number. There may be more after [`BATCH`].
    pub(super) fn spill(&self, spills: &mut ProbedMessages) -> Result<usize, DeviceError> {
        let mut taken = 0;
        while taken < BATCH
            && let Some(next) = self.take_from_library(Wanted { source: None, tag: None })?
        {
            spills.add(next);
            taken += 1;
        }
        if taken > 0 {
            self.spilled_len.store(spills.len(), Ordering::Relaxed);
        }
        Ok(taken)
    }

    /// Takes the first matching spilled message. Occasionally spills more before.
    #[inline]
    pub(super) fn take_spilled(
        &self,
        spills: &mut ProbedMessages,
        wanted: Wanted,
    ) -> Result<Option<ProbedMessage>, DeviceError> {
        if spills.is_due() {
            self.spill_due(spills)?;
        }
        let taken = spills.take(wanted);
        if let Some(taken) = &taken {
            self.note_taken(spills, taken);
        }
        Ok(taken)
    }

    /// Spills messages and schedules the next spill.
    #[cold]
    fn spill_due(&self, spills: &mut ProbedMessages) -> Result<(), DeviceError> {
        let found = self.spill(spills);
        let has_many_rts = self.owner().rts_count.load(Ordering::Relaxed) >= RTS_MANY;
        spills.schedule(match &found {
            Ok(found) if !has_many_rts => *found,
            _ => usize::MAX,
        });
        if found? == BATCH {
            spills.make_due();
        }
        self.owner().spill_firsts_if_many();
        Ok(())
    }

    /// Records that a message has left the spilled ones.
    pub(super) fn note_taken(&self, spills: &ProbedMessages, taken: &ProbedMessage) {
        self.spilled_len.store(spills.len(), Ordering::Relaxed);
        if matches!(taken.what, ProbedForm::Rts(_)) {
            self.owner().rts_count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Takes all spilled messages.
    pub(super) fn take_all_spilled(&self) -> Vec<ProbedMessage> {
        let spills = &mut self.spilled.lock().messages;
        let taken = spills.take_all();
        taken.iter().for_each(|taken| self.note_taken(spills, taken));
        taken
    }

    /// Takes the first matching message of the library.
    fn take_from_library(&self, wanted: Wanted) -> Result<Option<ProbedMessage>, DeviceError> {
        let rank = self.owner();
        // A taken message must be received, so its memory is allocated first.
        let memory = rank.recv_pool.take(&*rank.source)?;
        let taken = rank.mpi.improbe(wanted.recv_from(), self.comm(Channel::Program))?;
        let Some((matched, mpi::Envelope { source, tag, len })) = taken else {
            rank.recv_pool.give_back(memory);
            return Ok(None);
        };
        rank.note_received(self.members()[source as usize]);
        if len != RTS_LEN {
            rank.recv_pool.give_back(memory);
            let what = ProbedForm::Physical(Physical::of_short(rank, matched, len)?);
            return Ok(Some(ProbedMessage { source, tag, len, what }));
        }
        // The RTS has arrived: it is shorter than any message that the library itself sends by rendezvous.
        let memory = Operation::receive_matched(rank.mpi, memory, len, matched)?.finish()?;
        let rts = memory::read(&memory.0);
        rank.recv_pool.give_back(memory);
        let no_headers = LengthError::NoHeaders { first_len: len };
        let rts = rts.map_err(|_| lengths(no_headers, &self.envelope(source, tag)))?;
        rank.rts_count.fetch_add(1, Ordering::Relaxed);
        let len = rts.first_len as usize;
        Ok(Some(ProbedMessage { source, tag, len, what: ProbedForm::Rts(rts) }))
    }
}

impl Rank {
    /// Spills the messages of some communicators, different ones each time. Does not block.
    pub(super) fn spill(&self) {
        let groups: Vec<Arc<Group>> = {
            let groups = self.groups.lock();
            let first = self.spilling.fetch_add(VISITS, Ordering::Relaxed);
            let visited = (first..first + VISITS.min(groups.len())).map(|at| at % groups.len());
            visited.filter_map(|at| groups[at].upgrade()).collect()
        };
        for group in groups {
            // An error of the library is returned where a thread waits for it.
            if group.check_kept().is_ok()
                && let Some(mut spilled) = group.spilled.try_lock()
            {
                let _ = group.spill(&mut spilled.messages);
            }
        }
        self.spill_firsts_if_many();
    }

    /// Spills the first physical messages of rendezvous messages, when there are many.
    fn spill_firsts_if_many(&self) {
        if self.rts_count.load(Ordering::Relaxed) >= RTS_MANY
            && let Some(mut firsts) = self.firsts.try_lock()
        {
            self.spill_firsts(&mut firsts);
        }
    }

    fn spill_firsts(&self, firsts: &mut ProbedMessages) {
        let any = mpi::RecvFrom { source: None, tag: None };
        for _ in 0..BATCH {
            let Ok(Some((matched, envelope))) = self.mpi.improbe(any, self.session.firsts) else {
                return;
            };
            let mpi::Envelope { source, tag, len } = envelope;
            let physical = match mpjdev_proto::rts::is_eager(len, 0) {
                true => Physical::of_short(self, matched, len),
                // Its receive has the memory for it.
                false => Ok(Physical::Matched(matched)),
            };
            let Ok(physical) = physical else { return };
            firsts.add(ProbedMessage { source, tag, len, what: ProbedForm::Physical(physical) });
        }
    }

    /// Drops the physical messages without a receive.
    pub(super) fn drop_firsts(&self) {
        let mut firsts = self.firsts.lock();
        for ProbedMessage { len, what, .. } in firsts.take_all() {
            if let ProbedForm::Physical(Physical::Matched(matched)) = what {
                // Without memory, the library keeps the message. A receive that is not complete keeps its
                // memory.
                let Some(memory) = memory::words(len) else { continue };
                let received = Operation::receive_matched(self.mpi, Box::new(memory), len, matched);
                let _ = received.and_then(|mut operation| operation.test().map(drop));
            }
        }
    }
}
