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
use mpjdev_transport::wait::WaitControl;

use super::posted::Posted;
use crate::comm::Comm;
use crate::engine::Engine;
use crate::error::DeviceError;
use crate::operation::{Accept, FastRecv, Mode, SendArgs, payload_len};
use crate::packet::PacketEngine;
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

    /// The arguments of the send of a message with data.
    pub(super) fn data_args<'m>(&self, dest: u32, tag: i32, message: &'m Message) -> SendArgs<'m> {
        let (world, context) = (self.all_members()[dest as usize], collective(self.context()));
        SendArgs { message, member: dest, world, context, tag, mode: Mode::Standard }
    }

    /// Starts the send of a message with data. Returns the request that completes it, if there is one.
    pub(super) fn start_send(
        &self,
        dest: u32,
        tag: i32,
        message: &Message,
    ) -> Result<Option<RequestId>, DeviceError> {
        self.engine().send_collective(self.data_args(dest, tag, message), false)
    }

    /// Memory for a message of this length with data.
    pub(super) fn outgoing(&self, len: usize) -> Result<Message, DeviceError> {
        if len <= INLINE_MAX
            && let Some(message) = self.state().take_short_memory(&**self.source())
        {
            return Ok(message);
        }
        Ok(Message::from_empty_slab(self.source().take(len.max(INLINE_MAX))?))
    }

    /// Waits until these sends are complete. Blocks.
    pub(super) fn await_sends(
        &self,
        sends: &mut Vec<RequestId>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        while let Some(id) = sends.last().copied() {
            if self.test(id)?.is_some() {
                sends.pop();
                continue;
            }
            if let Some(error) = self.check_abandonment()? {
                return Err(error);
            }
            self.wait_collective(&[id], wait_control)?;
        }
        Ok(())
    }

    /// Receives a message with data, and spins for it at first. Its sender may still pack it. Blocks.
    pub(super) fn receive_message(
        &self,
        source: u32,
        tag: i32,
        capacity: usize,
        spins: u32,
        wait_control: &mut dyn WaitControl,
    ) -> Result<Message, DeviceError> {
        if let Some(packet) = self.packet_engine() {
            let selector = self.collective_selection(source, tag).selector;
            let mut place = self.state().take_short_memory(&**self.source());
            let accept = Accept::Packing;
            let received =
                PacketEngine::try_recv_yielding(packet, selector, capacity, accept, &mut place, spins);
            match received {
                FastRecv::Done(envelope) => {
                    let message = place.take().ok_or(DeviceError::NoSuchRequest)?;
                    mpjdev_profile::received(envelope.source, || payload_len(&message));
                    return Ok(message);
                }
                FastRecv::Failed(error) => return Err(*error),
                _ => {}
            }
        }
        let id = self.receive_collective(source, tag, capacity, false)?;
        let mut posted = Posted { comm: self, id, is_done: false };
        loop {
            let tested = self.test(id);
            posted.is_done = !matches!(tested, Ok(None));
            if let Some(done) = tested? {
                return done.message.ok_or(DeviceError::NoSuchRequest);
            }
            if let Some(error) = self.check_abandonment()? {
                return Err(error);
            }
            self.wait_collective(&[id], wait_control)?;
        }
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

/// Reverses the octets of each element.
pub(super) fn swap(octets: &mut [u8], size: usize) {
    if size > 1 {
        octets.chunks_exact_mut(size).for_each(<[u8]>::reverse);
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
