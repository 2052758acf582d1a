//! Target of the reliable datagram protocol, under any sequence of calls and packets.

use std::collections::{BTreeMap, BTreeSet};

use mpjdev_proto::completion::Completion;
use mpjdev_proto::datagram::extension::{Extension, Fragment, Grant, Request, Sack};
use mpjdev_proto::datagram::header::{Header, Mode, Numbers};
use mpjdev_proto::datagram::layout::SACK_WORDS_MAX;
use mpjdev_proto::datagram::packet::Packet;
use mpjdev_proto::datagram::reliable::connection::{Connection, Disposition, Event};
use mpjdev_proto::datagram::reliable::message_rx::{ArrivalId, Delivery};
use mpjdev_proto::datagram::reliable::message_tx::{Cancel, Send};
use mpjdev_proto::datagram::reliable::settings::{DATAGRAM_LEN_MIN, Path, Settings};
use mpjdev_proto::datagram::reliable::time::{MICROSECOND, MILLISECOND, Nanos};
use mpjdev_proto::datagram::sequence::FullSequence;

/// Runs calls after a settings octet: one octet for the call and twelve for its arguments.
///
/// Invariants, after each step: the connection's own. Output is finite, and each packet is valid and fits a
/// datagram. Delivered octets are within their message. Slots in use differ. Sent messages are released once.
/// A closed connection sends one reset at most.
pub fn reliable(input: &[u8]) {
    let Some((&settings, calls)) = input.split_first() else { return };
    let mut model = Model::new(settings);
    for call in calls.chunks_exact(CALL_LEN) {
        model.step(call[0], &call[1..]);
        model.settle();
    }
}

/// Octets of a call.
const CALL_LEN: usize = 13;
/// Limit of the packets that one step can send: both windows, and a few without a number.
const LEAVING_MAX: usize = 256;

/// Model of the connection: the connection and the history of its calls and packets.
struct Model {
    connection: Connection,
    now: Nanos,
    /// Sent messages that are not released.
    kept: BTreeSet<u64>,
    sent: u64,
    arrivals: BTreeMap<ArrivalId, u64>,
    slots: BTreeSet<u16>,
    is_over: bool,
}

impl Model {
    fn new(choice: u8) -> Self {
        let window = [1, 2, 5, 40][usize::from(choice & 3)];
        let settings = Settings {
            ours: 7,
            theirs: 8,
            datagram_len_max: [DATAGRAM_LEN_MIN, 200][usize::from(choice >> 2 & 1)],
            receive_window: window,
            send_window: [0, 1, 5, 40][usize::from(choice >> 3 & 3)],
            arrivals_max: 1 + usize::from(window),
            peer_sends_max: 4,
            sends_max: 30,
            checked: choice & 32 != 0,
            ..Settings::new(if choice & 64 == 0 { Path::PRIVATE } else { Path::UNKNOWN })
        };
        Self {
            connection: Connection::new(settings, 0).expect("good settings"),
            now: 0,
            kept: BTreeSet::new(),
            sent: 0,
            arrivals: BTreeMap::new(),
            slots: BTreeSet::new(),
            is_over: false,
        }
    }

    fn step(&mut self, which: u8, with: &[u8]) {
        match which % 16 {
            0..=7 => self.datagram(with),
            8 | 9 => self.send(with),
            10 => {
                if self.connection.cancel(u64::from(with[0])) == Cancel::Done {
                    assert!(self.kept.remove(&u64::from(with[0])), "it was sent and not released");
                }
            }
            11 => self.match_one(with),
            12 => {
                self.now += u64::from(with[0]) * 20 * MICROSECOND;
                self.connection.handle_drained(self.now);
            }
            13 => {
                self.now += u64::from(with[0]) * u64::from(with[1]) * MILLISECOND;
                self.connection.handle_timeout(self.now);
            }
            14 => self.connection.hold(with[0] & 1 != 0),
            _ => match with[0] % 8 {
                0 => self.connection.abort(),
                1 => self.connection.close(self.now + u64::from(with[1]) * MILLISECOND),
                _ => self.connection.flush(),
            },
        }
    }

    fn send(&mut self, with: &[u8]) {
        let send = Send {
            context: u64::from(with[0] & 3) << 40,
            len: u64::from(with[1]) * u64::from(with[2]),
            completion: if with[0] & 4 == 0 { Completion::Standard } else { Completion::Synchronous },
            rendezvous: with[0] & 8 != 0,
            token: self.sent + 1,
            ..Send::default()
        };
        if self.connection.send(send).is_ok() {
            self.sent += 1;
            self.kept.insert(send.token);
        }
    }

    fn match_one(&mut self, with: &[u8]) {
        let place = usize::from(with[0]) % self.arrivals.len().max(1);
        let Some(id) = self.arrivals.keys().nth(place).copied() else { return };
        if self.connection.matched(id).is_err() || with[1] & 1 != 0 {
            let _ = self.connection.discard(id);
            self.arrivals.remove(&id);
        }
    }

    /// Handles a packet that is nearly valid. The parser would refuse an invalid one.
    fn datagram(&mut self, with: &[u8]) {
        let packet = self.packet(with);
        if packet.check().is_err() {
            return;
        }
        match self.connection.handle_datagram(self.now, &packet) {
            Disposition::Deliver(delivery) => self.delivered(delivery),
            Disposition::Buffer { slot } => {
                assert!(slot < self.connection.settings().receive_window);
                assert!(self.slots.insert(slot), "slot {slot} is in use");
            }
            Disposition::Drop => {}
        }
    }

    fn packet(&self, with: &[u8]) -> Packet {
        let [kind, flags, seq, ack, id, destination, total, offset_octet, sack, ..] = *with else {
            unreachable!("a call has twelve octets");
        };
        let modes =
            [Mode::Short, Mode::Long, Mode::RequestSend, Mode::OkToSend, Mode::AntiSend, Mode::AntiSendOk];
        let header = Header {
            numbers: Numbers::default(),
            mode: modes[usize::from(kind & 7) % modes.len()],
            context_id: u16::from(with[9] & 3),
            lrank: 0,
            tag: 0,
            len: u32::from(with[10]),
        };
        let (message_id, destination_id) = (u32::from(id), u32::from(destination) << 16 | u32::from(id & 3));
        let (total, offset) = (u64::from(total) * u64::from(with[11]), u64::from(offset_octet));
        let connection = if kind & 128 == 0 { 7 } else { 8 };
        let mut extension = Extension::new(connection, u16::from(with[11]));
        extension.ack_req = flags & 1 != 0;
        extension.nak = flags & 2 != 0;
        extension.fin = flags & 4 != 0 && total == 0;
        extension.rst = flags & 4 != 0 && kind & 128 != 0;
        extension.sync = flags & 8 != 0;
        extension.duplicate = flags & 16 != 0;
        extension.sack = (flags & 32 != 0).then(|| {
            let words = [u64::from(sack) * 0x0101_0101; SACK_WORDS_MAX];
            Sack::new(&words[..usize::from(offset_octet) % words.len()])
        });
        extension.delay_us = (flags & 64 != 0).then_some(u16::from(sack));
        extension.context = (flags & 128 != 0).then_some(u64::from(sack) << 40);
        match kind >> 5 & 3 {
            1 => extension.request = Some(Request { message_id, total }),
            2 => extension.grant = Some(Grant { message_id, destination_id, granted: total }),
            3 => extension.fragment = Some(Fragment { message_id, destination_id, total, offset }),
            _ => {}
        }
        // Numbers near the expected ones, and numbers with the same low bits.
        let full = |low: u8| FullSequence::from_bits(u32::from(low) | u32::from(with[9] >> 2 & 1) << 15);
        let mut packet = Packet { header, extension };
        packet.number((kind & 8 == 0).then(|| full(seq)), (kind & 16 == 0).then(|| full(ack)));
        packet
    }

    fn delivered(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Arrived(arrival) => {
                assert!(u64::from(arrival.len) <= arrival.total, "{arrival:?}");
                if let Some(id) = arrival.id {
                    assert!(self.arrivals.insert(id, arrival.total).is_none(), "{arrival:?} is known");
                }
            }
            Delivery::Continued { arrival, offset, len, .. } => {
                let total = *self.arrivals.get(&arrival).expect("a message that has begun");
                assert!(offset <= total && u64::from(len) <= total - offset, "{delivery:?} of {total}");
            }
        }
    }

    /// Work of a driver after each call.
    fn settle(&mut self) {
        while let Some((slot, delivery)) = self.connection.poll_buffered(self.now) {
            assert!(self.slots.remove(&slot), "slot {slot} is empty");
            self.delivered(delivery);
        }
        while let Some(event) = self.connection.poll_event() {
            assert!(!self.is_over, "{event:?} of a connection that is over");
            match event {
                Event::Released { token } => assert!(self.kept.remove(&token), "{token} is released twice"),
                Event::Cancelled { token } => drop(self.kept.remove(&token)),
                Event::Withdraw { arrival } => drop(self.arrivals.remove(&arrival)),
                Event::Closed | Event::Failed(_) => self.is_over = true,
                Event::Matched { .. } | Event::NotCancelled { .. } | Event::PeerFinished => {}
            }
        }
        assert_eq!(self.is_over, self.connection.is_over());
        let mut leaving = 0;
        while let Some(transmit) = self.connection.poll_transmit(self.now) {
            let Packet { header, .. } = transmit.packet;
            transmit.packet.check().expect("what leaves is a packet");
            let len = transmit.packet.head_len() + header.len as usize + transmit.packet.trailer_len();
            assert!(len <= self.connection.settings().datagram_len_max, "{len} octets");
            assert_eq!(transmit.body.map_or(0, |body| body.len), header.len);
            if let Some(body) = transmit.body {
                assert!(self.kept.contains(&body.token), "{body:?} is not there any more");
            }
            leaving += 1;
            assert!(leaving <= if self.is_over { 1 } else { LEAVING_MAX }, "packets without end");
        }
        self.connection.check();
    }
}
