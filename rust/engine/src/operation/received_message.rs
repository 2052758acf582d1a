//! A message that has arrived at a receive: its length, its checks, and its errors with the sender.

use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use mpjdev_buffer::{BufferError, Message, Slab};
use mpjdev_proto::envelope::Envelope;
use mpjdev_proto::send_policy::{LengthError, check_first};

use crate::error::DeviceError;
use crate::request::Completed;

/// The result of a receive.
pub(crate) fn received(envelope: Envelope, message: Message) -> Completed {
    Completed { envelope: Some(envelope), message: Some(message) }
}

/// Octets of a message with the headers of its sections.
#[inline(always)]
pub(crate) fn payload_len(message: &Message) -> usize {
    message.first_len().saturating_sub(MESSAGE_OVERHEAD) + message.secondary_len()
}

/// A checked message of its physical messages.
#[inline]
pub(crate) fn physical(
    slab: Slab,
    len: usize,
    second: Option<(Slab, usize)>,
    capacity: usize,
    envelope: &Envelope,
) -> Result<Message, DeviceError> {
    check_first(len, capacity).map_err(|e| lengths(e, envelope))?;
    Message::from_physical(slab, len, second, capacity).map_err(damaged(envelope))
}

/// A damage error with the sender in it.
#[inline]
pub(crate) fn damaged(envelope: &Envelope) -> impl Fn(BufferError) -> DeviceError {
    let Envelope { source, tag, .. } = *envelope;
    move |error| DeviceError::Damaged { error, source_rank: source, tag }
}

/// A length error with the sender in it.
#[cold]
pub(crate) fn lengths(error: LengthError, envelope: &Envelope) -> DeviceError {
    let Envelope { source, tag, .. } = *envelope;
    match error {
        LengthError::Truncated { needed, capacity } => {
            DeviceError::Truncated { needed, capacity, source_rank: source, tag }
        }
        error => DeviceError::Lengths { error, source_rank: source, tag },
    }
}
