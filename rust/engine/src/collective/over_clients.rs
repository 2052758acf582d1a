//! The barrier of a world with foreign ranks (IMPI 13), in three stages: all ranks of the own client, the
//! masters of all clients, all ranks of the own client again.
//!
//! IMPI's message among masters has no contents, so a master that cannot continue cannot notify the other
//! clients. The ranks of its own client receive the error in their second barrier, which they hold in any
//! case.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mpjdev_proto::collective;
use mpjdev_proto::context::{WORLD, collective as collective_context};
use mpjdev_proto::envelope::Selector;
use mpjdev_proto::impi::barrier::{Action, Barrier};
use mpjdev_transport::wait::WaitControl;

use super::machine_run::MachineRun;
use super::outcome::Outcome;
use crate::clients::Clients;
use crate::comm::Comm;
use crate::error::DeviceError;
use crate::packet::PacketEngine;
use crate::request::RequestId;

/// The barrier in progress.
#[derive(Debug)]
pub(super) struct OverClients {
    comm: Comm,
    engine: Arc<PacketEngine>,
    /// The ranks of the own client.
    own: Range<u32>,
    stage: BarrierStage,
    /// The barrier of the own client, the first or the second.
    local: MachineRun,
    masters: Barrier,
    waiting: Option<Waiting>,
    /// The error of the masters' stage at this rank.
    failure: Option<DeviceError>,
    /// This is the job's last barrier.
    is_end: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BarrierStage {
    Before,
    Masters,
    After,
}

/// A master that this master waits for.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    source: u32,
    /// Its last heartbeat, if the wait for it can end. `since` is the time of the last change.
    heartbeat: Option<u64>,
    since: Instant,
}

impl OverClients {
    pub(super) fn new(
        comm: &Comm,
        engine: &Arc<PacketEngine>,
        clients: &Clients,
        is_end: bool,
    ) -> OverClients {
        let own = clients.own.clone();
        OverClients {
            comm: comm.clone(),
            engine: engine.clone(),
            stage: BarrierStage::Before,
            local: local_barrier(comm, own.clone(), None, is_end),
            own,
            masters: Barrier::new(&clients.masters, comm.rank(), clients.maxlinear),
            waiting: None,
            failure: None,
            is_end,
        }
    }

    /// Advances as far as possible without blocking.
    pub(super) fn advance(&mut self) -> Result<Option<Outcome>, DeviceError> {
        loop {
            match self.stage {
                BarrierStage::Before => {
                    if self.local.advance()?.is_none() {
                        return Ok(None);
                    }
                    self.masters.handle_local_done();
                    self.stage = BarrierStage::Masters;
                }
                BarrierStage::Masters => {
                    let ended = match self.advance_masters() {
                        Ok(false) => return Ok(None),
                        Ok(true) => None,
                        Err((rank, error)) => {
                            self.failure = Some(error);
                            Some(rank)
                        }
                    };
                    self.local = local_barrier(&self.comm, self.own.clone(), ended, self.is_end);
                    self.stage = BarrierStage::After;
                }
                BarrierStage::After => {
                    let passed = self.local.advance();
                    return match (passed, self.failure.take()) {
                        (Ok(None), failure) => {
                            self.failure = failure;
                            Ok(None)
                        }
                        (_, Some(failure)) => Err(failure),
                        (passed, None) => passed,
                    };
                }
            }
        }
    }

    /// Advances the masters' stage; true when it is complete for this rank.
    ///
    /// # Errors
    /// The rank that has ended or misbehaved, and the error.
    fn advance_masters(&mut self) -> Result<bool, (u32, DeviceError)> {
        let engine = self.engine.clone();
        loop {
            if let Some(waiting) = self.waiting {
                let source = waiting.source;
                let Some(len) = self.take(source).map_err(|error| named(source, error))? else {
                    self.check_timeout(waiting).map_err(|error| named(source, error))?;
                    return Ok(false);
                };
                self.waiting = None;
                self.masters.handle_received(source, len).map_err(|error| (source, error.into()))?;
            }
            match self.masters.poll_action() {
                Some(Action::Send { dest }) => {
                    let sent = engine.send_empty(dest, collective_context(WORLD), Barrier::TAG);
                    sent.map_err(|error| named(dest, error))?;
                }
                Some(Action::Receive { source }) => {
                    let heartbeat = self.heartbeat(source);
                    self.waiting = Some(Waiting { source, heartbeat, since: Instant::now() });
                }
                None => return Ok(true),
            }
        }
    }

    /// Octets of a master's message, once it has arrived.
    fn take(&self, source: u32) -> Result<Option<u64>, DeviceError> {
        let engine = &self.engine;
        engine.check_going(self.is_end)?;
        match engine.take_plain(&selector(source)) {
            // A foreign master that has finished waits for no rank.
            Err(DeviceError::PeerFinished { .. }) if self.is_end && engine.is_foreign(source) => Ok(Some(0)),
            // Other ranks wait for a failed rank, and this rank waits for them.
            Ok(None) => engine.first_failed().map_or(Ok(None), Err),
            taken => taken,
        }
    }

    /// Fails a foreign rank without a heartbeat at the end of the job. Ranks of this project are waited
    /// for without limit: they wait for such a rank themselves, or compute, or have failed, which is
    /// reported.
    fn check_timeout(&mut self, waiting: Waiting) -> Result<(), DeviceError> {
        let heartbeat = self.heartbeat(waiting.source);
        if heartbeat != waiting.heartbeat {
            self.waiting = Some(Waiting { heartbeat, since: Instant::now(), ..waiting });
            return Ok(());
        }
        let after = waiting.since.elapsed();
        match heartbeat.is_some() && after > self.engine.config().foreign_timeout {
            true => Err(DeviceError::NotAtBarrier { rank: waiting.source, after: whole_millis(after) }),
            false => Ok(()),
        }
    }

    /// The heartbeat of a rank whose absence can end the wait; `None` for others.
    fn heartbeat(&self, source: u32) -> Option<u64> {
        let engine = &self.engine;
        (self.is_end && engine.is_foreign(source)).then(|| engine.heartbeat_of(source))
    }

    /// Waits for a master, for a slice of time; `None` in the other stages.
    pub(super) fn wait(&self, wait_control: &mut dyn WaitControl) -> Option<Result<(), DeviceError>> {
        let Waiting { source, .. } = self.waiting.filter(|_| self.stage == BarrierStage::Masters)?;
        Some(self.engine.await_plain(&selector(source), wait_control))
    }

    /// Whether this rank has completed its part.
    pub(super) fn is_complete(&self) -> bool {
        self.stage == BarrierStage::After && self.local.is_complete()
    }

    /// Whether this is the job's last barrier.
    pub(super) fn is_end(&self) -> bool {
        self.is_end
    }

    /// Receives of the own client's barrier. One of them has to complete before the barrier advances.
    pub(super) fn pending(&self) -> Vec<RequestId> {
        self.local.pending()
    }
}

/// A barrier of the own client; `ended` is a rank that has ended.
fn local_barrier(comm: &Comm, own: Range<u32>, ended: Option<u32>, is_end: bool) -> MachineRun {
    let mut machine = collective::Barrier::among(own, comm.rank(), comm.size() as u32);
    ended.into_iter().for_each(|rank| machine.note_ended(rank));
    MachineRun::barrier(comm, machine, is_end)
}

/// The message that a master waits for.
fn selector(source: u32) -> Selector {
    Selector { context: collective_context(WORLD), source: Some(source), tag: Some(Barrier::TAG) }
}

/// An error with the rank to report to the others.
fn named(waited_for: u32, error: DeviceError) -> (u32, DeviceError) {
    match error {
        DeviceError::PeerFailed { rank, .. } | DeviceError::PeerFinished { rank } => (rank, error),
        error => (waited_for, error),
    }
}

fn whole_millis(time: Duration) -> Duration {
    Duration::from_millis(time.as_millis() as u64)
}
