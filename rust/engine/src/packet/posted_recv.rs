//! Posted receives: their start, their blocking form, and their failure when a source has ended.

use std::sync::Arc;
use std::time::Duration;

use mpjdev_buffer::{Message, Slab};
use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_proto::matching::Posted;
use mpjdev_transport::wait::{Backoff, Uninterruptible, WaitControl, deadline_after};

use crate::error::DeviceError;
use crate::operation::{Accept, FastRecv, StartedRecv, received};
use crate::packet::engine::{Core, PacketEngine, State};
use crate::packet::requests::{Receive, Work};
use crate::request::{Completed, RequestId};

/// Time that an interrupted receive still waits for the rest of its message.
pub(crate) const SECOND_HALF_TIMEOUT: Duration = Duration::from_secs(1);

/// The arguments of a posted receive.
#[derive(Clone, Debug)]
pub struct ReceiveArgs {
    /// The envelope pattern; the source is numbered in the world.
    pub selector: Selector,
    /// Octets of primary payload that the receiver has room for.
    pub capacity: usize,
    /// Memory without another reference, for a copy of a small message.
    pub spare: Option<Slab>,
    /// World ranks of the communicator for a receive from any source: it fails when no other member is left.
    pub members: Option<Arc<[u32]>>,
}

impl PacketEngine {
    /// Posts a receive, unless its message has arrived: the request is complete then.
    ///
    /// # Errors
    /// This rank has finished or has freed the communicator; the job has failed.
    pub fn irecv(&self, mut args: ReceiveArgs) -> Result<RequestId, DeviceError> {
        let mut core = self.lock();
        self.check_self(&core.state)?;
        self.check_kept(&core.state, args.selector.context)?;
        let mut place = args.spare.take().map(Message::from_empty_slab);
        let taken = self.take_arrived(&mut core, args.selector, args.capacity, &mut place, true);
        if !matches!(taken, FastRecv::Done(_)) {
            args.spare = place.take().map(Message::into_slab);
        }
        self.post_or_complete(&mut core, args, &mut place, taken)
    }

    /// Starts a receive as [`irecv`](Self::irecv) does. A message that has arrived and that `accepts` takes
    /// is stored in `place`, and no request is made.
    ///
    /// # Errors
    /// As for [`irecv`](Self::irecv). The failure of a message is the outcome of the request.
    #[inline(always)]
    pub fn irecv_into(
        &self,
        args: ReceiveArgs,
        place: &mut Option<Message>,
        accepts: &dyn Fn(&Message) -> bool,
    ) -> Result<StartedRecv<Envelope>, DeviceError> {
        let mut core = self.lock();
        self.check_self(&core.state)?;
        self.check_kept(&core.state, args.selector.context)?;
        match self.take_arrived_into(&mut core, args.selector, args.capacity, place) {
            FastRecv::Done(envelope) if place.as_ref().is_some_and(accepts) => {
                Ok(StartedRecv::Received(envelope))
            }
            other => self.post_or_complete(&mut core, args, place, other).map(StartedRecv::Posted),
        }
    }

    /// Makes the request of a receive: complete if its message was taken, and posted otherwise.
    #[inline(never)]
    fn post_or_complete(
        &self,
        core: &mut Core,
        args: ReceiveArgs,
        place: &mut Option<Message>,
        taken: FastRecv,
    ) -> Result<RequestId, DeviceError> {
        let outcome = match taken {
            FastRecv::Done(envelope) => {
                let message = place.take().ok_or(DeviceError::NoSuchRequest)?;
                Ok(received(envelope, message))
            }
            FastRecv::Failed(error) => Err(*error),
            _ => {
                let source = args.selector.source;
                let id = self.irecv_unchecked_locked(core, args);
                self.wake_progress_thread_for(core, id, source);
                return Ok(id);
            }
        };
        Ok(core.state.requests.add_complete_receive(args.capacity, outcome))
    }

    /// Wakes the progress thread for a pending receive, since the program may compute from now on. Ranks that
    /// share memory need none.
    #[inline]
    pub(crate) fn wake_progress_thread_for(&self, core: &mut Core, id: RequestId, source: Option<u32>) {
        if self.has_remote()
            && source.is_none_or(|source| self.is_remote(source))
            && core.state.requests.get(id).is_some_and(|request| request.outcome.is_none())
        {
            self.transport.kick_progress_thread(self.rank);
        }
    }

    fn irecv_locked(&self, core: &mut Core, args: ReceiveArgs) -> Result<RequestId, DeviceError> {
        self.check_self(&core.state)?;
        self.check_kept(&core.state, args.selector.context)?;
        Ok(self.irecv_unchecked_locked(core, args))
    }

    /// [`irecv`](Self::irecv) without its checks: this rank may have begun to finish.
    pub(crate) fn irecv_unchecked(&self, args: ReceiveArgs) -> RequestId {
        self.irecv_unchecked_locked(&mut self.lock(), args)
    }

    fn irecv_unchecked_locked(&self, core: &mut Core, args: ReceiveArgs) -> RequestId {
        self.progress(core);
        let selector = args.selector;
        let id = self.post(&mut core.state, args);
        self.fail_ended_receive(core, id, selector);
        id
    }

    /// Fails a receive whose source had ended before the receive was posted: the source of its message or,
    /// after its first half, that of the second.
    pub(crate) fn fail_ended_receive(&self, core: &mut Core, id: RequestId, selector: Selector) {
        if self.transport.epoch() == 0 {
            return;
        }
        let selector = core.state.recv_queue.partial(id).unwrap_or(selector);
        if let Some(Work::Receive(receive)) = core.state.requests.get(id).map(|r| &r.work)
            && let Some(error) = self.unsatisfiable_receive(&selector, receive.members())
        {
            self.fail_requests(core, vec![(id, error)]);
        }
    }

    fn post(&self, state: &mut State, args: ReceiveArgs) -> RequestId {
        let ReceiveArgs { selector, capacity, spare, members } = args;
        let receive = Receive { capacity, post: None, spare, accept: Accept::Packed, members };
        let id = state.requests.add(Work::Receive(receive));
        match state.recv_queue.post(selector, id) {
            Posted::Matched { envelope, message, .. } => {
                self.deliver_unexpected(state, id, envelope, *message);
            }
            Posted::Waiting(post) => {
                if let Some(Work::Receive(receive)) = state.requests.get(id).map(|r| &mut r.work) {
                    receive.post = Some(post);
                }
            }
        }
        id
    }

    /// Receives a message that the [fast path](Self::try_recv_polling) has not taken.
    ///
    /// # Errors
    /// The receive failed; interrupted: the receive is withdrawn then, unless its message has arrived, which
    /// is returned.
    pub fn recv_posted(
        &self,
        fast: &FastRecv,
        args: ReceiveArgs,
        accept: Accept,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(Envelope, Message), DeviceError> {
        let backoff = match fast {
            FastRecv::Empty => Backoff::after_pauses(&self.config),
            _ => Backoff::new(&self.config),
        };
        self.recv_posted_with(args, accept, backoff, wait_control)
    }

    fn recv_posted_with(
        &self,
        args: ReceiveArgs,
        accept: Accept,
        backoff: Backoff,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(Envelope, Message), DeviceError> {
        let (id, there) = self.post_and_poll(args, accept)?;
        let completed = match there {
            Some(outcome) => outcome?,
            None => self.await_receive(id, accept, backoff, wait_control)?,
        };
        match (completed.envelope, completed.message) {
            (Some(envelope), Some(message)) => Ok((envelope, message)),
            _ => Err(DeviceError::NoSuchRequest),
        }
    }

    /// Posts a receive and takes its outcome at once if its message has arrived.
    fn post_and_poll(
        &self,
        args: ReceiveArgs,
        accept: Accept,
    ) -> Result<(RequestId, Option<Result<Completed, DeviceError>>), DeviceError> {
        let mut core = self.lock();
        let id = self.irecv_locked(&mut core, args)?;
        if let Some(Work::Receive(receive)) = core.state.requests.get(id).map(|r| &mut r.work) {
            receive.accept = accept;
        }
        let there = core.state.requests.take_accepted(id, accept)?;
        Ok((id, there))
    }

    fn await_receive(
        &self,
        id: RequestId,
        accept: Accept,
        backoff: Backoff,
        wait_control: &mut dyn WaitControl,
    ) -> Result<Completed, DeviceError> {
        let done = self
            .block(&[id], None, backoff, wait_control, |core| core.state.requests.take_accepted(id, accept));
        match done.and_then(|done| done) {
            Err(DeviceError::Interrupted) if self.cancel(id)? => {
                let _ = self.test(id);
                Err(DeviceError::Interrupted)
            }
            // The message is matched, so it cannot be withdrawn: it has arrived, or its second half is in
            // flight. If the second half does not arrive in time, it is consumed later and the message is
            // lost.
            Err(DeviceError::Interrupted) => {
                match self.wait(id, deadline_after(SECOND_HALF_TIMEOUT), &mut Uninterruptible) {
                    Err(DeviceError::TimedOut { .. }) => {
                        self.detach(id);
                        Err(DeviceError::Interrupted)
                    }
                    other => other,
                }
            }
            other => other,
        }
    }
}
