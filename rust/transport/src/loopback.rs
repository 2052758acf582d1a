//! Loopback queue: packets of a rank to itself, which every transport between processes keeps in memory.

use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Relaxed, Release};

use mpjdev_sys::sync::{LockRank, Mutex, MutexGuard};

use crate::{Header, Incoming, Kind, Outgoing, PacketHandler, Payload, goes_inline};

/// Loopback queue of a rank.
#[derive(Debug)]
pub(crate) struct Loopback {
    waiting: Mutex<VecDeque<(Header, Option<Payload>)>>,
    count: AtomicUsize,
    capacity: usize,
}

impl Loopback {
    /// A queue of at most `capacity` messages.
    pub(crate) fn new(capacity: usize) -> Loopback {
        Loopback {
            waiting: Mutex::new(LockRank::Leaf, VecDeque::new()),
            count: AtomicUsize::new(0),
            capacity,
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<(Header, Option<Payload>)>> {
        self.waiting.lock()
    }

    /// Whether the queue has packets. Its lock orders them.
    #[inline(always)]
    pub(crate) fn has_packets(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// Queues a packet. Returns false when there is no room. An answer has always room: there are at most as
    /// many as messages that wait for one.
    pub(crate) fn send(&self, header: Header, body: Outgoing<'_>) -> bool {
        let mut waiting = self.waiting();
        if waiting.len() >= self.capacity && header.kind != Kind::MatchAck {
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

    /// Passes at most `most` packets to this rank. Returns their number.
    pub(crate) fn receive(
        &self,
        rank: u32,
        inline_max: usize,
        most: usize,
        each: &mut PacketHandler<'_>,
    ) -> usize {
        let mut n = 0;
        while n < most && self.has_packets() {
            let mut waiting = self.waiting();
            let Some((header, payload)) = waiting.pop_front() else { break };
            self.count.store(waiting.len(), Release);
            drop(waiting);
            // As over any other transport, a small message is charged for its octets, not for its buffer.
            let body = match payload {
                Some(Payload::Logical(ref message))
                    if header.kind == Kind::Eager && goes_inline(message, inline_max) =>
                {
                    Incoming::Inline(message.first_words(), message.first_len())
                }
                Some(payload) => Incoming::Reference(payload),
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

#[cfg(test)]
mod tests {
    use mpjdev_buffer::{Encoding, Message, Type, WriteBuffer};

    use super::*;
    use crate::pool::HeapPool;

    fn message(len: usize) -> Message {
        let mut buffer =
            WriteBuffer::new(HeapPool::new(1 << 30), len as i64, Encoding::NATIVE).expect("a capacity");
        buffer.stage(Type::Byte, len - 8).expect("room");
        buffer.commit();
        buffer.finish().expect("memory").clone()
    }

    fn header(kind: Kind, tag: i32) -> Header {
        Header { kind, tag, ..Header::default() }
    }

    /// Tags of the packets that a receive of at most `most` passes on to rank 3.
    fn received(loopback: &Loopback, most: usize) -> Vec<i32> {
        let mut tags = Vec::new();
        let n = loopback.receive(3, 64, most, &mut |source, header, _| {
            assert_eq!(source, 3);
            tags.push(header.tag);
            Ok(())
        });
        assert_eq!(n, tags.len());
        tags
    }

    #[test]
    fn packets_arrive_in_order_and_at_most_as_many_as_wanted() {
        let loopback = Loopback::new(8);
        assert!(!loopback.has_packets());
        (0..3).for_each(|tag| assert!(loopback.send(header(Kind::Eager, tag), Outgoing::Nothing)));
        assert_eq!(received(&loopback, 2), [0, 1]);
        assert!(loopback.has_packets());
        assert_eq!(received(&loopback, 2), [2]);
        assert!(!loopback.has_packets());
    }

    #[test]
    fn full_queue_refuses_messages_and_accepts_answers() {
        let loopback = Loopback::new(1);
        assert!(loopback.send(header(Kind::Synchronous, 0), Outgoing::Nothing));
        assert!(!loopback.send(header(Kind::Eager, 1), Outgoing::Nothing));
        assert!(loopback.send(header(Kind::MatchAck, 2), Outgoing::Nothing));
        assert_eq!(received(&loopback, 9), [0, 2]);
        assert!(loopback.send(header(Kind::Eager, 3), Outgoing::Nothing), "it has room again");
    }

    #[test]
    fn short_eager_message_arrives_inline_and_any_other_by_reference() {
        let loopback = Loopback::new(8);
        let (short, long) = (message(16), message(4096));
        let sent = [(Kind::Eager, &short), (Kind::Synchronous, &short), (Kind::Eager, &long)];
        for (kind, message) in sent {
            assert!(loopback.send(header(kind, 0), Outgoing::Message(message)));
        }
        let mut are_inline = Vec::new();
        loopback.receive(0, 64, 9, &mut |_, _, body| {
            are_inline.push(matches!(body, Incoming::Inline(..)));
            Ok(())
        });
        assert!(short.first_len() <= 64, "{} octets", short.first_len());
        assert_eq!(are_inline, [true, false, false]);
    }
}
