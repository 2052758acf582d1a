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

/// The entry of this rank into a barrier: the tag of its messages, and the number of the exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    tag: i32,
    number: u64,
}

impl Entry {
    /// Publishes the entry of this rank.
    pub(super) fn publish(comm: &Comm) -> Result<Entry, DeviceError> {
        let exchange = comm.begin_exchange().ok_or(DeviceError::NoSuchRequest)?;
        let tag = data_tag(comm.state().next_operation());
        let entry = Entry { tag, number: exchange.number() };
        if exchange.publish(Label::Barrier, &[]) {
            return Ok(entry);
        }
        let message = pack(comm.source(), &[])?;
        let (own, members) = (comm.place(), comm.all_members().len() as u32);
        for dest in (0..members).filter(|dest| *dest != own) {
            send_unless_finished(comm, dest, tag, &message, false)?;
        }
        Ok(entry)
    }

    /// Spins and yields for the other ranks. Returns the first one that is not there in time.
    pub(super) fn poll(self, comm: &Comm) -> Result<Option<u32>, DeviceError> {
        let exchange = self.exchange(comm)?;
        let (own, mut has_woken) = (comm.place(), false);
        for source in (0..comm.all_members().len() as u32).filter(|source| *source != own) {
            if !exchange.poll(source, &mut has_woken) {
                return Ok(Some(source));
            }
            check_label(exchange, source)?;
        }
        Ok(None)
    }

    fn exchange(self, comm: &Comm) -> Result<Exchange<'_>, DeviceError> {
        comm.exchange(self.number).ok_or(DeviceError::NoSuchRequest)
    }
}

/// Checks that a rank that has published takes part in a barrier.
fn check_label(exchange: Exchange<'_>, source: u32) -> Result<(), DeviceError> {
    match exchange.label(source) {
        Some(Label::Barrier) => Ok(()),
        _ => Err(exchange.other_operation(source)),
    }
}

/// The barrier in progress.
#[derive(Debug)]
pub(super) struct SlotBarrier {
    comm: Comm,
    /// The entry of this rank, once it has entered.
    entry: Option<Entry>,
    /// The rank that this one waits for: those before it have entered.
    next: u32,
    /// The receive of its message, if it has no slots.
    posted: Option<RequestId>,
}

impl SlotBarrier {
    pub(super) fn new(comm: &Comm) -> SlotBarrier {
        SlotBarrier { comm: comm.clone(), entry: None, next: 0, posted: None }
    }

    /// A barrier that this rank has entered, and all ranks before `next`.
    pub(super) fn awaiting(comm: &Comm, entry: Entry, next: u32) -> SlotBarrier {
        SlotBarrier { comm: comm.clone(), entry: Some(entry), next, posted: None }
    }

    fn exchange(&self) -> Result<Exchange<'_>, DeviceError> {
        self.entry.ok_or(DeviceError::NoSuchRequest)?.exchange(&self.comm)
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

    /// Takes the entry of a rank, which is there.
    fn take(&mut self, source: u32) -> Result<(), DeviceError> {
        self.cancel_posted();
        check_label(self.exchange()?, source)?;
        self.next += 1;
        Ok(())
    }

    /// Advances as far as possible without blocking; returns the outcome when all ranks have entered.
    pub(super) fn advance(&mut self) -> Result<Option<Outcome>, DeviceError> {
        self.comm.check_going(false)?;
        if self.entry.is_none() {
            self.entry = Some(Entry::publish(&self.comm)?);
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
        let received = match (self.posted, self.entry) {
            (Some(id), _) => self.comm.test(id).map(|done| done.is_some()),
            (None, Some(Entry { tag, .. })) => {
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
                let exchange = self.exchange()?;
                if !exchange.note_message(source) {
                    return Err(exchange.other_operation(source));
                }
                self.next += 1;
                Ok(true)
            }
            // The rank may have entered before it ended.
            Err(_) if self.exchange()?.is_there(source) => {
                self.posted = None;
                self.take(source).map(|()| true)
            }
            Err(error) => {
                self.posted = None;
                Err(match error {
                    // No message of a barrier is as long.
                    DeviceError::Truncated { .. } | DeviceError::Damaged { .. } => {
                        self.exchange()?.other_operation(source)
                    }
                    error => error,
                })
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
