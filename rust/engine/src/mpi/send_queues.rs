//! Queues of sends per destination: the library has few of them at a time, the others wait in order.
//!
//! On each call Open MPI retries all sends for which it has found no room. MPICH may end the process at about
//! 2^20 requests. A library may keep even a short send until its receive is posted, and later sends must not
//! wait for that. So the window grows as long as the library completes no send.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mpjdev_transport::config::ENVELOPE_LEN;

use super::requests::FailIf;
use super::send::{DeferredSend, open};
use super::{Rank, State};
use crate::error::DeviceError;
use crate::request::RequestId;

/// Sends to a rank that the library has at a time.
const WINDOW: usize = 64;
/// Time without a completed send after which the window is doubled. The time doubles with it.
const STALL: Duration = Duration::from_millis(1);
/// Waiting sends after which a send checks whether the library takes some.
const STRIDE: usize = 32;

/// The sends to a rank.
#[derive(Debug)]
pub(super) struct SendQueue {
    /// Sends that the library had at the last poll.
    leaving: Vec<RequestId>,
    waiting: VecDeque<RequestId>,
    window: usize,
    stalled: Option<Instant>,
}

impl Default for SendQueue {
    fn default() -> SendQueue {
        SendQueue { leaving: Vec::new(), waiting: VecDeque::new(), window: WINDOW, stalled: None }
    }
}

impl SendQueue {
    /// Whether another send waits.
    fn is_full(&self) -> bool {
        !self.waiting.is_empty() || self.leaving.len() >= self.window
    }

    /// Widens the window when no send completes for long, and resets it when one has.
    fn adjust(&mut self, has_moved: bool, now: impl FnOnce() -> Instant) {
        if has_moved {
            (self.window, self.stalled) = (WINDOW, None);
        } else if !self.waiting.is_empty() {
            let now = now();
            let since = *self.stalled.get_or_insert(now);
            if now - since >= STALL * (self.window / WINDOW) as u32 {
                (self.window, self.stalled) = (2 * self.window, Some(now));
            }
        }
    }
}

impl Rank {
    /// Whether another send to a rank waits.
    #[inline]
    pub(super) fn is_send_queue_full(&self, dest: u32) -> bool {
        self.full_send_queues[dest as usize].load(Ordering::Relaxed)
    }

    /// Adds a send to its rank's queue: one that waits, or one that the library has.
    pub(super) fn enqueue_send(&self, state: &mut State, dest: u32, id: RequestId, waits: bool) {
        // A rank receives its messages to itself, so they never wait here.
        if dest == self.rank {
            return;
        }
        let queue = state.send_queues.entry(dest).or_default();
        let is_due = match waits {
            true => {
                queue.waiting.push_back(id);
                queue.waiting.len().is_multiple_of(STRIDE)
            }
            false => {
                queue.leaving.push(id);
                queue.is_full()
            }
        };
        match is_due {
            true => self.progress_send_queue(state, dest),
            false => self.full_send_queues[dest as usize].store(queue.is_full(), Ordering::Relaxed),
        }
    }

    /// Advances the sends to a rank. Does not block.
    pub(super) fn progress_send_queue(&self, state: &mut State, dest: u32) {
        let Some(mut queue) = state.send_queues.remove(&dest) else { return };
        let before = queue.leaving.len();
        queue.leaving.retain(|id| self.is_leaving(state, *id));
        queue.adjust(queue.leaving.len() < before, Instant::now);
        while queue.leaving.len() < queue.window
            && let Some(id) = queue.waiting.pop_front()
        {
            if self.start_deferred(state, id) {
                queue.leaving.push(id);
            }
        }
        self.full_send_queues[dest as usize].store(queue.is_full(), Ordering::Relaxed);
        if !queue.leaving.is_empty() {
            state.send_queues.insert(dest, queue);
        }
    }

    /// Advances the sends to all ranks.
    pub(super) fn progress_send_queues(&self, state: &mut State) {
        let waiting = state.send_queues.iter().filter(|(_, queue)| !queue.waiting.is_empty());
        let dests: Vec<u32> = waiting.map(|(dest, _)| *dest).collect();
        dests.into_iter().for_each(|dest| self.progress_send_queue(state, dest));
    }

    /// Whether the library still has the short messages of a send.
    fn is_leaving(&self, state: &mut State, id: RequestId) -> bool {
        if !state.requests.sending(id).is_some_and(|sending| sending.is_leaving()) {
            return false;
        }
        self.advance(state, id, FailIf::Impossible);
        state.requests.sending(id).is_some_and(|sending| sending.is_leaving())
    }

    /// Gives a waiting send to the library; true if the library has a part of it afterwards.
    fn start_deferred(&self, state: &mut State, id: RequestId) -> bool {
        let State { requests, pairs, .. } = state;
        let Some(sending) = requests.sending(id) else { return false };
        let Some(DeferredSend { group: _group, message, to }) = sending.deferred.take() else { return false };
        if let Err(error) = self.start(&message, to, sending, || open(pairs)) {
            sending.failed = Some(error);
        }
        sending.is_leaving()
    }

    /// Checks that one more message to a rank may wait to be matched.
    ///
    /// # Errors
    /// The limit is reached.
    pub(super) fn check_unmatched(&self, dest: u32) -> Result<(), DeviceError> {
        let max = self.config.unmatched_max();
        if self.state().requests.unmatched(dest) < max {
            return Ok(());
        }
        // Match acks may have arrived that were not polled yet.
        self.progress();
        let count = self.state().requests.unmatched(dest);
        if count < max {
            return Ok(());
        }
        let octets = |count: u32| u64::from(count) * ENVELOPE_LEN;
        Err(DeviceError::Unmatched { rank: dest, count, octets: octets(count), limit: octets(max) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(waiting: u64) -> SendQueue {
        SendQueue { waiting: (0..waiting).map(RequestId::from).collect(), ..SendQueue::default() }
    }

    #[test]
    fn stalled_queue_doubles_its_window_until_a_send_completes() {
        let (mut queue, start) = (queue(1000), Instant::now());
        let at =
            |queue: &mut SendQueue, millis| queue.adjust(false, || start + Duration::from_millis(millis));
        at(&mut queue, 0);
        assert_eq!(queue.window, WINDOW, "it has just begun");
        at(&mut queue, 1);
        assert_eq!(queue.window, 2 * WINDOW);
        at(&mut queue, 2);
        assert_eq!(queue.window, 2 * WINDOW, "it waits longer each time");
        at(&mut queue, 3);
        assert_eq!(queue.window, 4 * WINDOW);
        queue.adjust(true, Instant::now);
        assert_eq!(queue.window, WINDOW);
    }

    #[test]
    fn queue_without_waiting_sends_does_not_stall() {
        let (mut queue, start) = (queue(0), Instant::now());
        (0..100).for_each(|second| queue.adjust(false, || start + Duration::from_secs(second)));
        assert_eq!(queue.window, WINDOW);
        assert!(!queue.is_full());
    }
}
