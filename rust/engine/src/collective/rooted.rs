//! Calls with a root and short blocks, without an area and its schedule.
//!
//! Their messages go between memory of the caller and the queues.
//! The rank does what [`Comm::run_call`] would do at the same call: other ranks may take that way.

use mpjdev_buffer::{Encoding, SectionHeader, Type, sole_section};
use mpjdev_proto::collective::data_tag;
use mpjdev_schedule::{Call, Choices, UniformCall};
use mpjdev_transport::wait::WaitControl;

use super::failure::{FAILURE_MAX, failure};
use super::short_messages::{SHORT_MAX, ShortMessage};
use super::traffic::{misfit, swap};
use crate::comm::Comm;
use crate::error::DeviceError;
use crate::request::RequestId;

impl Comm {
    /// Runs a broadcast, a gather or a scatter. `octets` are the vector of a broadcast, a block of each rank
    /// at the root of the other calls, and the block of this rank elsewhere. The block of the root for itself
    /// stays where it is. Returns false, and nothing has happened, if the call has to take another way.
    /// Blocks.
    ///
    /// # Errors
    /// As for [`run_schedule`](Self::run_schedule).
    ///
    /// # Panics
    /// The octets are not those of this call.
    pub fn run_rooted(
        &self,
        call: &UniformCall,
        choices: &Choices<'_>,
        (element, octets): (Type, &mut [u8]),
        wait_control: &mut dyn WaitControl,
    ) -> Result<bool, DeviceError> {
        let Some(root) = call.root_of_messages(self.size() as u32, choices) else { return Ok(false) };
        if call.count * element.size() > SHORT_MAX || self.first_foreign().is_some() {
            return Ok(false);
        }
        let (is_root, is_gather) = (root == self.rank(), matches!(call.call, Call::Gather { .. }));
        self.check_next_collective(is_root == is_gather)?;
        let tag = data_tag(self.state().next_operation());
        let mut run = ShortRun { comm: self, tag, element, sends: Vec::new(), refused: None };
        let ended = match (is_root, is_gather) {
            (true, true) => run.receive_blocks(octets, wait_control),
            (true, false) => run.send_blocks(call, octets, wait_control),
            (false, true) => run.send(root, octets, wait_control),
            (false, false) => run.receive(root, octets, wait_control),
        };
        if let Err(error) = &ended {
            self.abandon(Some(error));
        }
        ended?;
        run.refused.take().map_or(Ok(true), Err)
    }
}

/// A call in progress.
struct ShortRun<'a> {
    comm: &'a Comm,
    tag: i32,
    element: Type,
    /// Sends that are not complete.
    sends: Vec<RequestId>,
    /// The error of the first message that does not fit, or of its rank.
    refused: Option<DeviceError>,
}

impl ShortRun<'_> {
    /// The other ranks, from the next one on and around the end.
    fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let (rank, size) = (self.comm.rank(), self.comm.size() as u32);
        (1..size).map(move |distance| (rank + distance) % size)
    }

    fn send(
        &mut self,
        dest: u32,
        octets: &[u8],
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        let message = ShortMessage::new(self.element, octets);
        self.sends.extend(self.comm.send_short(dest, self.tag, &message, &mut None)?);
        self.comm.await_sends(&mut self.sends, wait_control)
    }

    /// Sends the vector of a broadcast, or the blocks of a scatter.
    fn send_blocks(
        &mut self,
        call: &UniformCall,
        octets: &[u8],
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        if matches!(call.call, Call::Bcast { .. }) {
            let (message, mut in_memory) = (ShortMessage::new(self.element, octets), None);
            for dest in self.others() {
                self.sends.extend(self.comm.send_short(dest, self.tag, &message, &mut in_memory)?);
            }
        } else {
            let len = octets.len() / self.comm.size();
            for dest in self.others() {
                let message = ShortMessage::new(self.element, &octets[dest as usize * len..][..len]);
                self.sends.extend(self.comm.send_short(dest, self.tag, &message, &mut None)?);
            }
        }
        self.comm.await_sends(&mut self.sends, wait_control)
    }

    /// Receives the blocks of a gather.
    fn receive_blocks(
        &mut self,
        octets: &mut [u8],
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        let len = octets.len() / self.comm.size();
        for source in self.others() {
            self.receive(source, &mut octets[source as usize * len..][..len], wait_control)?;
        }
        Ok(())
    }

    /// Receives the elements of a rank, which may be fewer than there is room for.
    fn receive(
        &mut self,
        source: u32,
        into: &mut [u8],
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        let &mut ShortRun { comm, tag, element, .. } = self;
        let mut spins = comm.config().spins;
        if comm.take_short(source, tag, element, into, &mut spins).is_some() {
            return Ok(());
        }
        let most = into.len() / element.size();
        let refused = |error| misfit(error, comm.all_members()[source as usize], tag);
        let section = SectionHeader { element, count: most };
        let capacity = sole_section::primary_len(section).map_err(refused)?.max(FAILURE_MAX);
        let mut message = match comm.receive_message(source, tag, capacity, spins, wait_control) {
            Ok(message) => message,
            Err(error @ (DeviceError::Truncated { .. } | DeviceError::Damaged { .. })) => {
                self.refused.get_or_insert(error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if message.is_packing() {
            let len = message.first_len();
            comm.await_packed(source, &mut message, len, wait_control)?;
        }
        match message.sole_section(element, most) {
            Ok((_, octets)) => {
                let into = &mut into[..octets.len()];
                octets.get_octets(into);
                if message.encoding() != Encoding::NATIVE {
                    swap(into, element.size());
                }
            }
            Err(error) => {
                let failed = failure(&message, element).map(|rank| DeviceError::OperationFailed { rank });
                self.refused.get_or_insert(failed.unwrap_or_else(|| refused(error)));
            }
        }
        Ok(())
    }
}

impl Drop for ShortRun<'_> {
    fn drop(&mut self) {
        self.sends.iter().for_each(|id| self.comm.detach(*id));
    }
}
