//! Messages of short operations: their elements go between the area and the queue, without message memory.

use std::ops::Range;

use mpjdev_schedule::Run;

use super::DataRun;
use super::send::others;
use crate::collective::short_messages::{SHORT_MAX, ShortMessage};
use crate::error::DeviceError;

impl DataRun<'_> {
    /// Sends elements to each of these ranks but this one.
    pub(super) fn send_short(&mut self, dests: Range<u32>, from: Run) -> Result<(), DeviceError> {
        let message = ShortMessage::new(self.element, self.area.octets_mut(from)?);
        let mut in_memory = None;
        for dest in others(dests, self.comm.rank()) {
            self.sends.extend(self.comm.send_short(dest, self.tag, &message, &mut in_memory)?);
        }
        Ok(())
    }

    /// Takes the next message of a rank from its queue, if it is there soon and has at most as many elements.
    /// Returns their octets; `None` if any other way has to receive it.
    pub(super) fn take_short<'v>(
        &mut self,
        source: u32,
        into: Run,
        spins: &mut u32,
        vector: &'v mut [u8; SHORT_MAX],
    ) -> Option<&'v [u8]> {
        if !self.area.has_short_message(into) || self.taken.is_some() || self.failed_at.is_some() {
            return None;
        }
        let place = &mut vector[..into.len * self.element.size()];
        let len = self.comm.take_short(source, self.tag, self.element, place, spins)?;
        Some(&vector[..len])
    }
}
