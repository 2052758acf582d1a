//! Messages without headers of the mpjdev format, for the barrier among clients of IMPI.

use std::time::Instant;

use mpjdev_proto::envelope::Selector;
use mpjdev_transport::wait::{Backoff, WaitControl};
use mpjdev_transport::{Header, Payload};

use crate::error::DeviceError;
use crate::operation::Mode;
use crate::packet::engine::{Core, PacketEngine};
use crate::packet::send::send;
use crate::packet::send_net::Physical;

impl PacketEngine {
    /// Sends a message without octets, and does not wait for its completion. Such a message has no headers of
    /// the mpjdev format.
    pub(crate) fn send_empty(&self, dest: u32, context: u64, tag: i32) -> Result<(), DeviceError> {
        let plan = self.plan_send(dest, Physical { len: 0, may_be_eager: true }, Mode::Standard, None);
        let payload = Payload::Physical(self.source.take(0)?, 0);
        let work = send(dest, tag, None, plan.charged, Mode::Standard);
        let header = Header { kind: plan.kind, context, tag, token: 0 };
        if let Some(id) = self.queue(dest, header, payload, work) {
            self.detach(id);
        }
        Ok(())
    }

    /// Takes a physical message out of matching, whatever its octets are, and drops them. Returns their
    /// number; `None` while there is no such message.
    ///
    /// # Errors
    /// No such message can arrive any more; there was no memory for it.
    pub(crate) fn take_plain(&self, selector: &Selector) -> Result<Option<u64>, DeviceError> {
        let core = &mut *self.lock();
        self.progress(core);
        if let Some(len) = self.take_plain_here(core, selector) {
            return len.map(Some);
        }
        let Some(error) = self.unsatisfiable(selector, &[]) else { return Ok(None) };
        self.poll_ended_peers(core);
        self.take_plain_here(core, selector).unwrap_or(Err(error)).map(Some)
    }

    fn take_plain_here(&self, core: &mut Core, selector: &Selector) -> Option<Result<u64, DeviceError>> {
        let (envelope, message) = core.state.recv_queue.take(selector)?;
        let payload = self.take_unexpected(&mut core.state, envelope, *message, 0);
        Some(payload.map(|payload| payload.len() as u64).map_err(DeviceError::from))
    }

    /// Waits for a physical message, or for the failure of a rank, for a slice of time. Blocks.
    ///
    /// # Errors
    /// Interrupted.
    pub(crate) fn await_plain(
        &self,
        selector: &Selector,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        let soon = Instant::now() + self.config.slice;
        let waited = self.block(&[], Some(soon), Backoff::new(&self.config), wait_control, |core| {
            let is_over = core.state.recv_queue.probe(selector).is_some()
                || self.unsatisfiable(selector, &[]).is_some()
                || self.first_failed().is_some();
            Ok(is_over.then_some(()))
        });
        match waited {
            Err(DeviceError::TimedOut { .. }) => Ok(()),
            waited => waited,
        }
    }
}
