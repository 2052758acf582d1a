//! States of the other ranks, which the transport reports.

use mpjdev_transport::PeerState;

use crate::error::DeviceError;
use crate::packet::engine::PacketEngine;

impl PacketEngine {
    /// The error of a rank that has finished or failed.
    pub(crate) fn peer_error(&self, rank: u32) -> Option<DeviceError> {
        match self.transport.peer(rank) {
            PeerState::Alive => None,
            PeerState::Finished => Some(DeviceError::PeerFinished { rank }),
            PeerState::Failed(why) => Some(DeviceError::PeerFailed { rank, why }),
        }
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
    pub(crate) fn reported_peer_error(&self, rank: u32) -> DeviceError {
        match self.transport.peer(rank) {
            PeerState::Failed(why) => DeviceError::PeerFailed { rank, why },
            PeerState::Alive if self.transport.is_foreign(rank) => {
                let why = "another rank of this site has given it up in a barrier".to_owned();
                DeviceError::PeerFailed { rank, why }
            }
            PeerState::Alive | PeerState::Finished => DeviceError::PeerFinished { rank },
        }
    }

    /// Records that this rank has seen the failure of another one.
    pub(crate) fn report_failed_peer(&self, rank: u32) {
        self.transport.report_failed_peer(rank);
    }

    /// Whether a rank belongs to another implementation.
    pub(crate) fn is_foreign(&self, rank: u32) -> bool {
        self.transport.is_foreign(rank)
    }

    /// The first of these ranks that is foreign.
    pub(crate) fn first_foreign(&self, ranks: &[u32]) -> Option<u32> {
        match self.has_remote() {
            true => ranks.iter().copied().find(|rank| self.transport.is_foreign(*rank)),
            false => None,
        }
    }

    /// A number that changes while a rank runs.
    pub(crate) fn heartbeat_of(&self, rank: u32) -> u64 {
        self.transport.heartbeat_of(rank)
    }
}
