//! The end of a rank over a C MPI, and of a job that has failed.

use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use mpjdev_sys::mpi::Operation;
use mpjdev_transport::wait::{Backoff, WaitControl};
use tracing::info;

use super::memory::Octets;
use super::peers::{GRACE, Notice};
use super::{Rank, runtime};
use crate::error::DeviceError;
use crate::operation::Unreceived;

impl Rank {
    /// Finishes this rank. Blocks until its messages have been received, as long as the receivers have not
    /// finished.
    ///
    /// A second call does nothing.
    ///
    /// # Errors
    /// A message is undelivered: its receiver has finished without it, or is about to finish and has not
    /// taken it within the grace period. Interrupted. This rank has finished nevertheless.
    pub fn finish(&self, wait_control: &mut dyn WaitControl) -> Result<(), DeviceError> {
        self.await_makers(wait_control);
        if self.finishing.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        info!(target: "mpjdev::mpi", rank = self.rank, "finish begins");
        let notices = self.send_notices(Notice::Finishing);
        let left = self.drain_sends(wait_control);
        let result = match left {
            Err(DeviceError::Interrupted) => left,
            left => self.undelivered().and(left),
        };
        self.end_receives(&DeviceError::Finished { rank: self.rank });
        self.state().peers.end();
        let notices = notices.and_then(|notices| self.let_go(notices, wait_control));
        // A matched synchronous send gets its match ack before the notice of the end.
        let notices = notices.and_then(|()| self.await_match_acks_sent(wait_control));
        let notices = notices.and_then(|()| self.let_go(self.send_notices(Notice::Finished)?, wait_control));
        self.note_unreceived();
        self.drop_firsts();
        self.end_freed();
        runtime::note_finished(self.session.number);
        let error = result.as_ref().err().map(ToString::to_string);
        info!(target: "mpjdev::mpi", rank = self.rank, error, "rank has finished");
        result.and(notices)
    }

    /// Counts the messages that have arrived and that no receive has taken. Freed communicators have counted
    /// theirs.
    fn note_unreceived(&self) {
        self.visit_freed(usize::MAX);
        let mut unreceived = std::mem::replace(&mut self.state().unreceived, Unreceived::of(self.rank));
        let groups: Vec<_> = self.groups.lock().iter().filter_map(Weak::upgrade).collect();
        let since = Instant::now();
        loop {
            groups.iter().for_each(|group| group.note_unreceived(&mut unreceived));
            // Messages of this rank to itself arrive only while the library is called, with some libraries
            // several times.
            if self.has_own_messages() || since.elapsed() > GRACE {
                break;
            }
            std::thread::yield_now();
        }
        self.state().unreceived = unreceived;
    }

    /// Whether all messages of this rank to itself have arrived.
    fn has_own_messages(&self) -> bool {
        let of = |counts: &[AtomicU64]| counts[self.rank as usize].load(Ordering::Relaxed);
        of(&self.received) >= of(&self.sent)
    }

    /// The messages that had arrived at this rank's end and that no receive took. `None` when there are none,
    /// before the end, and from the second call on.
    pub(crate) fn take_unreceived(&self) -> Option<Unreceived> {
        Some(std::mem::take(&mut self.state().unreceived)).filter(|left| left.count() > 0)
    }

    /// Waits until the sent messages have been received, or cannot be any more. No receive takes the messages
    /// of this rank to itself.
    fn drain_sends(&self, wait_control: &mut dyn WaitControl) -> Result<(), DeviceError> {
        let mut since = Instant::now();
        loop {
            let soon = Instant::now() + self.config.slice;
            let left = self.block(Some(soon), Backoff::new(&self.config), wait_control, || {
                self.progress();
                Ok(self.state().requests.dests().all(|dest| dest == self.rank).then_some(()))
            });
            match left {
                Err(DeviceError::TimedOut { .. }) => {}
                left => return left,
            }
            let state = self.state();
            let may_be_received = |dest: u32| dest != self.rank && state.peers.is_running(dest);
            if state.requests.dests().any(may_be_received) {
                since = Instant::now();
            }
            if since.elapsed() > self.config.finish_timeout {
                return Ok(());
            }
        }
    }

    /// Waits a limited time until notices have left.
    fn let_go(
        &self,
        mut notices: Vec<Operation<Octets>>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        let end = Instant::now() + self.config.finish_timeout;
        let left = self.block(Some(end), Backoff::new(&self.config), wait_control, || {
            notices.retain_mut(|notice| matches!(notice.test(), Ok(None)));
            Ok(notices.is_empty().then_some(()))
        });
        match left {
            // A rank that has not received the notice by now expects no message from this rank.
            Err(DeviceError::TimedOut { .. }) => Ok(()),
            left => left,
        }
    }

    /// The error of undelivered messages; `Ok` if all are delivered.
    fn undelivered(&self) -> Result<(), DeviceError> {
        let state = self.state();
        let mut lost = state.peers.lost;
        let has_finished = |dest| dest == self.rank || self.unsatisfiable_send(&state.peers, dest).is_some();
        state.requests.lost(has_finished).for_each(|send| lost.add(send));
        lost.reported()
    }

    /// Ends the whole job because this rank has failed: prints why, and ends all its processes, this one too.
    pub fn fail(&self, why: &str) {
        runtime::abort(self.mpi, self.rank, why);
    }
}
