//! The IMPI clients of a job with foreign ranks, and the barrier of all of its ranks.

use std::ops::Range;
use std::sync::Arc;

use mpjdev_proto::envelope::Selector;
use mpjdev_proto::impi::barrier::Masters;
use mpjdev_transport::wait::WaitControl;
use mpjdev_transport::{Header, Payload, PeerState};

use crate::comm::Comm;
use crate::error::DeviceError;
use crate::operation::Mode;
use crate::packet::engine::{Core, PacketEngine};
use crate::packet::send::send;

/// The ranks of each client of IMPI, as seen by a rank of this project.
#[derive(Clone, Debug)]
pub struct Clients {
    /// The first ranks of all clients.
    pub masters: Masters,
    /// The number of masters up to which their barrier is linear.
    pub maxlinear: u32,
    /// The ranks of this rank's client. All of them belong to this project.
    pub own: Range<u32>,
}

impl Clients {
    /// The clients as seen by `rank`. `clients` names the client of each rank of the world; the ranks of a
    /// client are contiguous (IMPI 5.5). `maxlinear` is the job's C_COLL_MAXLINEAR.
    ///
    /// # Panics
    /// The world has no such rank.
    #[must_use]
    pub fn new(rank: u32, clients: &[u32], maxlinear: u32) -> Clients {
        let client = clients[rank as usize];
        let first = clients.iter().position(|other| *other == client).unwrap_or(0) as u32;
        let count = clients.iter().filter(|other| **other == client).count() as u32;
        Clients {
            masters: Masters::of_clients(clients.iter().copied()),
            maxlinear,
            own: first..first + count,
        }
    }
}

impl Comm {
    /// The world rank of the first member that is foreign; `None` without foreign members.
    pub(crate) fn first_foreign(&self) -> Option<u32> {
        let endpoint = self.packet_engine()?;
        match endpoint.remote.is_empty() {
            true => None,
            false => self.members().iter().copied().find(|member| endpoint.transport.is_foreign(*member)),
        }
    }
}

impl PacketEngine {
    /// Sets the clients of a job with foreign ranks that have a barrier with the ranks of this project.
    #[cfg(not(loom))]
    pub fn set_clients(&self, clients: Clients) {
        let _ = self.clients.set(clients);
    }

    pub(crate) fn clients(&self) -> Option<&Clients> {
        self.clients.get()
    }

    /// Runs the barrier that ends a job with foreign ranks. Blocks.
    pub(crate) fn end_together(
        self: &Arc<Self>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        Comm::world(self.clone()).start_last_barrier().finish(wait_control).map(drop)
    }

    /// Sends a message without octets, and does not wait for its completion. Such a message has no headers of
    /// the mpjdev format.
    pub(crate) fn send_empty(&self, dest: u32, context: u64, tag: i32) -> Result<(), DeviceError> {
        let plan = self.plan_send(dest, 0, Mode::Standard, 0);
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
    pub(crate) fn take_plain(
        &self,
        core: &mut Core,
        selector: &Selector,
    ) -> Result<Option<u64>, DeviceError> {
        self.progress(core);
        if let Some(len) = self.take_plain_here(core, selector) {
            return len.map(Some);
        }
        let Some(error) = self.unsatisfiable(selector, &[]) else { return Ok(None) };
        self.poll_ended_peers(core);
        self.take_plain_here(core, selector).unwrap_or(Err(error)).map(Some)
    }

    fn take_plain_here(&self, core: &mut Core, selector: &Selector) -> Option<Result<u64, DeviceError>> {
        let (envelope, message) = core.state.matcher.take(selector)?;
        let payload = self.take_unexpected(&mut core.state, envelope, *message, 0);
        Some(payload.map(|payload| payload.len() as u64).map_err(DeviceError::from))
    }

    /// A failed rank of the world, with the reason.
    pub(crate) fn first_failed(&self) -> Option<DeviceError> {
        if self.transport.epoch() == 0 {
            return None;
        }
        (0..self.size).find_map(|rank| match self.transport.peer(rank) {
            PeerState::Failed(why) => Some(DeviceError::PeerFailed { rank, why }),
            PeerState::Alive | PeerState::Finished => None,
        })
    }

    /// The error of a rank that another rank has reported as ended.
    pub(crate) fn lost(&self, rank: u32) -> DeviceError {
        match self.transport.peer(rank) {
            PeerState::Failed(why) => DeviceError::PeerFailed { rank, why },
            PeerState::Alive if self.transport.is_foreign(rank) => {
                let why = "another rank of this site has given it up in a barrier".to_owned();
                DeviceError::PeerFailed { rank, why }
            }
            PeerState::Alive | PeerState::Finished => DeviceError::PeerFinished { rank },
        }
    }
}
