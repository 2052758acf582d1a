//! Tests of short messages that a receive takes from the queue of their source.

use std::sync::atomic::AtomicU64;

use super::super::ring::{LINE, lines};
use super::{Kind, PacketSource, Rank, Transport, message, ranks};
use crate::ShortSend;
use crate::config::{CREDIT_OVERHEAD, INLINE_MAX};

/// Sender, receiver that polls the queue of the sender, and memory for a message.
fn pair() -> (Rank, Rank, Vec<AtomicU64>) {
    let mut ranks = ranks(2);
    let (Some(sender), Some(mut receiver)) = (ranks.pop(), ranks.pop()) else { panic!("two ranks") };
    assert!(sender.send(0, 64));
    assert_eq!(receiver.receive(), [80]);
    (sender, receiver, (0..INLINE_MAX / 8).map(|_| AtomicU64::new(0)).collect())
}

#[test]
fn short_message_is_taken_by_its_own_receive_alone() {
    let (sender, mut receiver, words) = pair();
    let all = words.len();
    let take = |receiver: &mut Rank, source, context, tag, room: usize| {
        receiver.packet_source.take_short(source, context, tag, 3, &words[..room])
    };
    for _ in 0..100 {
        assert_eq!(take(&mut receiver, 1, 0, 0, all), None, "there is none");
        assert!(sender.send(0, 64));
        for (source, context, tag, room) in
            [(0, 0, 0, all), (2, 0, 0, all), (1, 1, 0, all), (1, 0, 1, all), (1, 0, 0, 9)]
        {
            let taken = take(&mut receiver, source, context, tag, room);
            assert_eq!(taken, None, "{source} {context} {tag} {room}");
        }
        assert_eq!(take(&mut receiver, 1, 0, 0, 10), Some(80));
        for (kind, octets) in [(Kind::Synchronous, 64), (Kind::Eager, 5000)] {
            assert!(sender.send_as(kind, 0, octets));
            assert_eq!(take(&mut receiver, 1, 0, 0, all), None, "{kind:?} {octets}");
            assert_eq!(receiver.receive().len(), 1);
        }
    }
}

#[test]
fn short_message_is_sent_with_prepaid_credit_alone() {
    let (sender, mut receiver, _) = pair();
    let message = message(sender.pool.clone(), 64);
    let send = |dest| sender.transport.try_send_short(dest, 0, 0, message.first_words(), message.first_len());
    assert_eq!(send(0), ShortSend::Unpaid);
    sender.transport.prepay(0, 2 * (80 + CREDIT_OVERHEAD));
    assert_eq!([send(0), send(0), send(0)], [ShortSend::Sent, ShortSend::Sent, ShortSend::Unpaid]);
    assert_eq!(receiver.receive(), [80, 80]);
    sender.transport.prepay(0, 1 << 20);
    let sent = (0..).take_while(|_| send(0) == ShortSend::Sent).count();
    assert_eq!(send(0), ShortSend::Unavailable, "there is no room");
    assert_eq!(receiver.receive(), vec![80; sent.min(100)]);
}

#[test]
fn longer_message_is_copied_with_prepaid_credit_while_half_of_the_queue_is_free() {
    let (sender, mut receiver, _) = pair();
    let message = message(sender.pool.clone(), 2048);
    let len = message.first_len();
    let send = || sender.transport.try_send_copy(0, 0, 0, message.first_words(), len);
    assert_eq!(send(), ShortSend::Unpaid);
    for _ in 0..100 {
        sender.transport.prepay(0, 1 << 20);
        let sent = (0..).take_while(|_| send() == ShortSend::Sent).count();
        assert_eq!(send(), ShortSend::Unavailable, "half of the queue is in use");
        let used = sent * lines(len);
        let half = sender.transport.queue_lines / 2;
        assert!(used <= half && used + 2 * lines(len) > half, "{used} of {half} lines of {LINE} words");
        assert!(sender.send(0, 64), "the other half is for short messages and for loans");
        assert_eq!(receiver.receive(), [vec![len; sent], vec![80]].concat());
    }
}
