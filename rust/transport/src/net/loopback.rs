//! Loopback messages of a rank, which need no network.

use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Header, Incoming, Kind, Outgoing, PacketHandler, Payload, goes_inline};

/// Most messages that may wait.
const LOOPBACK_MAX: usize = 1024;

/// Loopback queue of a rank.
#[derive(Debug, Default)]
pub(in super::super) struct Loopback {
    waiting: Mutex<VecDeque<(Header, Option<Payload>)>>,
    count: AtomicUsize,
}

impl Loopback {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<(Header, Option<Payload>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the queue has messages.
    pub(in super::super) fn has_packets(&self) -> bool {
        self.count.load(Acquire) > 0
    }

    /// Queues a message. Returns false when there is no room.
    pub(in super::super) fn send(&self, header: Header, body: Outgoing<'_>) -> bool {
        let mut waiting = self.waiting();
        if waiting.len() >= LOOPBACK_MAX && header.kind != Kind::MatchAck {
            return false;
        }
        let payload = match body {
            Outgoing::Nothing => None,
            Outgoing::Payload(payload) => Some(payload.clone()),
            Outgoing::Message(message) => Some(Payload::Logical(message.clone())),
        };
        waiting.push_back((header, payload));
        self.count.store(waiting.len(), Release);
        true
    }

    /// Passes at most `most` messages to this rank. Returns their number.
    pub(in super::super) fn receive(
        &self,
        rank: u32,
        inline_max: usize,
        most: usize,
        each: &mut PacketHandler<'_>,
    ) -> usize {
        let mut n = 0;
        while n < most && self.count.load(Relaxed) > 0 {
            let mut waiting = self.waiting();
            let Some((header, payload)) = waiting.pop_front() else { break };
            self.count.store(waiting.len(), Release);
            drop(waiting);
            // As over any other transport, a small message is charged for its octets, not for its buffer.
            let body = match &payload {
                Some(Payload::Logical(message))
                    if header.kind == Kind::Eager && goes_inline(message, inline_max) =>
                {
                    Incoming::Inline(message.first_words(), message.first_len())
                }
                Some(payload) => Incoming::Reference(payload.clone()),
                None => Incoming::Nothing,
            };
            // A rank sends itself only what is allowed.
            let allowed = each(rank, header, body);
            debug_assert_eq!(allowed, Ok(()));
            n += 1;
        }
        n
    }
}
