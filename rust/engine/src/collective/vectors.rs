//! Calls whose ranks publish one vector of some KiB each in slots, without an area and its schedule.
//!
//! The rank does what [`Comm::run_call`] would do at the same call: other ranks may take that way. It serves
//! ranks whose slots are all known, so no vector is a message.

use mpjdev_buffer::Type;
use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use mpjdev_proto::collective::data_tag;
use mpjdev_schedule::{Choices, UniformCall};
use mpjdev_transport::slots::SLOT_MAX;
use mpjdev_transport::wait::WaitControl;

use super::exchange::{Arrival, Exchange, Label, Refusal};
use crate::comm::Comm;
use crate::error::DeviceError;

/// Octets of the longest vector.
pub const VECTOR_MAX: usize = 2048;

/// The vectors of all ranks in one exchange.
pub struct Vectors<'a> {
    exchange: Exchange<'a>,
    rank: u32,
    own: &'a [u8],
}

impl Vectors<'_> {
    /// Copies octets from `skip` on of the vector of a rank.
    ///
    /// # Panics
    /// They are not inside the vector.
    #[inline]
    pub fn copy(&self, rank: u32, skip: usize, into: &mut [u8]) {
        let len = self.own.len();
        if rank == self.rank {
            into.copy_from_slice(&self.own[skip..][..into.len()]);
        } else if len <= SLOT_MAX {
            self.exchange.copy(rank, skip, into);
        } else if let Some(octets) = self.exchange.octets(rank, len) {
            octets.range(skip, into.len()).get_octets(into);
        }
    }
}

impl Comm {
    /// Publishes the vector `own` of a call, waits for those of all ranks, and passes them to `read`. Returns
    /// false, and nothing has happened, if the call has to take another way. Blocks.
    ///
    /// # Errors
    /// As for [`run_schedule`](Self::run_schedule); `read` was not called.
    ///
    /// # Panics
    /// The vector is not one of this call.
    pub fn exchange_vectors(
        &self,
        call: &UniformCall,
        choices: &Choices<'_>,
        (element, own): (Type, &[u8]),
        wait_control: &mut dyn WaitControl,
        read: &mut dyn FnMut(&Vectors<'_>),
    ) -> Result<bool, DeviceError> {
        let Some(len) = call.exchanged_len(self.size() as u32, choices) else { return Ok(false) };
        if !self.has_slots() || own.len() > VECTOR_MAX {
            return Ok(false);
        }
        assert_eq!(own.len(), len * element.size(), "octets of {call:?}");
        self.check_next_collective(true)?;
        let Some(exchange) = self.begin_exchange_of_slots() else { return Ok(false) };
        let exchanged = self.pass_vectors(exchange, element, own, wait_control);
        match exchanged {
            Ok(None) => {
                read(&Vectors { exchange, rank: self.rank(), own });
                Ok(true)
            }
            Ok(Some(refused)) => Err(refused),
            Err(error) => {
                self.abandon(Some(&error));
                Err(error)
            }
        }
    }

    /// Publishes a vector and waits for those of all ranks. Returns the reason why they cannot be used.
    fn pass_vectors(
        &self,
        exchange: Exchange<'_>,
        element: Type,
        own: &[u8],
        wait_control: &mut dyn WaitControl,
    ) -> Result<Option<DeviceError>, DeviceError> {
        let tag = data_tag(self.state().next_operation());
        let len = own.len() / element.size();
        let label = Label::Vector { element, count: len as u32 };
        if own.len() <= SLOT_MAX {
            exchange.publish(label, own);
        } else if let Some(place) = exchange.long_place(own.len())? {
            place.put_octets(own);
            exchange.publish_long(label);
        }
        let (mut misfit, mut failed_at, mut has_woken) = (None, None, false);
        for source in (0..self.size() as u32).filter(|source| *source != self.rank()) {
            if !exchange.poll(source, &mut has_woken) {
                let capacity = MESSAGE_OVERHEAD + own.len() + 8;
                if let Arrival::ByMessage(_) = exchange.await_arrival(source, tag, capacity, wait_control)? {
                    return Err(exchange.other_operation(source));
                }
            }
            match exchange.check_vector(source, element, len, tag) {
                Ok(()) => {}
                Err(Refusal::Misfit(error)) => misfit = misfit.or(Some(error)),
                Err(Refusal::Failure { rank }) => failed_at = failed_at.or(Some(rank)),
            }
        }
        Ok(misfit.or_else(|| failed_at.map(|rank| DeviceError::OperationFailed { rank })))
    }
}
