//! Notices of abandoned collective operations in the packet engine.

use mpjdev_buffer::Message;
use mpjdev_proto::collective::ABANDONED_TAG;
use mpjdev_proto::context::collective;
use mpjdev_proto::envelope::Selector;
use mpjdev_transport::wait::{Backoff, WaitControl};

use crate::abandonment::{Abandonment, NOTICE_CAPACITY};
use crate::error::DeviceError;
use crate::packet::engine::PacketEngine;
use crate::request::RequestId;

impl PacketEngine {
    /// Whether this rank may communicate, no other has ended, and no message waits for its receive.
    pub(crate) fn is_undisturbed(&self) -> bool {
        if self.transport.epoch() != 0 || self.end_flags.has_begun() {
            return false;
        }
        let core = self.lock();
        core.state.recv_queue.unexpected_len() == 0 && self.check_self(&core.state).is_ok()
    }

    /// Takes a notice out of matching. Returns the world rank of its sender, and the message unless it is
    /// damaged.
    pub(crate) fn take_abandonment(
        &self,
        context: u64,
        abandonment: &Abandonment,
    ) -> Result<Option<(u32, Option<Message>)>, DeviceError> {
        let mut arriving = abandonment.arriving();
        let notice = match *arriving {
            None => self.receive_arrived(&notices(context), NOTICE_CAPACITY)?,
            arriving => arriving,
        };
        let Some((id, source)) = notice else { return Ok(None) };
        let received = self.test(id);
        *arriving = matches!(received, Ok(None)).then_some((id, source));
        match received {
            Ok(None) => Ok(None),
            received => Ok(Some((source, received.ok().flatten().and_then(|received| received.message)))),
        }
    }

    pub(crate) fn wait_collective(
        &self,
        context: u64,
        pending: &[RequestId],
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        self.wait_collective_or(context, pending, &mut || false, wait_control)
    }

    /// As [`wait_collective`](Self::wait_collective), or until `is_there`.
    pub(crate) fn wait_collective_or(
        &self,
        context: u64,
        pending: &[RequestId],
        is_there: &mut dyn FnMut() -> bool,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        let notices = notices(context);
        self.block(pending, None, Backoff::new(self.config()), wait_control, |core| {
            let state = &mut core.state;
            let mut ids = pending.iter();
            let is_done = is_there() || ids.any(|id| state.requests.is_done(*id));
            Ok((is_done || state.recv_queue.probe(&notices).is_some()).then_some(()))
        })
    }
}

/// The selector of notices in a communicator.
fn notices(context: u64) -> Selector {
    Selector { context: collective(context), source: None, tag: Some(ABANDONED_TAG) }
}
