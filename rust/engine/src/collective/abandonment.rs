//! Abandonment: a rank leaves a collective operation unfinished, and no other can follow on that
//! communicator.
//!
//! Messages of the other ranks for that operation remain, and the next operation would take them for its own.
//! So this rank refuses collective operations on the communicator from then on, and sends a notice to
//! each other member. A rank that waits in a collective operation polls for notices. It fails with a notice
//! and refuses from then on too. It sends no notices itself, since all members have received one.

use mpjdev_buffer::Message;
use mpjdev_proto::collective::ABANDONED_TAG;
use mpjdev_transport::wait::WaitControl;
use tracing::{info, warn};

use super::traffic::{pack, unpack};
use crate::abandonment::NOTICE_LEN;
use crate::comm::Comm;
use crate::engine::Engine;
use crate::error::DeviceError;
use crate::packet::PacketEngine;
use crate::request::RequestId;

/// The named rank was the first to leave an operation: mostly the sender itself.
const LEFT: u32 = 0;
/// The named rank has finished or failed.
const FINISHED: u32 = 1;
const FAILED: u32 = 2;

impl Comm {
    /// Checks that a collective operation may start.
    ///
    /// # Errors
    /// One was abandoned, here or by another member; this rank has finished, or the job has failed.
    pub(super) fn check_collectives(&self, is_end: bool) -> Result<(), DeviceError> {
        if let Some(error) = self.abandonment().error() {
            self.check_going(is_end)?;
            return Err(error.clone());
        }
        self.check_abandonment()?.map_or(Ok(()), Err)
    }

    /// Checks that this rank may communicate, and that a collective operation may start. One in which this
    /// rank `receives` polls for notices while it waits.
    ///
    /// # Errors
    /// As for [`check_collectives`](Self::check_collectives).
    pub(super) fn check_next_collective(&self, receives: bool) -> Result<(), DeviceError> {
        let is_sure = |engine: &PacketEngine| {
            receives && self.abandonment().error().is_none() && engine.is_undisturbed()
        };
        match self.packet_engine() {
            Some(engine) if is_sure(engine) => Ok(()),
            _ => {
                self.check_going(false)?;
                self.check_collectives(false)
            }
        }
    }

    /// Polls for a notice. Returns the error of all further collective operations if one has arrived. Does
    /// not block.
    ///
    /// # Errors
    /// This rank has finished, or the job has failed.
    pub(super) fn check_abandonment(&self) -> Result<Option<DeviceError>, DeviceError> {
        let notice = self.engine().take_abandonment(self.context(), self.abandonment())?;
        let Some((rank, message)) = notice else { return Ok(None) };
        if self.all_members().first() == Some(&rank) {
            self.abandonment().note_root_left();
        }
        let noticed = || {
            let noticed = message.and_then(|message| self.parse_notice(message, rank));
            noticed.unwrap_or_else(|| left_by(rank))
        };
        let error = self.abandonment().error_or(noticed).clone();
        let (own, context) = (self.world_rank(), self.context());
        info!(
            target: "mpjdev::collective", rank = own, peer = rank, context, %error,
            "member has abandoned a collective operation"
        );
        Ok(Some(error))
    }

    /// The error that a notice carries; `None` if the notice is malformed.
    fn parse_notice(&self, notice: Message, sender: u32) -> Option<DeviceError> {
        let octets = unpack(self.source(), notice, NOTICE_LEN).ok()?;
        let (kind, rank) = octets.split_first_chunk::<4>()?;
        let rank = u32::from_be_bytes(rank.try_into().ok()?);
        if !self.all_members().contains(&rank) {
            return None;
        }
        match u32::from_be_bytes(*kind) {
            FINISHED => Some(DeviceError::PeerFinished { rank }),
            FAILED => Some(self.peer_error(rank).unwrap_or_else(|| {
                // This rank may end because of it, and the launcher selects the rank that has not reported a
                // failed peer.
                if let Some(endpoint) = self.packet_engine() {
                    endpoint.report_failed_peer(rank);
                }
                let why = format!("rank {sender} has noticed it in a collective operation");
                DeviceError::PeerFailed { rank, why }
            })),
            LEFT => Some(left_by(rank)),
            _ => None,
        }
    }

    /// Whether rank 0 of this communicator has left a collective operation unfinished. Does not block.
    #[cfg(not(loom))]
    pub(super) fn has_root_left(&self) -> bool {
        let _ = self.check_abandonment();
        self.abandonment().has_root_left()
    }

    /// Ends collective operations on this communicator because this rank has left one unfinished, with this
    /// error or because its thread left it. Notifies the other members. Does not block.
    pub(crate) fn abandon(&self, cause: Option<&DeviceError>) {
        let error = match cause {
            Some(error @ (DeviceError::PeerFailed { .. } | DeviceError::PeerFinished { .. })) => {
                error.clone()
            }
            // The first rank that left has notified all members. Only rank 0's own notice states that it
            // decides nothing any more.
            Some(error @ DeviceError::Abandoned { .. }) if self.place() == 0 => {
                return self.notify_abandonment(error);
            }
            Some(DeviceError::Abandoned { .. }) => return,
            cause => {
                let why = cause.map_or("its thread was interrupted".to_owned(), ToString::to_string);
                DeviceError::Abandoned { rank: self.world_rank(), why }
            }
        };
        self.leave(error);
    }

    /// The error of collective operations on this communicator, if one was abandoned.
    pub(super) fn abandoned(&self) -> Option<&DeviceError> {
        self.abandonment().error()
    }

    /// Ends collective operations on this communicator with this error, and notifies the other members.
    pub(super) fn leave(&self, error: DeviceError) {
        // A second operation that ran at the same time, against the rules, has notified the others already.
        if self.abandonment().set_error(error.clone()) {
            let (rank, context) = (self.world_rank(), self.context());
            warn!(target: "mpjdev::collective", rank, context, %error, "collective operation is abandoned");
            self.notify_abandonment(&error);
        }
    }

    fn notify_abandonment(&self, error: &DeviceError) {
        let (kind, rank) = match error {
            DeviceError::PeerFinished { rank } => (FINISHED, *rank),
            DeviceError::PeerFailed { rank, .. } => (FAILED, *rank),
            DeviceError::Abandoned { rank, .. } => (LEFT, *rank),
            _ => (LEFT, self.world_rank()),
        };
        let octets = [kind.to_be_bytes(), rank.to_be_bytes()].concat();
        let Ok(message) = pack(self.source(), &octets) else { return };
        let members = self.all_members();
        for dest in (0..members.len() as u32).filter(|dest| *dest != self.place()) {
            if self.packet_engine().is_some_and(|e| e.is_foreign(members[dest as usize])) {
                continue;
            }
            // A notice that finds no room is queued. It fails if the member has finished or failed, which the
            // others notice themselves, or past the bound on unmatched messages of collective operations.
            let _ = self.send_collective(dest, ABANDONED_TAG, &message, false);
        }
    }

    /// The error of a world rank that has finished or failed.
    fn peer_error(&self, rank: u32) -> Option<DeviceError> {
        self.engine().peer_error(rank)
    }

    /// Waits until one of these receives of a collective operation is complete, or a notice has arrived.
    /// Blocks.
    ///
    /// # Errors
    /// Interrupted.
    pub(super) fn wait_collective(
        &self,
        pending: &[RequestId],
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        self.engine().wait_collective(self.context(), pending, self.abandonment(), wait_control)
    }

    /// As [`wait_collective`](Self::wait_collective) for one receive, or until `is_there`, over the packet
    /// engine.
    pub(super) fn wait_collective_or(
        &self,
        pending: RequestId,
        is_there: &mut dyn FnMut() -> bool,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        let Some(engine) = self.packet_engine() else { return Err(DeviceError::NoSuchRequest) };
        let arriving = self.abandonment().arriving().map(|(id, _)| id);
        let ids: Vec<_> = [pending].into_iter().chain(arriving).collect();
        engine.wait_collective_or(self.context(), &ids, is_there, wait_control)
    }
}

/// The error at ranks that have not left the operation themselves.
fn left_by(rank: u32) -> DeviceError {
    let why = "it was interrupted there, or failed; its own exception says more".to_owned();
    DeviceError::Abandoned { rank, why }
}
