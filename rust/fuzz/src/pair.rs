//! Target of the IMPI state machine of two processes, under any sequence of calls and packets.

use std::collections::{BTreeMap, BTreeSet};

use mpjdev_proto::completion::Completion;
use mpjdev_proto::impi::message_rx::ArrivalId;
use mpjdev_proto::impi::message_tx::{Body, Send};
use mpjdev_proto::impi::packet::{Packet, PacketType};
use mpjdev_proto::impi::pair::{Event, Pair, Settings, Transmit};
use mpjdev_proto::impi::{Dialect, Proc};

const OURS: Proc = Proc { host_id: [1; 16], pid: 1 };
const THEIRS: Proc = Proc { host_id: [2; 16], pid: 2 };

/// Runs calls and packets of three octets each. The first octet of the input selects the settings.
///
/// Invariants, after each step: the machine's own, with its bounds. Flow control holds in both directions.
/// First packets are sent in order, the octets of each message once and in order. Each event occurs once and
/// has one cause. Every cancel request and every match has at most one answer, and exactly one when no output
/// is pending. After a failure exactly the pending operations are returned. An answer to a cancel is an
/// error, since the machine requests none. An error of the peer ends the run.
pub fn pair(input: &[u8]) {
    let Some((&settings, calls)) = input.split_first() else { return };
    let mut model = Model::new(usize::from(settings));
    for call in calls.chunks_exact(3) {
        if !model.step(call[0], call[1], call[2]) {
            return;
        }
        model.check();
    }
    model.abandon();
}

/// State of a message that this process sends.
#[derive(Debug, Default)]
struct Outgoing {
    send: Send,
    offset: u64,
    left: bool,
    matched: bool,
}

/// State of a message that arrives.
#[derive(Debug, Clone, Copy)]
struct Incoming {
    received: u64,
    msglen: u64,
    synchronous: bool,
    matched: bool,
    drained: bool,
}

/// Model of the state machine: the machine and the history of its calls and packets.
struct Model {
    pair: Pair,
    settings: Settings,
    sends: BTreeMap<u64, Outgoing>,
    arrivals: BTreeMap<ArrivalId, Incoming>,
    /// Ids of all arrivals in order, with those of completed ones.
    ids: Vec<ArrivalId>,
    latest_first: u64,
    finished: bool,
    counted_out: u64,
    counted_in: u64,
    acks_out: u64,
    acks_in: u64,
    cancels_in: u64,
    replies_out: u64,
    synchronous_matched: u64,
    syncacks_out: u64,
}

impl Model {
    fn new(choice: usize) -> Self {
        let ackmark = 1 + (choice & 3) as u32;
        let hiwater = ackmark + (choice >> 2 & 3) as u32;
        let maxdatalen = [1, 4, 9, u32::MAX][choice >> 4 & 3];
        let settings = Settings {
            dialect: Dialect::Final,
            ours: OURS,
            theirs: THEIRS,
            maxdatalen,
            ackmark,
            hiwater,
            sends_max: 5,
            arrivals_max: 4 * hiwater as usize,
        };
        Self {
            pair: Pair::new(settings).expect("good settings"),
            settings,
            sends: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            ids: Vec::new(),
            latest_first: 0,
            finished: false,
            counted_out: 0,
            counted_in: 0,
            acks_out: 0,
            acks_in: 0,
            cancels_in: 0,
            replies_out: 0,
            synchronous_matched: 0,
            syncacks_out: 0,
        }
    }

    /// Runs one call or packet. False if the peer violated the protocol.
    fn step(&mut self, call: u8, a: u8, b: u8) -> bool {
        match call % 16 {
            0 => self.send(a, b),
            1 => self.send_now(a, b),
            2 => self.matched(a),
            3 => self.discard(a),
            6 => self.pair.hold_acks(a % 2 == 1),
            7 => self.poll(a),
            15 if b == 0 => {
                self.pair.finish();
                self.finished = true;
            }
            _ => return self.give(self.packet(call % 16, a, b)),
        }
        true
    }

    /// A packet of the peer, usually valid.
    fn packet(&self, which: u8, a: u8, b: u8) -> Packet {
        let token = u64::from(a) % (self.sends.len() as u64 + 2);
        let incoming = |kind| Packet::new(kind, THEIRS, OURS);
        let (len, srqid) = (u32::from(b) % 12, u64::from(a) % 6);
        match which {
            8 => Packet { srqid, len, msglen: len.into(), ..incoming(PacketType::Data) },
            9 => Packet {
                srqid,
                len,
                msglen: u64::from(len) + u64::from(a / 8),
                ..incoming(PacketType::DataSync)
            },
            5 | 10 => self.continuation(a, b),
            11 => Packet { srqid: token, drqid: b.into(), ..incoming(PacketType::SyncAck) },
            12 => incoming(PacketType::ProtoAck),
            4 | 13 => Packet { srqid, ..incoming(PacketType::Cancel) },
            14 if b & 1 == 0 => Packet { srqid: token, ..incoming(PacketType::CancelYes) },
            14 => Packet { srqid: token, ..incoming(PacketType::CancelNo) },
            _ => self.invalid_packet(a, b),
        }
    }

    fn continuation(&self, a: u8, b: u8) -> Packet {
        let kind = PacketType::Data;
        let Some(id) = self.ids.get(usize::from(a) % self.ids.len().max(1)) else {
            return Packet { drqid: a.into(), len: 1, msglen: 2, ..Packet::new(kind, THEIRS, OURS) };
        };
        let msglen = self.arrivals.get(id).map_or(9, |incoming| incoming.msglen);
        Packet { drqid: id.drqid(), len: u32::from(b) % 12, msglen, ..Packet::new(kind, THEIRS, OURS) }
    }

    /// A packet with extreme numbers or other processes.
    fn invalid_packet(&self, a: u8, b: u8) -> Packet {
        let number = [0, 1, u64::MAX, u64::MAX - 1, 1 << 32, 1 << 63, 255, (1 << 32) - 1][usize::from(b) % 8];
        let kind = PacketType::from_code(u32::from(a) % 8, Dialect::Final).expect("eight types");
        let src = if b >= 240 { OURS } else { THEIRS };
        let dest = if a >= 240 { THEIRS } else { OURS };
        let len = number.rotate_left(u32::from(a) / 8) as u32;
        Packet { len, srqid: number, drqid: number, msglen: number, ..Packet::new(kind, src, dest) }
    }

    fn next_send(&self, a: u8, b: u8) -> Send {
        Send {
            msglen: u64::from(b) % 30,
            completion: if a % 2 == 1 { Completion::Synchronous } else { Completion::Standard },
            rendezvous: a & 6 == 4,
            token: self.sends.len() as u64 + 1,
            ..Send::default()
        }
    }

    fn send(&mut self, a: u8, b: u8) {
        let send = self.next_send(a, b);
        if self.pair.send(send).is_ok() {
            assert!(!self.finished);
            self.sends.insert(send.token, Outgoing { send, ..Outgoing::default() });
        }
    }

    fn send_now(&mut self, a: u8, b: u8) {
        let send = self.next_send(a, b);
        if let Some(packet) = self.pair.try_send_now(&send) {
            assert!(!self.finished && send.completion == Completion::Standard);
            self.sends.insert(send.token, Outgoing { send, ..Outgoing::default() });
            let body = Body { token: send.token, offset: 0, len: packet.len, last: true };
            self.sent(Transmit { packet, body: Some(body) });
        }
    }

    fn id(&self, a: u8) -> Option<ArrivalId> {
        self.ids.get(usize::from(a) % self.ids.len().max(1)).copied()
    }

    fn matched(&mut self, a: u8) {
        let Some(id) = self.id(a) else { return };
        let waits = self.arrivals.get(&id).is_some_and(|incoming| !incoming.matched);
        assert_eq!(self.pair.matched(id).is_ok(), waits);
        if waits {
            self.take(id);
        }
    }

    fn take(&mut self, id: ArrivalId) {
        let incoming = self.arrivals.get_mut(&id).expect("it waits");
        incoming.matched = true;
        self.synchronous_matched += u64::from(incoming.synchronous);
        if incoming.received == incoming.msglen {
            self.arrivals.remove(&id);
        }
    }

    fn discard(&mut self, a: u8) {
        let Some(id) = self.id(a) else { return };
        let incoming = self.arrivals.get(&id).copied();
        assert_eq!(self.pair.discard(id).is_ok(), incoming.is_some_and(|incoming| !incoming.drained));
        if incoming.is_some_and(|incoming| !incoming.matched) {
            self.take(id);
        }
        if let Some(incoming) = self.arrivals.get_mut(&id) {
            incoming.drained = true;
        }
    }

    fn poll(&mut self, a: u8) {
        for _ in 0..=a {
            let wants = self.pair.wants_to_send();
            let transmit = self.pair.poll_transmit();
            assert_eq!(transmit.is_some(), wants);
            match transmit {
                Some(transmit) => self.sent(transmit),
                None => break,
            }
        }
    }

    fn sent(&mut self, transmit: Transmit) {
        let Transmit { packet, body } = transmit;
        assert_eq!((packet.src, packet.dest, body.is_some()), (OURS, THEIRS, packet.kind.has_data()));
        if packet.kind == PacketType::ProtoAck {
            self.acks_out += 1;
        } else {
            self.counted_out += 1;
        }
        match packet.kind {
            PacketType::SyncAck => self.syncacks_out += 1,
            PacketType::CancelYes | PacketType::CancelNo => self.replies_out += 1,
            PacketType::Cancel => panic!("the machine requests no cancel"),
            _ => {}
        }
        let Some(body) = body else { return };
        let outgoing = self.sends.get_mut(&body.token).expect("sent");
        assert_eq!(
            (body.offset, body.len, packet.msglen),
            (outgoing.offset, packet.len, outgoing.send.msglen)
        );
        assert!(packet.len <= self.settings.maxdatalen);
        if outgoing.left {
            assert!(outgoing.matched && packet.len > 0, "{outgoing:?}");
        } else {
            assert!(body.token > self.latest_first, "first packets leave in order");
            self.latest_first = body.token;
        }
        outgoing.left = true;
        outgoing.offset += u64::from(packet.len);
        assert_eq!(body.last, outgoing.offset == outgoing.send.msglen);
    }

    fn give(&mut self, packet: Packet) -> bool {
        let Ok(event) = self.pair.handle_packet(&packet) else { return false };
        assert!(!matches!(packet.kind, PacketType::CancelYes | PacketType::CancelNo));
        assert!(packet.kind == PacketType::Fini || (packet.src, packet.dest) == (THEIRS, OURS));
        self.counted_in += u64::from(packet.kind.is_counted());
        self.acks_in += u64::from(packet.kind == PacketType::ProtoAck);
        self.cancels_in += u64::from(packet.kind == PacketType::Cancel);
        self.happened(event, &packet);
        true
    }

    fn happened(&mut self, event: Event, packet: &Packet) {
        match event {
            Event::Arrived(arrival) => {
                assert!(u64::from(arrival.len) <= arrival.msglen && arrival.len <= self.settings.maxdatalen);
                assert_eq!(arrival.len, packet.data_len());
                let Some(id) = arrival.id else { return };
                assert!(!self.ids.contains(&id));
                self.ids.push(id);
                let (received, msglen) = (arrival.len.into(), arrival.msglen);
                let synchronous = arrival.synchronous;
                let incoming = Incoming { received, msglen, synchronous, matched: false, drained: false };
                self.arrivals.insert(id, incoming);
            }
            Event::Continued { arrival, offset, len, last } => {
                let incoming = &self.arrivals[&arrival];
                assert!(incoming.matched && !incoming.drained && len > 0 && len == packet.data_len());
                assert_eq!(offset, incoming.received);
                assert_eq!(self.continued(arrival, len), last);
            }
            Event::Matched { token } => {
                let outgoing = self.sends.get_mut(&token).expect("sent");
                assert!(outgoing.left && !outgoing.matched, "{outgoing:?}");
                outgoing.matched = true;
            }
            Event::Withdraw { arrival } => {
                assert!(!self.arrivals.remove(&arrival).expect("it waits").matched);
            }
            Event::Nothing if packet.kind.has_data() => {
                let id = *self.ids.iter().find(|id| id.drqid() == packet.drqid).expect("known");
                assert!(self.arrivals[&id].drained);
                self.continued(id, packet.len);
            }
            Event::Nothing | Event::Fini => {}
        }
    }

    /// Returns whether that was the last part.
    fn continued(&mut self, id: ArrivalId, len: u32) -> bool {
        let incoming = self.arrivals.get_mut(&id).expect("it continues");
        incoming.received += u64::from(len);
        let last = incoming.received == incoming.msglen;
        if last {
            self.arrivals.remove(&id);
        }
        last
    }

    fn check(&self) {
        self.pair.check_invariants();
        let (flow, ackmark) = (self.pair.flow(), u64::from(self.settings.ackmark));
        assert_eq!(u64::from(flow.sent()), self.counted_out - self.acks_in * ackmark);
        assert_eq!(u64::from(flow.rcvd()), self.counted_in - self.acks_out * ackmark);
        assert!(self.replies_out <= self.cancels_in && self.syncacks_out <= self.synchronous_matched);
        if flow.is_open() && !self.pair.wants_to_send() {
            assert_eq!((self.replies_out, self.syncacks_out), (self.cancels_in, self.synchronous_matched));
            assert!(self.sends.values().all(|outgoing| outgoing.left));
        }
        if self.pair.is_done() {
            assert!(self.finished && self.pending().is_empty());
        }
    }

    fn pending(&self) -> Vec<u64> {
        let is_pending = |(_, outgoing): &(&u64, &Outgoing)| outgoing.is_pending(self.settings.maxdatalen);
        self.sends.iter().filter(is_pending).map(|(token, _)| *token).collect()
    }

    fn abandon(mut self) {
        let pending = self.pending();
        let lost = self.pair.abandon();
        self.pair.check_invariants();
        assert_eq!(lost.sends, pending);
        let of = |picks: fn(&Incoming) -> bool| -> BTreeSet<ArrivalId> {
            self.arrivals.iter().filter(|(_, incoming)| picks(incoming)).map(|(id, _)| *id).collect()
        };
        assert_eq!(BTreeSet::from_iter(lost.unmatched), of(|incoming| !incoming.matched));
        assert_eq!(BTreeSet::from_iter(lost.receives), of(|incoming| incoming.matched && !incoming.drained));
    }
}

impl Outgoing {
    fn is_long(&self, maxdatalen: u32) -> bool {
        self.send.msglen > u64::from(maxdatalen)
    }

    fn is_pending(&self, maxdatalen: u32) -> bool {
        let is_waited_for = self.is_long(maxdatalen) || self.send.completion == Completion::Synchronous;
        !self.left || self.offset < self.send.msglen || (is_waited_for && !self.matched)
    }
}
