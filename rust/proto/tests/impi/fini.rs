//! The end of a channel.

use mpjdev_proto::impi::fini::{AfterFini, EndOfStream, FiniState};
use mpjdev_proto::impi::packet::{Packet, PacketType};
use mpjdev_proto::impi::pair::Event;
use mpjdev_proto::impi::{Dialect, Proc};

use crate::script::*;
use crate::vectors;

/// Proves that Fini is sent once, after the finish, and names no process.
#[test]
fn fini_is_sent_once_when_the_host_has_finished() {
    let mut fini = FiniState::new(Dialect::Final);
    assert_eq!(fini.poll_transmit(), None);
    fini.finish();
    let zero = Proc { host_id: [0; 16], pid: 0 };
    assert_eq!(fini.poll_transmit(), Some(Packet::new(PacketType::Fini, zero, zero)));
    fini.finish();
    assert_eq!(fini.poll_transmit(), None);
}

/// Proves that ProtoAcks after a Fini are accepted, and data or a second Fini refused (IMPI 14).
#[test]
fn only_answers_follow_a_fini() {
    let mut fini = FiniState::new(Dialect::Final);
    for kind in [PacketType::Data, PacketType::DataSync, PacketType::ProtoAck, PacketType::Fini] {
        assert_eq!(fini.handle_packet(kind), Ok(()));
    }
    assert_eq!(fini.handle_packet(PacketType::ProtoAck), Ok(()));
    assert_eq!(fini.handle_packet(PacketType::SyncAck), Ok(()));
    for kind in [PacketType::Data, PacketType::DataSync, PacketType::Fini] {
        assert_eq!(fini.handle_packet(kind), Err(AfterFini { kind }));
    }
}

/// Proves that an end of stream without a Fini is a failure, and in the draft unknown until the local host
/// has finished.
#[test]
fn end_of_stream_without_fini_is_a_failure() {
    let mut fini = FiniState::new(Dialect::Final);
    assert_eq!(fini.handle_end_of_stream(), EndOfStream::Died);
    fini.finish();
    assert_eq!(fini.handle_end_of_stream(), EndOfStream::Died);
    fini.handle_packet(PacketType::Fini).unwrap();
    assert_eq!(fini.handle_end_of_stream(), EndOfStream::Orderly);

    let mut fini = FiniState::new(Dialect::Draft);
    assert_eq!(fini.handle_end_of_stream(), EndOfStream::Unknown);
    fini.finish();
    assert_eq!(fini.handle_end_of_stream(), EndOfStream::Orderly);
    assert_eq!(fini.poll_transmit(), None);
}

/// Proves that a pair forwards every captured Fini to its channel, with any process id, and does not count
/// it.
#[test]
fn fini_of_a_pair_is_forwarded() {
    let mut finis = 0;
    for described in vectors::all().iter().flat_map(|vector| &vector.packets) {
        if described.packet.kind == PacketType::Fini {
            let mut pair = pair_with(1, 1);
            assert_eq!(give(&mut pair, described.packet), Ok(Event::Fini));
            assert_eq!(sent(&mut pair), [""; 0]);
            finis += 1;
        }
    }
    assert!(finis >= 12);
}
