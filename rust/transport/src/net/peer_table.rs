//! Peer table of a rank: the states, credits and heartbeats of the other ranks.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use mpjdev_sys::sync::{LockRank, Mutex};

use super::control::ControlMessage;
use super::peer_fault::PeerFault;
use crate::{PeerState, StatusReporter};

/// Shortest time between two requests for a heartbeat.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// States, credits and heartbeats of the other ranks, by rank.
#[derive(Debug)]
pub(in super::super) struct PeerTable {
    states: Vec<OnceLock<PeerState>>,
    epoch: AtomicU32,
    abort: OnceLock<(u32, String)>,
    /// Octets that each rank has matched, as it reported.
    matched: Vec<AtomicU64>,
    /// Heartbeats.
    heartbeats: Vec<AtomicU64>,
    asked: Mutex<Option<Instant>>,
    /// Receiver of status reports; none without a launcher.
    reporter: OnceLock<Arc<dyn StatusReporter>>,
}

/// Action that a control message requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Reaction {
    Nothing,
    /// The sender requests a heartbeat.
    Heartbeat,
    /// The state of a rank has changed, and waiting threads must check it.
    Wake,
}

impl PeerTable {
    pub(in super::super) fn new(ranks: usize) -> PeerTable {
        let numbers = || (0..ranks).map(|_| AtomicU64::new(0)).collect();
        PeerTable {
            states: (0..ranks).map(|_| OnceLock::new()).collect(),
            epoch: AtomicU32::new(0),
            abort: OnceLock::new(),
            matched: numbers(),
            heartbeats: numbers(),
            asked: Mutex::new(LockRank::Leaf, None),
            reporter: OnceLock::new(),
        }
    }

    /// Sets the receiver of status reports. The first call wins.
    pub(in super::super) fn report_to(&self, reporter: Arc<dyn StatusReporter>) {
        let _ = self.reporter.set(reporter);
    }

    /// Reports a failed peer to the launcher.
    pub(in super::super) fn report_failed_peer(&self, rank: u32) {
        if let Some(reporter) = self.reporter.get() {
            reporter.report_failed_peer(rank);
        }
    }

    /// Records the final state of a rank. The first record stays.
    pub(in super::super) fn set(&self, rank: u32, state: PeerState) {
        let _ = self.states[rank as usize].set(state);
    }

    /// Records that a rank has failed, unless it has another final state. The launcher is notified before
    /// this rank acts on it, because this rank may end as a consequence.
    pub(in super::super) fn set_failed(&self, rank: u32, why: &str) {
        if self.states[rank as usize].get().is_none() {
            self.report_failed_peer(rank);
        }
        self.set(rank, PeerState::Failed(why.to_owned()));
    }

    /// Records that this rank has finished, and notifies the launcher unless the rank had failed.
    pub(in super::super) fn finish(&self, own: u32) {
        self.set(own, PeerState::Finished);
        if self.abort().is_none_or(|(rank, _)| *rank != own)
            && let Some(reporter) = self.reporter.get()
        {
            reporter.mark_finished();
        }
    }

    /// Handles a control message from one of our own ranks. Returns the action that it requires.
    ///
    /// # Errors
    /// No control message has this tag and length.
    pub(in super::super) fn handle(&self, rank: u32, tag: i32, octets: &[u8]) -> Result<Reaction, PeerFault> {
        match ControlMessage::parse(tag, octets) {
            Some(ControlMessage::Credit(octets)) => self.set_matched(rank, octets),
            Some(ControlMessage::HeartbeatRequest) => return Ok(Reaction::Heartbeat),
            Some(ControlMessage::Heartbeat(calls)) => self.set_heartbeat(rank, calls),
            Some(ControlMessage::JobFailed(why)) => {
                self.report_failed_peer(rank);
                if self.set_abort(rank, why) {
                    return Ok(Reaction::Wake);
                }
            }
            None => return Err(PeerFault::Control { len: octets.len(), tag }),
        }
        Ok(Reaction::Nothing)
    }

    /// Publishes a change of some state.
    pub(in super::super) fn note_change(&self) {
        self.epoch.fetch_add(1, SeqCst);
    }

    /// A number that changes with every state.
    pub(in super::super) fn epoch(&self) -> u32 {
        self.epoch.load(Acquire)
    }

    pub(in super::super) fn peer(&self, rank: u32) -> PeerState {
        match (self.abort.get(), self.states[rank as usize].get()) {
            (Some((failed, why)), _) if *failed == rank => PeerState::Failed(why.clone()),
            (_, Some(state)) => state.clone(),
            (_, None) => PeerState::Alive,
        }
    }

    /// Records that a rank has failed, and the job with it. Returns whether this is the first failure.
    pub(in super::super) fn set_abort(&self, rank: u32, why: String) -> bool {
        self.abort.set((rank, why)).is_ok()
    }

    pub(in super::super) fn abort(&self) -> Option<&(u32, String)> {
        self.abort.get()
    }

    pub(in super::super) fn set_matched(&self, rank: u32, octets: u64) {
        self.matched[rank as usize].store(octets, Release);
    }

    pub(in super::super) fn matched(&self, rank: u32) -> u64 {
        self.matched[rank as usize].load(Acquire)
    }

    /// Records a heartbeat of a rank. Every caller holds the rank's lock.
    pub(in super::super) fn record_heartbeat(&self, rank: u32) {
        let heartbeat = &self.heartbeats[rank as usize];
        heartbeat.store(heartbeat.load(Relaxed) + 1, Relaxed);
    }

    /// Records the heartbeat that a rank has reported: the number of its program's calls.
    pub(in super::super) fn set_heartbeat(&self, rank: u32, calls: u64) {
        self.heartbeats[rank as usize].store(calls, Relaxed);
    }

    pub(in super::super) fn heartbeat_of(&self, rank: u32) -> u64 {
        self.heartbeats[rank as usize].load(Relaxed)
    }

    /// The ranks to request a heartbeat from now.
    pub(in super::super) fn heartbeats_due(&self) -> impl Iterator<Item = u32> {
        let mut asked = self.asked.lock();
        let is_time = asked.is_none_or(|asked| asked.elapsed() >= ASK_EVERY);
        if is_time {
            *asked = Some(Instant::now());
        }
        let ranks = if is_time { self.states.len() as u32 } else { 0 };
        (0..ranks).filter(|peer| self.peer(*peer) == PeerState::Alive)
    }
}
