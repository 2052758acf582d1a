//! Tests over TCP: a rank exceeds its credit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mpjdev_buffer::{Encoding, Message, Type, WriteBuffer};
use mpjdev_transport::config::{Config, ENVELOPE_LEN};
use mpjdev_transport::pool::HeapPool;
use mpjdev_transport::tcp::{self, TcpSource, TcpTransport, Terms};
use mpjdev_transport::{Header, Kind, Outgoing, PacketSource, PeerState, Transport};

use crate::packet::engine::PacketEngine;

/// A deadline that no step reaches.
const LONG: Duration = Duration::from_secs(60);

fn pair() -> [(Arc<TcpTransport>, TcpSource); 2] {
    let mut jobs = tcp::in_process::jobs(2, Terms::default()).expect("connections").into_iter();
    [(); 2].map(|()| {
        let job = jobs.next().expect("two ranks");
        tcp::connect(job, &Config::default(), HeapPool::new(1 << 30)).expect("a wire")
    })
}

fn message(octets: usize) -> Message {
    let mut buffer =
        WriteBuffer::new(HeapPool::new(1 << 30), octets as i64, Encoding::NATIVE).expect("a capacity");
    buffer.stage(Type::Byte, octets - 8).expect("room");
    buffer.commit();
    buffer.finish().expect("memory").clone()
}

/// An honest rank fails the send.
#[test]
fn peer_with_too_many_unmatched_messages_is_disconnected() {
    let config = Config { credit: 1 << 16, envelopes: 100 * ENVELOPE_LEN, ..Config::default() };
    let limit = config.unmatched_limit() as usize;
    let [(sender, mut answers), (receiver, packet_source)] = pair();
    let ends: (Arc<dyn Transport>, Box<dyn PacketSource>) = (receiver.clone(), Box::new(packet_source));
    let flooded = PacketEngine::new(1, 2, config, ends, HeapPool::new(1 << 30));
    let message = message(24);
    let begun = Instant::now();
    let mut token = 0;
    while receiver.peer(0) == PeerState::Alive {
        assert!(begun.elapsed() < LONG, "{:?} messages have arrived", flooded.leftovers());
        token += 1;
        let header = Header { kind: Kind::Rts, token, ..Header::default() };
        sender.try_send(1, header, Outgoing::Message(&message));
        // The queued packets leave.
        sender.is_ready();
        answers.receive(100, &mut |_, _, _| Ok(()));
        assert!(flooded.leftovers().0 <= limit);
    }
    assert_eq!(flooded.leftovers().0, limit);
    let PeerState::Failed(why) = receiver.peer(0) else { panic!("it has not failed") };
    assert!(why.ends_with("more unmatched messages than may wait past its credit"), "{why}");
}
