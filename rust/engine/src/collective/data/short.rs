//! Messages of short operations: their elements go between the area and the queue, without message memory.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

use mpjdev_buffer::{SectionHeader, sole_section};
use mpjdev_proto::context::collective;
use mpjdev_schedule::Run;

use super::area::SHORT_MAX;
use super::send::others;
use super::{DataRun, ELEMENTS};
use crate::engine::Engine;
use crate::error::DeviceError;

/// Words of the longest message of such an operation.
const WORDS: usize = (ELEMENTS + SHORT_MAX + 8) / 8;

impl DataRun<'_> {
    /// Sends elements to each of these ranks but this one. A message that cannot leave at once takes message
    /// memory.
    pub(super) fn send_short(&mut self, dests: Range<u32>, from: Run) -> Result<(), DeviceError> {
        let section = SectionHeader { element: self.element, count: from.len };
        let len = ELEMENTS + section.padded_len() + 8;
        let words = [const { AtomicU64::new(0) }; WORDS];
        let octets = &*self.area.octets_mut(from)?;
        let Ok(()) = sole_section::write_words(&words, section, |place| {
            place.put_octets(octets);
            Ok::<(), Infallible>(())
        });
        let mut message = None;
        for dest in others(dests, self.comm.rank()) {
            let world = self.comm.all_members()[dest as usize];
            let context = collective(self.comm.context());
            if self.comm.engine().try_send_words(world, context, self.tag, len, || &words[..]) {
                continue;
            }
            let message = match &mut message {
                Some(message) => message,
                None => {
                    let mut new = self.outgoing(len)?;
                    self.write(&mut new, section, None, from)?;
                    message.insert(new)
                }
            };
            self.send_message(dest, message)?;
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
        if !self.area.has_short_message(into) || self.failed_at.is_some() {
            return None;
        }
        let selection = self.comm.collective_selection(source, self.tag);
        let mut octets = 0;
        let is_taken = self.comm.engine().try_recv_words(selection, spins, &mut |words, len| {
            let section = sole_section::read_words(words, len, self.element, into.len);
            let Some((_, place)) = section else { return false };
            octets = place.len();
            place.get_octets(&mut vector[..octets]);
            true
        });
        is_taken.then(|| &vector[..octets])
    }
}
