//! Calls with a root and short blocks, and scans, without an area and its schedule.
//!
//! Their messages go between memory of the caller and the queues.
//!
//! The rank does what [`Comm::run_call`] would do at the same call: other ranks may take that way.

use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use mpjdev_buffer::{Encoding, SectionHeader, Type, sole_section};
use mpjdev_proto::collective::data_tag;
use mpjdev_schedule::{Call, Choices, UniformCall, combine_vectors};
use mpjdev_transport::wait::WaitControl;

use super::failure::{FAILURE_MAX, failure, failure_section, put_failure};
use super::short_messages::{SHORT_MAX, ShortMessage};
use super::traffic::{misfit, swap};
use crate::comm::Comm;
use crate::error::DeviceError;
use crate::request::RequestId;

/// Ranks of the largest scan. Larger ones have gained nothing (decision 0068).
const SCAN_RANKS_MAX: usize = 4;

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
            (false, false) => run.receive(root, octets, wait_control).map(drop),
        };
        run.end(ended)
    }

    /// Runs a reduction to a root, or a scan. `octets` are the vector of this rank, and then the result if it
    /// gets one. Otherwise as [`run_rooted`](Self::run_rooted). `combine` combines the right operand, its
    /// first argument, with the other one.
    ///
    /// # Errors
    /// As for [`run_schedule`](Self::run_schedule).
    pub fn combine_short(
        &self,
        call: &UniformCall,
        choices: &Choices<'_>,
        (element, octets): (Type, &mut [u8]),
        wait_control: &mut dyn WaitControl,
        combine: &mut Combine<'_>,
    ) -> Result<bool, DeviceError> {
        let root = match call.call {
            Call::Scan if self.size() > SCAN_RANKS_MAX => return Ok(false),
            Call::Scan => None,
            _ => match call.root_of_messages(self.size() as u32, choices) {
                None => return Ok(false),
                root => root,
            },
        };
        if octets.len() > SHORT_MAX || self.first_foreign().is_some() {
            return Ok(false);
        }
        let receives = if root.is_some() { root == Some(self.rank()) } else { self.rank() > 0 };
        self.check_next_collective(receives)?;
        let tag = data_tag(self.state().next_operation());
        let mut run = ShortRun { comm: self, tag, element, sends: Vec::new(), refused: None };
        let ended = match root {
            None => run.scan(octets, wait_control, combine),
            Some(root) if root == self.rank() => run.reduce(octets, wait_control, combine),
            Some(root) => run.send(root, octets, wait_control),
        };
        run.end(ended)
    }
}

/// Combines the right operand, the first vector, with the other one.
type Combine<'a> = dyn FnMut(&[u8], &mut [u8]) + 'a;

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
    /// The outcome of a call that this rank has ended.
    fn end(&mut self, ended: Result<(), DeviceError>) -> Result<bool, DeviceError> {
        if let Err(error) = &ended {
            self.comm.abandon(Some(error));
        }
        ended?;
        self.refused.take().map_or(Ok(true), Err)
    }

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
        self.start_send(dest, octets)?;
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

    /// Receives the elements of a rank, which may be fewer than there is room for. Returns their octets, 0 if
    /// they do not fit.
    fn receive(
        &mut self,
        source: u32,
        into: &mut [u8],
        wait_control: &mut dyn WaitControl,
    ) -> Result<usize, DeviceError> {
        let &mut ShortRun { comm, tag, element, .. } = self;
        let mut spins = comm.config().spins;
        if let Some(len) = comm.take_short(source, tag, element, into, &mut spins) {
            return Ok(len);
        }
        let most = into.len() / element.size();
        let refused = |error| misfit(error, comm.all_members()[source as usize], tag);
        let section = SectionHeader { element, count: most };
        let capacity = sole_section::primary_len(section).map_err(refused)?.max(FAILURE_MAX);
        let mut message = match comm.receive_message(source, tag, capacity, spins, wait_control) {
            Ok(message) => message,
            Err(error @ (DeviceError::Truncated { .. } | DeviceError::Damaged { .. })) => {
                self.refused.get_or_insert(error);
                return Ok(0);
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
                Ok(octets.len())
            }
            Err(error) => {
                let failed = failure(&message, element).map(|rank| DeviceError::OperationFailed { rank });
                self.refused.get_or_insert(failed.unwrap_or_else(|| refused(error)));
                Ok(0)
            }
        }
    }

    /// Receives a vector of a reduction. A shorter one is part of another call.
    fn receive_vector(
        &mut self,
        source: u32,
        into: &mut [u8],
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        if self.receive(source, into, wait_control)? < into.len() {
            let rank = self.comm.all_members()[source as usize];
            self.refused.get_or_insert(DeviceError::OtherOperation { rank });
        }
        Ok(())
    }

    /// Combines the vectors of all ranks at the root.
    fn reduce(
        &mut self,
        octets: &mut [u8],
        wait_control: &mut dyn WaitControl,
        combine: &mut Combine<'_>,
    ) -> Result<(), DeviceError> {
        let (len, size) = (octets.len(), self.comm.size());
        let mut vectors = vec![0; size * len];
        let range = |rank: u32| rank as usize * len..(rank as usize + 1) * len;
        vectors[range(self.comm.rank())].copy_from_slice(octets);
        for source in self.others() {
            self.receive_vector(source, &mut vectors[range(source)], wait_control)?;
        }
        if self.refused.is_none() {
            let mut read = |rank, into: &mut [u8]| into.copy_from_slice(&vectors[range(rank)]);
            combine_vectors::<SHORT_MAX>(size as u32, octets, &mut read, combine);
        }
        Ok(())
    }

    /// Combines the vectors of the ranks up to this one, in the steps of [`scan`](mpjdev_schedule::scan).
    fn scan(
        &mut self,
        octets: &mut [u8],
        wait_control: &mut dyn WaitControl,
        combine: &mut Combine<'_>,
    ) -> Result<(), DeviceError> {
        let (rank, size) = (self.comm.rank(), self.comm.size() as u32);
        let mut left = [0; SHORT_MAX];
        let left = &mut left[..octets.len()];
        for distance in (0..u32::BITS).map(|exponent| 1 << exponent).take_while(|distance| *distance < size) {
            if rank + distance < size {
                self.start_send(rank + distance, octets)?;
            }
            if rank >= distance {
                self.receive_vector(rank - distance, left, wait_control)?;
                if self.refused.is_none() {
                    combine(octets, left);
                    octets.copy_from_slice(left);
                }
            }
        }
        self.comm.await_sends(&mut self.sends, wait_control)
    }

    /// Starts to send a vector, or the failure of this rank.
    fn start_send(&mut self, dest: u32, octets: &[u8]) -> Result<(), DeviceError> {
        let sent = match &self.refused {
            None => {
                let message = ShortMessage::new(self.element, octets);
                self.comm.send_short(dest, self.tag, &message, &mut None)?
            }
            Some(refused) => {
                let failed_at = match refused {
                    DeviceError::OperationFailed { rank } => *rank,
                    _ => self.comm.world_rank(),
                };
                let section = failure_section(self.element);
                let mut message = self.comm.outgoing(FAILURE_MAX + MESSAGE_OVERHEAD)?;
                message.write_sole_section(section, |place| {
                    put_failure(place, section.element, failed_at);
                    Ok::<(), DeviceError>(())
                })?;
                self.comm.start_send(dest, self.tag, &message)?
            }
        };
        self.sends.extend(sent);
        Ok(())
    }
}

impl Drop for ShortRun<'_> {
    fn drop(&mut self) {
        self.sends.iter().for_each(|id| self.comm.detach(*id));
    }
}
