//! Probes, which leave their message unexpected, and receives of messages that have arrived.

use mpjdev_proto::envelope::Selector;
use mpjdev_transport::wait::{Backoff, WaitControl};

use crate::error::DeviceError;
use crate::operation::{Accept, Probed};
use crate::packet::engine::{Core, PacketEngine};
use crate::packet::requests::{Receive, Work};
use crate::request::RequestId;

impl PacketEngine {
    /// Polls for a message without receiving it (MPI_Iprobe).
    ///
    /// # Errors
    /// This rank has finished, the job has failed, or no rank is left that could send such a message.
    pub fn probe_now(&self, selector: &Selector, members: &[u32]) -> Result<Option<Probed>, DeviceError> {
        let mut core = self.lock();
        self.check_self(&core.state)?;
        self.progress(&mut core);
        let seen = self.peek(&mut core, selector, members);
        drop(core);
        if seen == Ok(None) {
            self.note_empty_poll();
        }
        seen
    }

    fn peek(
        &self,
        core: &mut Core,
        selector: &Selector,
        members: &[u32],
    ) -> Result<Option<Probed>, DeviceError> {
        let find = |core: &mut Core| {
            let found = core.state.recv_queue.probe(selector);
            found.map(|(envelope, message)| Probed {
                envelope,
                size: message.needs_capacity(),
                first: message.first_section(),
            })
        };
        self.check_kept(&core.state, selector.context)?;
        if let Some(seen) = find(core) {
            return Ok(Some(seen));
        }
        let Some(error) = self.unsatisfiable(selector, members) else { return Ok(None) };
        self.poll_ended_peers(core);
        find(core).map(Some).ok_or(error)
    }

    /// Waits for a message without receiving it (MPI_Probe).
    ///
    /// # Errors
    /// As for [`probe_now`](Self::probe_now); interrupted.
    pub fn probe(
        &self,
        selector: &Selector,
        members: &[u32],
        wait_control: &mut dyn WaitControl,
    ) -> Result<Probed, DeviceError> {
        self.block(&[], None, Backoff::new(&self.config), wait_control, |core| {
            self.check_self(&core.state)?;
            self.peek(core, selector, members)
        })
    }

    /// Starts to receive the message that a receive with this selector would get, if it has arrived. Returns
    /// the request and the sender.
    ///
    /// # Errors
    /// As for [`probe_now`](Self::probe_now).
    pub(crate) fn receive_arrived(
        &self,
        selector: &Selector,
        capacity: usize,
    ) -> Result<Option<(RequestId, u32)>, DeviceError> {
        let mut core = self.lock();
        self.check_self(&core.state)?;
        self.progress(&mut core);
        let Some((envelope, message)) = core.state.recv_queue.take(selector) else {
            let seen = self.peek(&mut core, selector, &[]);
            drop(core);
            self.note_empty_poll();
            return seen.map(|_| None);
        };
        let receive = Receive { capacity, post: None, spare: None, accept: Accept::Packed, members: None };
        let id = core.state.requests.add(Work::Receive(receive));
        self.deliver_unexpected(&mut core.state, id, envelope, *message);
        self.fail_ended_receive(&mut core, id, Selector::from(envelope));
        self.wake_progress_thread_for(&mut core, id, Some(envelope.source));
        Ok(Some((id, envelope.source)))
    }
}
