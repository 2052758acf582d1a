//! Queues of sends per destination: few are with the library at a time, the others wait in order.
//!
//! On each call a library may retry all sends for which it has found no room (Open MPI), and one with about
//! 2^20 requests may end the process (MPICH). A send that is with the library may also wait for its receive,
//! though it is short, and later sends must not wait for that. So the window grows as long as no send leaves.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mpjdev_transport::config::ENVELOPE_LEN;

use super::requests::Hope;
use super::send::{Held, open};
use super::{Rank, State};
use crate::error::DeviceError;
use crate::request::RequestId;

/// Sends to a rank that are with the library at a time.
const WINDOW: usize = 64;
/// Time without a leaving send after which the window is doubled; then the time doubles as well.
const STALL: Duration = Duration::from_millis(1);
/// Waiting sends after which a send checks whether some can leave.
const STRIDE: usize = 32;

/// The sends to a rank.
#[derive(Debug)]
pub(super) struct Lane {
    /// Sends that are with the library, or were at the last poll.
    leaving: Vec<RequestId>,
    waiting: VecDeque<RequestId>,
    window: usize,
    stalled: Option<Instant>,
}

impl Default for Lane {
    fn default() -> Lane {
        Lane { leaving: Vec::new(), waiting: VecDeque::new(), window: WINDOW, stalled: None }
    }
}

impl Lane {
    /// Whether another send waits.
    fn is_full(&self) -> bool {
        !self.waiting.is_empty() || self.leaving.len() >= self.window
    }

    /// Widens the window when no send leaves for long, and resets it when one has left.
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
    pub(super) fn is_lane_full(&self, dest: u32) -> bool {
        self.full_lanes[dest as usize].load(Ordering::Relaxed)
    }

    /// Adds a send to its rank's queue, waiting or with the library.
    pub(super) fn enter_lane(&self, state: &mut State, dest: u32, id: RequestId, waits: bool) {
        // A rank receives its messages to itself, so they never wait here.
        if dest == self.rank {
            return;
        }
        let lane = state.lanes.entry(dest).or_default();
        let is_due = match waits {
            true => {
                lane.waiting.push_back(id);
                lane.waiting.len().is_multiple_of(STRIDE)
            }
            false => {
                lane.leaving.push(id);
                lane.is_full()
            }
        };
        match is_due {
            true => self.progress_lane(state, dest),
            false => self.full_lanes[dest as usize].store(lane.is_full(), Ordering::Relaxed),
        }
    }

    /// Advances the sends to a rank. Does not block.
    pub(super) fn progress_lane(&self, state: &mut State, dest: u32) {
        let Some(mut lane) = state.lanes.remove(&dest) else { return };
        let before = lane.leaving.len();
        lane.leaving.retain(|id| self.is_leaving(state, *id));
        lane.adjust(lane.leaving.len() < before, Instant::now);
        while lane.leaving.len() < lane.window
            && let Some(id) = lane.waiting.pop_front()
        {
            if self.start_held(state, id) {
                lane.leaving.push(id);
            }
        }
        self.full_lanes[dest as usize].store(lane.is_full(), Ordering::Relaxed);
        if !lane.leaving.is_empty() {
            state.lanes.insert(dest, lane);
        }
    }

    /// Advances the sends to all ranks.
    pub(super) fn progress_lanes(&self, state: &mut State) {
        let waiting = state.lanes.iter().filter(|(_, lane)| !lane.waiting.is_empty());
        let dests: Vec<u32> = waiting.map(|(dest, _)| *dest).collect();
        dests.into_iter().for_each(|dest| self.progress_lane(state, dest));
    }

    /// Whether the library still has the short messages of a send.
    fn is_leaving(&self, state: &mut State, id: RequestId) -> bool {
        if !state.requests.sending(id).is_some_and(|sending| sending.is_leaving()) {
            return false;
        }
        self.advance(state, id, Hope::Any);
        state.requests.sending(id).is_some_and(|sending| sending.is_leaving())
    }

    /// Gives a waiting send to the library; true if the library has a part of it afterwards.
    fn start_held(&self, state: &mut State, id: RequestId) -> bool {
        let State { requests, pairs, .. } = state;
        let Some(sending) = requests.sending(id) else { return false };
        let Some(Held { group: _group, message, to }) = sending.held.take() else { return false };
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

    fn lane(waiting: u64) -> Lane {
        Lane { waiting: (0..waiting).map(RequestId::from).collect(), ..Lane::default() }
    }

    #[test]
    fn stalled_lane_doubles_its_window_until_a_send_completes() {
        let (mut lane, start) = (lane(1000), Instant::now());
        let at = |lane: &mut Lane, millis| lane.adjust(false, || start + Duration::from_millis(millis));
        at(&mut lane, 0);
        assert_eq!(lane.window, WINDOW, "it has just begun");
        at(&mut lane, 1);
        assert_eq!(lane.window, 2 * WINDOW);
        at(&mut lane, 2);
        assert_eq!(lane.window, 2 * WINDOW, "it waits longer each time");
        at(&mut lane, 3);
        assert_eq!(lane.window, 4 * WINDOW);
        lane.adjust(true, Instant::now);
        assert_eq!(lane.window, WINDOW);
    }

    #[test]
    fn lane_without_waiting_sends_does_not_stall() {
        let (mut lane, start) = (lane(0), Instant::now());
        (0..100).for_each(|second| lane.adjust(false, || start + Duration::from_secs(second)));
        assert_eq!(lane.window, WINDOW);
        assert!(!lane.is_full());
    }
}
