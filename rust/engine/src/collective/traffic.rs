//! The messages of collective operations, over either engine.

use std::sync::Arc;

use mpjdev_buffer::capacity::section_capacity;
use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use mpjdev_buffer::{
    BufferError, Encoding, Message, ReadBuffer, SectionHeader, SlabSource, Type, WriteBuffer,
};
use mpjdev_proto::collective::payload_len_max;
use mpjdev_proto::context::{ContextError, collective};
use mpjdev_transport::config::{INLINE_MAX, TOKEN_LEN};
use mpjdev_transport::pool::HeapPool;

use crate::comm::Comm;
use crate::engine::Engine;
use crate::error::DeviceError;
use crate::operation::{Mode, SendArgs};
use crate::request::RequestId;

impl Comm {
    /// Checks that this rank may communicate or, with `is_end`, that it has a job to end.
    pub(super) fn check_going(&self, is_end: bool) -> Result<(), DeviceError> {
        self.engine().check_going(is_end)
    }

    /// Sends a message of a collective operation to a rank among all members without waiting for completion:
    /// the receiver's reply is what counts.
    pub(super) fn send_collective(
        &self,
        dest: u32,
        tag: i32,
        message: &Message,
        is_end: bool,
    ) -> Result<(), DeviceError> {
        let world = self.all_members()[dest as usize];
        let (context, mode) = (collective(self.context()), Mode::Standard);
        let args = SendArgs { message, member: dest, world, context, tag, mode };
        let sent = self.engine().send_collective(args, is_end);
        sent.map(|id| id.into_iter().for_each(|id| self.detach(id)))
    }

    /// Posts a receive of a collective operation.
    pub(super) fn receive_collective(
        &self,
        source: u32,
        tag: i32,
        capacity: usize,
        is_end: bool,
    ) -> Result<RequestId, DeviceError> {
        self.engine().receive_collective(self.collective_selection(source, tag), capacity, is_end)
    }

    /// Allocates contexts that no other rank allocates.
    pub(super) fn allocate_contexts(&self, count: u32) -> Result<Vec<u64>, ContextError> {
        let contexts = self.engine().contexts();
        contexts.lock().allocate_many(count)
    }

    /// The error of a world rank that another rank has reported as ended.
    pub(super) fn reported_peer_error(&self, world: u32) -> DeviceError {
        self.engine().reported_peer_error(world)
    }
}

/// Longest message that takes memory beyond a rank's limit. It fits a packet even past the credit. All
/// messages in a communicator of up to 260 ranks are short enough.
const BEYOND_LIMIT_MAX: usize = INLINE_MAX - TOKEN_LEN;

/// A message with one section of these octets. A short one takes memory beyond the rank's limit if need be: a
/// rank that failed between two messages of an operation would leave members waiting, in a C MPI without an
/// end. An operation has one of them in flight to each member at most.
pub(super) fn pack(source: &Arc<dyn SlabSource>, octets: &[u8]) -> Result<Message, DeviceError> {
    if octets.is_empty()
        && let Ok(slab) = source.take(INLINE_MAX)
    {
        let mut message = Message::from_empty_slab(slab);
        message.write_headers_of(SectionHeader { element: Type::Byte, count: 0 });
        return Ok(message);
    }
    let packed = pack_in(source, octets);
    if packed.is_ok() || MESSAGE_OVERHEAD + capacity_of(octets) > BEYOND_LIMIT_MAX {
        return packed;
    }
    pack_in(&(HeapPool::new(u64::MAX) as Arc<dyn SlabSource>), octets)
}

/// Capacity for the largest message of a machine among this number of ranks.
pub(super) fn capacity_of_ranks(ranks: usize) -> usize {
    // A leader's message has 8 octets more.
    section_capacity(Type::Byte, payload_len_max(ranks as u32) as u32 + 8) as usize
}

fn capacity_of(octets: &[u8]) -> usize {
    section_capacity(Type::Byte, octets.len() as u32) as usize
}

fn pack_in(source: &Arc<dyn SlabSource>, octets: &[u8]) -> Result<Message, DeviceError> {
    let bytes: Vec<i8> = octets.iter().map(|octet| octet.cast_signed()).collect();
    let capacity = capacity_of(octets);
    let mut buffer = WriteBuffer::new(source.clone(), capacity as i64, Encoding::NATIVE).map_err(ours)?;
    buffer.write(&bytes).map_err(ours)?;
    Ok(buffer.finish().map_err(ours)?.clone())
}

/// The octets of a message's only section, at most `len_max` of them.
pub(super) fn unpack(
    source: &Arc<dyn SlabSource>,
    message: Message,
    len_max: usize,
) -> Result<Vec<u8>, DeviceError> {
    let mut buffer = ReadBuffer::new(source.clone(), message.capacity() as i64).map_err(ours)?;
    buffer.adopt(message);
    let count = buffer.peek().map_err(ours)?.map_or(0, |header| header.count);
    let mut bytes = vec![0i8; count.min(len_max)];
    buffer.read(&mut bytes).map_err(ours)?;
    Ok(bytes.iter().map(|byte| byte.cast_unsigned()).collect())
}

/// The error of a message that the engine itself packs or unpacks.
fn ours(error: BufferError) -> DeviceError {
    match error {
        BufferError::Slab(error) => error.into(),
        error => DeviceError::Damaged { error, source_rank: 0, tag: 0 },
    }
}

/// The error of a message, or of a vector in a slot, that is not one section that fits.
pub(super) fn misfit(error: BufferError, source_rank: u32, tag: i32) -> DeviceError {
    match error {
        BufferError::TooLong { needed, capacity } => {
            let (needed, capacity) = (needed as usize, capacity as usize);
            DeviceError::Truncated { needed, capacity, source_rank, tag }
        }
        error => DeviceError::Damaged { error, source_rank, tag },
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn message_takes_memory_beyond_the_limit_up_to_260_ranks() {
        let exhausted: Arc<dyn SlabSource> = HeapPool::new(0);
        let packed = |ranks| pack(&exhausted, &vec![7; payload_len_max(ranks)]);
        let message = packed(260).expect("a short message");
        assert_eq!(message.first_len(), BEYOND_LIMIT_MAX);
        assert!(matches!(packed(261), Err(DeviceError::Memory(_))));
    }
}
