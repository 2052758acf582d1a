//! The driver of a schedule: a collective operation with data.
//!
//! A run of elements that no step changes goes directly from a block of the program to a message, or from a
//! message to a block. A long one is sent before it is packed, and its receiver unpacks behind the sender.

mod area;
mod caller;
mod final_combination;
mod receive;
mod send;
mod short;
mod slots;
#[cfg(all(test, not(loom)))]
mod tests;

use mpjdev_buffer::layout::{PRIMARY_HEADER_LEN, SECTION_HEADER_LEN};
use mpjdev_buffer::{Message, Octets, Type};
use mpjdev_proto::collective::data_tag;
use mpjdev_schedule::{Choices, Group, Placement, Run, Schedule, Step, TakenPart, UniformCall};

use super::exchange::Exchange;
use crate::collective_state::KeptSchedule;
use crate::comm::Comm;
use crate::error::DeviceError;
use crate::request::RequestId;
use area::Area;
pub use caller::{AheadOf, BlockPart, Caller};

/// Octets that are combined at a time: they stay in the first cache between the copy and its use.
const CHUNK: usize = 4096;
/// Octets of a vector for which a smaller place is prepared.
const SHORT: usize = 256;
/// Octets from which a message is sent before it is packed.
const AHEAD_FROM: usize = 32 * 1024;
/// Octets of a block from which it is stored while the other ranks pack theirs.
const UNCHANGED_FROM: usize = 4 * 1024;
/// The offset of the elements in a message of one section.
const ELEMENTS: usize = PRIMARY_HEADER_LEN + SECTION_HEADER_LEN;

impl Comm {
    /// Runs a call whose blocks have one length, as [`run_schedule`](Self::run_schedule) runs its schedule.
    ///
    /// # Errors
    /// As for [`run_schedule`](Self::run_schedule).
    pub fn run_call(
        &self,
        operation: &'static str,
        call: UniformCall,
        choices: &Choices<'_>,
        caller: &mut dyn Caller,
    ) -> Result<(), DeviceError> {
        let kept = self.state().take_schedule(&call).unwrap_or_else(|| {
            let group = Group { rank: self.rank(), size: self.size() as u32 };
            Box::new(KeptSchedule { call, schedule: call.schedule(group, choices) })
        });
        let ended = self.run_schedule(operation, &kept.schedule, caller);
        self.state().keep_schedule(kept);
        ended
    }

    /// Runs the steps of an operation on the blocks of `caller`. All members call it in the same order.
    /// Blocks.
    ///
    /// A message that does not fit, or of another type, and a reduction that fails, are errors of this rank
    /// at the end, and of the ranks that need its vector. The others complete. After an error some blocks of
    /// the output may be stored.
    ///
    /// # Errors
    /// A member has failed or finished; an operation on this communicator was abandoned; interrupted, which
    /// abandons the operation; a member is foreign, and nothing was sent; a message did not fit or the caller
    /// has failed, here or at a member whose vector this rank needs.
    pub fn run_schedule(
        &self,
        operation: &'static str,
        schedule: &Schedule,
        caller: &mut dyn Caller,
    ) -> Result<(), DeviceError> {
        if let Some(rank) = self.first_foreign() {
            return Err(DeviceError::Foreign { operation, rank });
        }
        self.check_next_collective(schedule.receives())?;
        let tag = data_tag(self.state().next_operation());
        let element = caller.element();
        let is_exchange = self.has_slots() && area::fits_slots(schedule, element.size());
        let exchange = if is_exchange { self.begin_exchange() } else { None };
        let area = Area::new(schedule, element.size(), exchange.is_some());
        let taken = schedule.taken;
        let mut run = DataRun {
            comm: self,
            tag,
            caller,
            area,
            exchange,
            taken,
            has_woken: false,
            element,
            sends: Vec::new(),
            misfit: None,
            failed_at: None,
            is_over: false,
        };
        let ended = run.steps(schedule);
        run.is_over = true;
        if let Err(error) = &ended {
            self.abandon(Some(error));
        }
        let failed = run.failed_at.map(|rank| DeviceError::OperationFailed { rank });
        let misfit = run.misfit.take().or(failed);
        ended.and(misfit.map_or(Ok(()), Err))
    }

    /// The places of the members, which all of them know alike.
    pub fn placement(&self) -> &Placement {
        self.state().placement(|| match self.packet_engine() {
            None => Placement::Apart,
            Some(engine) if engine.are_local(self.all_members()) => {
                Placement::OneMachine { has_slots: self.finds_slots() }
            }
            Some(engine) => {
                let sites: Vec<u32> = self.all_members().iter().map(|rank| engine.site_of(*rank)).collect();
                Placement::of_sites(&sites)
            }
        })
    }
}

/// An operation in progress.
struct DataRun<'a> {
    comm: &'a Comm,
    tag: i32,
    caller: &'a mut dyn Caller,
    area: Area<'a>,
    /// The exchange in slots that the operation is.
    exchange: Option<Exchange<'a>>,
    /// The part that this rank takes of each vector.
    taken: Option<TakenPart>,
    /// Whether the readers of this rank's vector were woken.
    has_woken: bool,
    element: Type,
    /// Sends that are not complete.
    sends: Vec<RequestId>,
    /// The first message that this rank could not store.
    misfit: Option<DeviceError>,
    /// The world rank at which a combination, or the receipt of a vector, has failed. This rank sends no
    /// vectors then.
    failed_at: Option<u32>,
    is_over: bool,
}

impl DataRun<'_> {
    fn steps(&mut self, schedule: &Schedule) -> Result<(), DeviceError> {
        let has_both = !schedule.input.is_empty() && !schedule.output.is_empty();
        if self.area.is_short() || has_both && self.caller.is_in_place() {
            let is_fetched = self.area.fetch_all(self.caller)?;
            self.note(is_fetched);
        }
        let mut steps = &schedule.steps[..];
        let mut has_waited = false;
        while let [step, later @ ..] = steps {
            if !has_waited && step.is_receive() {
                // The other ranks pack meanwhile.
                has_waited = true;
                self.store_unchanged(schedule)?;
            }
            match self.try_combine_finally(steps)? {
                0 => steps = later,
                taken => {
                    steps = &steps[taken..];
                    continue;
                }
            }
            match *step {
                Step::Send { dest, from } => self.send(dest..dest + 1, from)?,
                Step::SendToRanks { first, end, from } => self.send(first..end, from)?,
                Step::Receive { source, into } => self.receive(source, into)?,
                Step::Store { source, into } => self.store(source, into)?,
                Step::ReceiveCombine { source, into, is_lower } => {
                    self.receive_combine(source, into, is_lower)?;
                }
                Step::Combine { from, into } => self.combine(from, into)?,
                Step::Copy { from, into } => {
                    self.fetch(from)?;
                    self.area.copy(from, into)?;
                    self.area.note_written(Run { start: into, len: from.len });
                }
            }
        }
        if !has_waited {
            self.store_unchanged(schedule)?;
        }
        if self.failed_at.is_none() {
            let is_stored = self.area.store_all(self.caller)?;
            self.note(is_stored);
        }
        self.wait_for_sends()
    }

    /// Stores the long blocks of the output that are input which no step changes.
    fn store_unchanged(&mut self, schedule: &Schedule) -> Result<(), DeviceError> {
        let least = UNCHANGED_FROM / self.element.size();
        for output in schedule.output.iter().filter(|output| output.len >= least) {
            if self.failed_at.is_none() && !schedule.writes(*output) {
                let is_stored = self.area.store_input(self.caller, *output)?;
                self.note(is_stored);
            }
        }
        Ok(())
    }

    /// Notes a message that cannot be stored. This rank has nothing to pass on then.
    fn note_misfit(&mut self, misfit: DeviceError) {
        self.misfit.get_or_insert(misfit);
        self.note(false);
    }

    /// Notes whether the caller has done its part.
    fn note(&mut self, is_done: bool) {
        if !is_done {
            self.failed_at.get_or_insert(self.comm.world_rank());
        }
    }

    /// Elements of the whole vector of which a step takes these.
    fn sent_len(&self, into: Run) -> usize {
        self.taken.map_or(into.len, |taken| taken.of)
    }

    fn fetch(&mut self, run: Run) -> Result<(), DeviceError> {
        if self.failed_at.is_none() {
            let is_fetched = self.area.fetch(self.caller, run)?;
            self.note(is_fetched);
        }
        Ok(())
    }

    fn wait_for_sends(&mut self) -> Result<(), DeviceError> {
        self.comm.await_sends(&mut self.sends, &mut || self.caller.keep_waiting())
    }
}

/// The octets of the elements of a message of one section.
fn elements_of(message: &Message, len: usize) -> Octets<'_> {
    Octets::new(message.first_slab().words(), ELEMENTS, len)
}

impl Drop for DataRun<'_> {
    fn drop(&mut self) {
        self.sends.iter().for_each(|id| self.comm.detach(*id));
        // A panic of the combination: the others must not wait for this rank.
        if !self.is_over {
            self.comm.abandon(None);
        }
    }
}
