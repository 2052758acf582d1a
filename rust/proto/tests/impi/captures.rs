//! Captures of a real peer, with the machine in place of either end.

use std::collections::{HashMap, VecDeque};

use mpjdev_proto::completion::Completion;
use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::message_tx::Send;
use mpjdev_proto::impi::packet::{Packet, PacketType};
use mpjdev_proto::impi::pair::{Event, Pair, Settings};

use crate::script::SETTINGS;
use crate::vectors::{self, Vector};

/// A vector and the settings of its hosts.
struct Conversation {
    vector: Vector,
    maxdatalen: u32,
    ackmark: u32,
    hiwater: u32,
    /// Messages with this tag were all queued before the first was sent.
    ahead: Option<i32>,
}

impl Conversation {
    fn of_lam(name: &str) -> Self {
        Self { vector: vectors::read(name), maxdatalen: 65536, ackmark: 10, hiwater: 20, ahead: None }
    }

    fn machine(&self, host: u32) -> Pair {
        let mut packets = self.vector.packets.iter();
        let own = packets.find(|d| d.from == host && d.packet.kind != PacketType::Fini).unwrap().packet;
        let Self { maxdatalen, ackmark, hiwater, .. } = *self;
        let (ours, theirs) = (own.src, own.dest);
        let dialect = Dialect::Final;
        Pair::new(Settings { dialect, ours, theirs, maxdatalen, ackmark, hiwater, ..SETTINGS }).unwrap()
    }

    /// Replays a capture with the machine as this host, which sends all it can after each packet of the other
    /// one. Receives are posted before their messages. With `exact` nothing may be sent earlier than in the
    /// capture. Returns the additional packets.
    fn replay(&self, host: u32, exact: bool) -> Vec<PacketType> {
        let mut pair = self.machine(host);
        let mut out: VecDeque<Packet> = VecDeque::new();
        // The captured drqid of each SyncAck, and that of the machine, which the peer would have echoed.
        let mut drqids: HashMap<u64, u64> = HashMap::new();
        let own = |d: &&vectors::Described| d.from == host && is_first(&d.packet);
        for described in self.vector.packets.iter().filter(own) {
            if self.ahead == Some(described.packet.tag) {
                send(&mut pair, &described.packet);
            }
        }
        for (k, described) in self.vector.packets.iter().enumerate() {
            let place = format!("{} packet {k}, host {host} is ours", self.vector.name);
            let packet = described.packet;
            if described.from == host {
                if is_first(&packet) && self.ahead != Some(packet.tag) {
                    send(&mut pair, &packet);
                }
                poll(&mut pair, &mut out);
                if packet.kind != PacketType::Fini {
                    let ours = out.pop_front().unwrap_or_else(|| panic!("{place}: nothing is sent"));
                    assert_eq!(essence(&ours), essence(&packet), "{place}");
                    drqids.insert(packet.drqid, ours.drqid);
                }
            } else {
                poll(&mut pair, &mut out);
                assert!(out.is_empty() || !exact, "{place}: too early: {out:?}");
                let drqid = drqids.get(&packet.drqid).copied().unwrap_or(packet.drqid);
                receive(&mut pair, &Packet { drqid, ..packet }, &place);
                poll(&mut pair, &mut out);
            }
        }
        pair.finish();
        assert!(pair.is_done());
        out.iter().map(|packet| packet.kind).collect()
    }
}

fn is_first(packet: &Packet) -> bool {
    packet.kind == PacketType::DataSync
        || (packet.kind == PacketType::Data && u64::from(packet.len) == packet.msglen)
}

/// Sends the message of a first packet.
fn send(pair: &mut Pair, packet: &Packet) {
    let Packet { cid, lsrank, tag, msglen, srqid, .. } = *packet;
    let is_synchronous = packet.kind == PacketType::DataSync && u64::from(packet.len) == msglen;
    let completion = if is_synchronous { Completion::Synchronous } else { Completion::Standard };
    pair.send(Send { cid, lsrank, tag, msglen, completion, token: srqid, ..Send::default() }).unwrap();
}

fn receive(pair: &mut Pair, packet: &Packet, place: &str) {
    let event = pair.handle_packet(packet).unwrap_or_else(|e| panic!("{place}: {e}"));
    pair.check_invariants();
    match (packet.kind, event) {
        (PacketType::Data | PacketType::DataSync, Event::Arrived(arrival)) => {
            assert!(is_first(packet), "{place}");
            if let Some(id) = arrival.id {
                pair.matched(id).unwrap();
            }
        }
        (PacketType::Data, Event::Continued { .. }) => assert!(!is_first(packet), "{place}"),
        (PacketType::ProtoAck, Event::Nothing) | (PacketType::Fini, Event::Fini) => {}
        (PacketType::SyncAck, Event::Matched { token }) => assert_eq!(token, packet.srqid, "{place}"),
        other => panic!("{place}: {other:?}"),
    }
}

fn poll(pair: &mut Pair, out: &mut VecDeque<Packet>) {
    while let Some(transmit) = pair.poll_transmit() {
        pair.check_invariants();
        out.push_back(transmit.packet);
    }
}

/// The fields that a peer may rely on. Not compared are numbers for tracing, the drqid of a SyncAck, which
/// the rest of the message echoes, and unused fields of packets without data.
fn essence(packet: &Packet) -> Packet {
    let Packet { kind, src, dest, srqid, .. } = *packet;
    let plain = Packet { srqid, ..Packet::new(kind, src, dest) };
    if kind.has_data() { Packet { seqnum: 0, ..*packet } } else { plain }
}

/// Proves that the machine handles and sends LAM's packets in the barrier at the end of each job.
#[test]
fn captured_smallest_job_is_replayed() {
    let conversation = Conversation::of_lam("impi-hello");
    assert_eq!(conversation.replay(0, true), []);
    assert_eq!(conversation.replay(1, true), []);
}

/// Proves the same for a short synchronous message.
#[test]
fn captured_short_synchronous_message_is_replayed() {
    let conversation = Conversation::of_lam("impi-ssend");
    assert_eq!(conversation.replay(0, true), []);
    assert_eq!(conversation.replay(1, true), []);
}

/// Proves the same for a long message of 150000 octets; the sender echoes LAM's drqid.
#[test]
fn captured_long_message_is_replayed() {
    let conversation = Conversation::of_lam("impi-long");
    assert_eq!(conversation.replay(0, true), []);
    assert_eq!(conversation.replay(1, true), []);
}

/// Proves the same for 45 messages: ProtoAcks are sent where LAM sends them.
#[test]
fn captured_short_messages_are_replayed() {
    let conversation = Conversation::of_lam("impi-many");
    assert_eq!(conversation.replay(0, true), []);
    assert_eq!(conversation.replay(1, true), []);
}

/// Proves the same for collective operations, which are ordinary messages.
#[test]
fn captured_collective_operations_are_replayed() {
    let conversation = Conversation::of_lam("impi-collective");
    assert_eq!(conversation.replay(0, true), []);
    assert_eq!(conversation.replay(1, true), []);
}

/// Proves that the machine stops where LAM stops without ProtoAcks, and continues as far as LAM for each one.
/// The other host delays its ProtoAcks; those of the machine are the same, but earlier.
#[test]
fn captured_flow_control_is_replayed() {
    let vector = vectors::read("impi-flow");
    let conversation = Conversation { vector, maxdatalen: 1000, ackmark: 3, hiwater: 5, ahead: Some(41) };
    assert_eq!(conversation.replay(0, true), []);
    // The 21st packet triggers a seventh ProtoAck, which that host did not send.
    assert_eq!(conversation.replay(1, false), [PacketType::ProtoAck]);
}

/// Proves that the captures contain the packets that the tests above need.
#[test]
fn captures_have_their_documented_packets() {
    let count = |name: &str, kind: PacketType| {
        vectors::read(name).packets.iter().filter(|d| d.packet.kind == kind).count()
    };
    assert_eq!(count("impi-ssend", PacketType::SyncAck), 1);
    assert_eq!(count("impi-long", PacketType::Data), 4);
    assert_eq!(count("impi-many", PacketType::ProtoAck), 4);
    assert_eq!(count("impi-flow", PacketType::ProtoAck), 6);
}
