//! One machine and a scripted peer.

use mpjdev_proto::completion::Completion;
use mpjdev_proto::impi::message_rx::ArrivalId;
use mpjdev_proto::impi::message_tx::Send;
use mpjdev_proto::impi::packet::{Packet, PacketType};
use mpjdev_proto::impi::pair::{Arrival, Event, Pair, Settings, Transmit};
use mpjdev_proto::impi::pair_error::ProtocolError;
use mpjdev_proto::impi::{Dialect, Proc};

pub(crate) const OURS: Proc = Proc { host_id: *b"our host id     ", pid: 11 };
pub(crate) const THEIRS: Proc = Proc { host_id: *b"their host id   ", pid: -22 };
/// M of the scripts.
pub(crate) const M: u32 = 10;

pub(crate) const SETTINGS: Settings = Settings {
    dialect: Dialect::Final,
    ours: OURS,
    theirs: THEIRS,
    maxdatalen: M,
    ackmark: 100,
    hiwater: 200,
    sends_max: 100,
    arrivals_max: 800,
};

/// A machine whose marks are not reached.
pub(crate) fn pair() -> Pair {
    Pair::new(SETTINGS).expect("good settings")
}

/// A machine with these marks.
pub(crate) fn pair_with(ackmark: u32, hiwater: u32) -> Pair {
    Pair::new(Settings { ackmark, hiwater, ..SETTINGS }).expect("good settings")
}

/// A standard message of tag 5.
pub(crate) fn standard(token: u64, msglen: u64) -> Send {
    Send { cid: 4, lsrank: 3, tag: 5, msglen, token, ..Send::default() }
}

pub(crate) fn synchronous(token: u64, msglen: u64) -> Send {
    Send { completion: Completion::Synchronous, ..standard(token, msglen) }
}

/// A packet of the peer.
pub(crate) fn theirs(kind: PacketType) -> Packet {
    Packet::new(kind, THEIRS, OURS)
}

pub(crate) fn data(srqid: u64, len: u32, msglen: u64) -> Packet {
    Packet { srqid, len, msglen, ..theirs(PacketType::Data) }
}

pub(crate) fn datasync(srqid: u64, len: u32, msglen: u64) -> Packet {
    Packet { srqid, len, msglen, ..theirs(PacketType::DataSync) }
}

pub(crate) fn rest(drqid: u64, len: u32, msglen: u64) -> Packet {
    Packet { drqid, ..data(1, len, msglen) }
}

/// A SyncAck as LAM sends it, with garbage in unused fields (IMPI 7.2).
pub(crate) fn syncack(srqid: u64, drqid: u64) -> Packet {
    let garbage =
        Packet { len: 128, msglen: 128, lsrank: -1, tag: -1, cid: 0x49 << 56, count: -1, ..data(0, 0, 0) };
    Packet { kind: PacketType::SyncAck, srqid, drqid, ..garbage }
}

pub(crate) fn reply(kind: PacketType, srqid: u64) -> Packet {
    Packet { kind, ..syncack(srqid, 0) }
}

/// Passes a packet to the machine and checks the invariants.
pub(crate) fn give(pair: &mut Pair, packet: Packet) -> Result<Event, ProtocolError> {
    let event = pair.handle_packet(&packet);
    pair.check_invariants();
    event
}

/// Passes in the first packet of a message that must get an id.
#[track_caller]
pub(crate) fn arrive(pair: &mut Pair, packet: Packet) -> ArrivalId {
    match give(pair, packet) {
        Ok(Event::Arrived(Arrival { id: Some(id), .. })) => id,
        other => panic!("{other:?}"),
    }
}

/// All packets that the machine sends now, in order, one line each; with data `token@offset` and whether
/// these octets are the last. Unused fields must be zero.
pub(crate) fn sent(pair: &mut Pair) -> Vec<String> {
    let mut lines = Vec::new();
    while pair.wants_to_send() {
        let transmit = pair.poll_transmit().expect("it wants to");
        pair.check_invariants();
        lines.push(line(&transmit));
    }
    assert_eq!(pair.poll_transmit(), None);
    pair.check_invariants();
    lines
}

fn line(transmit: &Transmit) -> String {
    let packet = transmit.packet;
    let Packet { kind, srqid, drqid, len, msglen, .. } = packet;
    let plain = Packet { srqid, drqid, ..Packet::new(kind, OURS, THEIRS) };
    let Some(body) = transmit.body else {
        assert_eq!(packet, plain, "a control packet has nothing but ids");
        return match kind {
            PacketType::ProtoAck => {
                assert_eq!((srqid, drqid), (0, 0));
                "ProtoAck".to_owned()
            }
            PacketType::SyncAck => format!("SyncAck {srqid} {drqid}"),
            _ => {
                assert_eq!(drqid, 0);
                format!("{kind:?} {srqid}")
            }
        };
    };
    let Packet { seqnum, lsrank, tag, cid, .. } = packet;
    assert_eq!(packet, Packet { len, msglen, seqnum, lsrank, tag, cid, ..plain });
    assert_eq!(body.len, len, "the body is what the header says");
    let last = if body.last { " last" } else { "" };
    format!("{kind:?} {srqid} {drqid} {len}/{msglen} {}@{}{last}", body.token, body.offset)
}
