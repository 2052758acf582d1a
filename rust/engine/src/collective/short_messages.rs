//! Messages of short calls with data: their elements go between memory of the caller and the queue, without
//! message memory.

use std::convert::Infallible;
use std::sync::atomic::AtomicU64;

use mpjdev_buffer::layout::{PRIMARY_HEADER_LEN, SECTION_HEADER_LEN};
use mpjdev_buffer::{Message, Octets, SectionHeader, Type, sole_section};
use mpjdev_proto::context::collective;

use crate::comm::Comm;
use crate::engine::Engine;
use crate::error::DeviceError;
use crate::request::RequestId;

/// Octets of the elements of the longest one.
pub(super) const SHORT_MAX: usize = 1024;
/// Octets before the elements.
const ELEMENTS: usize = PRIMARY_HEADER_LEN + SECTION_HEADER_LEN;
/// Words of the longest one.
const WORDS: usize = (ELEMENTS + SHORT_MAX + 8) / 8;

/// A message of at most [`SHORT_MAX`] octets of elements.
pub(super) struct ShortMessage {
    words: [AtomicU64; WORDS],
    section: SectionHeader,
}

impl ShortMessage {
    /// A message of these elements.
    ///
    /// # Panics
    /// They have more than [`SHORT_MAX`] octets.
    pub(super) fn new(element: Type, octets: &[u8]) -> ShortMessage {
        let section = SectionHeader { element, count: octets.len() / element.size() };
        let words = [const { AtomicU64::new(0) }; WORDS];
        let Ok(()) = sole_section::write_words(&words, section, |place| {
            place.put_octets(octets);
            Ok::<(), Infallible>(())
        });
        ShortMessage { words, section }
    }

    fn len(&self) -> usize {
        ELEMENTS + self.section.padded_len() + 8
    }

    /// The octets of the elements.
    fn elements(&self) -> Octets<'_> {
        Octets::new(&self.words, ELEMENTS, self.section.count * self.section.element.size())
    }
}

impl Comm {
    /// Sends a short message. One that cannot leave at once takes message memory, which `in_memory` keeps for
    /// the next rank. Returns the request that completes it, if there is one.
    pub(super) fn send_short(
        &self,
        dest: u32,
        tag: i32,
        message: &ShortMessage,
        in_memory: &mut Option<Message>,
    ) -> Result<Option<RequestId>, DeviceError> {
        let (world, context) = (self.all_members()[dest as usize], collective(self.context()));
        if self.engine().try_send_words(world, context, tag, message.len(), || &message.words[..]) {
            return Ok(None);
        }
        let in_memory = match in_memory {
            Some(in_memory) => in_memory,
            None => {
                let mut new = self.outgoing(message.len())?;
                new.write_sole_section(message.section, |place| {
                    let mut octets = [0; SHORT_MAX];
                    let octets = &mut octets[..message.elements().len()];
                    message.elements().get_octets(octets);
                    place.put_octets(octets);
                    Ok::<(), DeviceError>(())
                })?;
                in_memory.insert(new)
            }
        };
        self.start_send(dest, tag, in_memory)
    }

    /// Takes the next message of a rank from its queue, if it is there soon and its elements are at most
    /// these. Returns their octets; `None` if any other way has to receive it.
    pub(super) fn take_short(
        &self,
        source: u32,
        tag: i32,
        element: Type,
        into: &mut [u8],
        spins: &mut u32,
    ) -> Option<usize> {
        let (most, mut len) = (into.len() / element.size(), 0);
        let selection = self.collective_selection(source, tag);
        let is_taken = self.engine().try_recv_words(selection, spins, &mut |words, octets| {
            let Some((_, place)) = sole_section::read_words(words, octets, element, most) else {
                return false;
            };
            len = place.len();
            place.get_octets(&mut into[..len]);
            true
        });
        is_taken.then_some(len)
    }
}
