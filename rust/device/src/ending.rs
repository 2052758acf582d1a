//! How operations end that nobody can complete any more, and how a rank ends.

use std::sync::atomic::Ordering;
use std::time::Instant;

use mpjdev_proto::envelope::Selector;

use crate::endpoint::{Endpoint, State};
use crate::error::DeviceError;
use crate::requests::Work;
use crate::transport::PeerState;
use crate::waiting::Patience;

impl Endpoint {
    pub(crate) fn check_self(&self, state: &State) -> Result<(), DeviceError> {
        if state.finished {
            return Err(DeviceError::Finished { rank: self.rank });
        }
        match self.wire.epoch() {
            0 => Ok(()),
            _ => self.wire.abort().map_or(Ok(()), |(rank, why)| Err(DeviceError::PeerFailed { rank, why })),
        }
    }

    #[cold]
    pub(crate) fn check_peer(&self, dest: u32) -> Result<(), DeviceError> {
        self.check_self(&self.lock().state)?;
        match self.wire.peer(dest) {
            PeerState::Alive => Ok(()),
            PeerState::Finished => Err(DeviceError::PeerFinished { rank: dest }),
            PeerState::Failed(why) => Err(DeviceError::PeerFailed { rank: dest, why }),
        }
    }

    /// Why no message can come any more that such a receive would take; none as long as one can.
    pub(crate) fn hopeless(&self, selector: &Selector, members: &[u32]) -> Option<DeviceError> {
        if let Some((rank, why)) = self.wire.abort() {
            return Some(DeviceError::PeerFailed { rank, why });
        }
        match selector.source {
            Some(rank) => match self.wire.peer(rank) {
                PeerState::Alive => None,
                PeerState::Finished => Some(DeviceError::PeerFinished { rank }),
                PeerState::Failed(why) => Some(DeviceError::PeerFailed { rank, why }),
            },
            None => {
                let mut others = members.iter().filter(|m| **m != self.rank).peekable();
                others.peek()?;
                let all_gone = others.all(|m| self.wire.peer(*m) != PeerState::Alive);
                all_gone.then_some(DeviceError::NobodyLeft)
            }
        }
    }

    /// Fails every operation that nobody can complete any more.
    #[cold]
    pub(crate) fn fail_hopeless(&self, state: &mut State) {
        let mut failed = Vec::new();
        let requests = &mut state.requests;
        let _ = state.matcher.fail_posted(|selector, id| {
            let Some(Work::Receive(receive)) = requests.get(*id).map(|r| &r.work) else { return false };
            match self.hopeless(selector, &receive.members) {
                Some(error) => {
                    failed.push((*id, error));
                    true
                }
                None => false,
            }
        });
        failed.extend(self.hopeless_halves(state));
        let sends = state.requests.pending().filter_map(|(id, request)| match request.work {
            Work::Send { dest, .. } => {
                let selector = Selector { context: 0, source: Some(dest), tag: None };
                self.hopeless(&selector, &[]).map(|error| (id, error))
            }
            Work::Receive(_) => None,
        });
        failed.extend(sends.collect::<Vec<_>>());
        let dropped = state.outbox.drop_to(|dest| self.wire.peer(dest) != PeerState::Alive);
        self.queued_count.fetch_sub(dropped, Ordering::Release);
        for (id, error) in failed {
            self.complete(state, id, Err(error));
        }
    }

    /// Ends this rank: waits until what it has sent has left or is matched, as long as the peers it needs show life.
    ///
    /// A second call does nothing.
    ///
    /// # Errors
    /// What was not delivered within the patience; this rank has finished all the same.
    pub fn finish(&self, patience: &mut dyn Patience) -> Result<(), DeviceError> {
        if std::mem::replace(&mut self.lock().state.finished, true) {
            return Ok(());
        }
        let mut lives: Vec<u64> = Vec::new();
        let mut since = Instant::now();
        let result = loop {
            let soon = Instant::now() + self.config.slice;
            let left = self.block(&[], Some(soon), patience, |core| {
                let sends = core.state.requests.pending().any(|(_, r)| matches!(r.work, Work::Send { .. }));
                Ok((!sends && core.state.outbox.is_empty()).then_some(()))
            });
            match left {
                Ok(()) => break Ok(()),
                Err(DeviceError::TimedOut { .. }) => {}
                Err(error) => break Err(error),
            }
            let now: Vec<u64> = (0..self.size).map(|r| self.wire.life(r)).collect();
            if now != lives {
                lives = now;
                since = Instant::now();
            }
            if since.elapsed() > self.config.finish_patience {
                break self.undelivered();
            }
        };
        self.wire.finish();
        result
    }

    /// What is still to be delivered, if anything is.
    fn undelivered(&self) -> Result<(), DeviceError> {
        let core = self.lock();
        let messages = core.state.requests.pending().filter_map(|(_, request)| match request.work {
            Work::Send { dest, tag, len: Some(len), .. } => Some((dest, tag, len)),
            _ => None,
        });
        let messages: Vec<_> = messages.collect();
        match messages.first() {
            Some((rank, tag, len)) => {
                Err(DeviceError::Undelivered { count: messages.len(), rank: *rank, tag: *tag, len: *len })
            }
            None => Ok(()),
        }
    }

    /// Ends the whole job because this rank has failed: every operation of every rank throws from now on.
    pub fn fail(&self, why: &str) {
        self.wire.fail(why);
    }

    /// Messages that arrived and nobody has received, and requests nobody has waited for: for reports and tests.
    pub fn leftovers(&self) -> (usize, usize) {
        let mut core = self.lock();
        self.progress(&mut core);
        (core.state.matcher.unexpected_len(), core.state.requests.len())
    }
}
