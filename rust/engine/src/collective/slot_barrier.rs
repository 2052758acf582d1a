//! Barrier of ranks that publish their entry in slots.

use mpjdev_proto::collective::data_tag;
use mpjdev_transport::wait::WaitControl;

use super::exchange::{Exchange, Label};
use super::machine_run::send_unless_finished;
use super::outcome::Outcome;
use super::traffic::{capacity_of_ranks, pack};
use crate::comm::Comm;
use crate::error::DeviceError;
use crate::request::RequestId;

/// The barrier in progress.
#[derive(Debug)]
pub(super) struct SlotBarrier {
    comm: Comm,
    /// The tag of its messages and the number of its exchange, once this rank has entered.
    entered: Option<(i32, u64)>,
    /// The rank that this one waits for: those before it have entered.
    next: u32,
    /// The receive of its message, if it has no slots.
    posted: Option<RequestId>,
}

impl SlotBarrier {
    pub(super) fn new(comm: &Comm) -> SlotBarrier {
        SlotBarrier { comm: comm.clone(), entered: None, next: 0, posted: None }
    }

    fn exchange(&self) -> Result<Exchange<'_>, DeviceError> {
        let number = self.entered.map(|(_, number)| number);
        number.and_then(|number| self.comm.exchange(number)).ok_or(DeviceError::NoSuchRequest)
    }

    /// Publishes the entry of this rank.
    pub(super) fn enter(&mut self) -> Result<(), DeviceError> {
        let exchange = self.comm.begin_exchange().ok_or(DeviceError::NoSuchRequest)?;
        let tag = data_tag(self.comm.state().next_operation());
        let is_published = exchange.publish(Label::Barrier, &[]);
        self.entered = Some((tag, exchange.number()));
        if is_published {
            return Ok(());
        }
        let message = pack(self.comm.source(), &[])?;
        let own = self.comm.place();
        for dest in (0..self.members()).filter(|dest| *dest != own) {
            send_unless_finished(&self.comm, dest, tag, &message, false)?;
        }
        Ok(())
    }

    fn members(&self) -> u32 {
        self.comm.all_members().len() as u32
    }

    /// The rank that this one waits for; `None` when all have entered.
    fn awaited(&mut self) -> Option<u32> {
        if self.next == self.comm.place() {
            self.next += 1;
        }
        (self.next < self.members()).then_some(self.next)
    }

    /// Spins and yields for the other ranks. Returns false when one of them is not there in time.
    pub(super) fn poll(&mut self) -> Result<bool, DeviceError> {
        let mut has_woken = false;
        while let Some(source) = self.awaited() {
            let exchange = self.exchange()?;
            if !exchange.poll(source, &mut has_woken) {
                return Ok(false);
            }
            self.take(source)?;
        }
        Ok(true)
    }

    /// Takes the entry of a rank, which is there.
    fn take(&mut self, source: u32) -> Result<(), DeviceError> {
        self.cancel_posted();
        let label = self.exchange()?.label(source);
        self.pass(source, label == Some(Label::Barrier))
    }

    fn pass(&mut self, source: u32, is_barrier: bool) -> Result<(), DeviceError> {
        if !is_barrier {
            return Err(DeviceError::OtherOperation { rank: self.comm.all_members()[source as usize] });
        }
        self.next += 1;
        Ok(())
    }

    /// Advances as far as possible without blocking; returns the outcome when all ranks have entered.
    pub(super) fn advance(&mut self) -> Result<Option<Outcome>, DeviceError> {
        self.comm.check_going(false)?;
        if self.entered.is_none() {
            self.enter()?;
            self.exchange()?.wake_readers();
        }
        while let Some(source) = self.awaited() {
            if !self.advance_past(source)? {
                return Ok(None);
            }
        }
        Ok(Some(Outcome::Passed))
    }

    /// Whether a rank has entered.
    fn advance_past(&mut self, source: u32) -> Result<bool, DeviceError> {
        if self.exchange()?.is_there(source) {
            return self.take(source).map(|()| true);
        }
        let received = match (self.posted, self.entered) {
            (Some(id), _) => self.comm.test(id).map(|done| done.is_some()),
            (None, Some((tag, _))) => {
                let capacity = capacity_of_ranks(self.members() as usize);
                let posted = self.comm.receive_collective(source, tag, capacity, false);
                posted.map(|id| self.posted = Some(id)).map(|()| false)
            }
            (None, None) => Err(DeviceError::NoSuchRequest),
        };
        match received {
            Ok(false) => self.exchange()?.ended_member().map_or(Ok(false), Err),
            Ok(true) => {
                self.posted = None;
                let is_first = self.exchange()?.note_message(source);
                self.pass(source, is_first).map(|()| true)
            }
            // The rank may have entered before it ended.
            Err(_) if self.exchange()?.is_there(source) => {
                self.posted = None;
                self.take(source).map(|()| true)
            }
            Err(error) => {
                self.posted = None;
                Err(error)
            }
        }
    }

    /// Whether all ranks have entered.
    pub(super) fn is_complete(&self) -> bool {
        let own = self.comm.place();
        (self.next..self.members()).all(|rank| rank == own)
    }

    /// Waits until the barrier can advance. Blocks.
    pub(super) fn wait(&self, wait_control: &mut dyn WaitControl) -> Result<(), DeviceError> {
        match self.posted {
            Some(posted) => self.exchange()?.wait(self.next, posted, wait_control),
            None => Ok(()),
        }
    }

    fn cancel_posted(&mut self) {
        if let Some(id) = self.posted.take() {
            let _ = self.comm.cancel(id);
            self.comm.detach(id);
        }
    }
}

impl Drop for SlotBarrier {
    fn drop(&mut self) {
        // A receive of an abandoned barrier must not stay posted: it would take later messages.
        self.cancel_posted();
    }
}
