//! Fragments of a message with an id: an inconsistent one is counted and has no other effect.

use mpjdev_proto::datagram::extension::{Fragment, Grant, Request};
use mpjdev_proto::datagram::header::{Header, Mode};
use mpjdev_proto::datagram::packet::Packet;
use mpjdev_proto::datagram::reliable::connection::{Connection, Disposition, Event};
use mpjdev_proto::datagram::reliable::content::Body;
use mpjdev_proto::datagram::reliable::message_rx::{Arrival, ArrivalId, Delivery};
use mpjdev_proto::datagram::reliable::message_tx::{Cancel, Send};
use mpjdev_proto::datagram::reliable::settings::{Path, Settings};
use mpjdev_proto::datagram::sequence::FullSequence;

use super::world::short;

/// An end, and the number of its peer's next packet.
struct End {
    connection: Connection,
    next: u64,
}

impl End {
    fn new() -> Self {
        Self { connection: Connection::new(Settings::new(Path::PRIVATE), 0).expect("settings"), next: 0 }
    }

    /// The peer's next packet.
    fn take(&mut self, mode: Mode, len: u32, fill: impl FnOnce(&mut Packet)) -> Disposition {
        let mut packet = Packet { header: Header { mode, len, ..Header::default() }, ..Packet::default() };
        packet.number(Some(FullSequence::of(self.next)), None);
        fill(&mut packet);
        packet.check().expect("no packet that a parser refuses");
        self.next += 1;
        let disposition = self.connection.handle_datagram(0, &packet);
        self.connection.check();
        disposition
    }

    fn begin(&mut self, mode: Mode, len: u32, fill: impl FnOnce(&mut Packet)) -> ArrivalId {
        match self.take(mode, len, fill) {
            Disposition::Deliver(Delivery::Arrived(Arrival { id: Some(id), .. })) => id,
            other => panic!("no message begins: {other:?}"),
        }
    }

    fn part(&mut self, fragment: Fragment, len: u32) -> Disposition {
        self.take(Mode::Long, len, |packet| packet.extension.fragment = Some(fragment))
    }

    /// A packet without a valid part.
    #[track_caller]
    fn refuses(&mut self, fragment: Fragment, len: u32) {
        let before = self.connection.counters().violations;
        assert_eq!(self.part(fragment, len), Disposition::Drop, "{fragment:?}, {len} octets");
        assert_eq!(self.connection.counters().violations, before + 1, "{fragment:?}, {len} octets");
    }

    fn answer(&mut self, mode: Mode, grant: Grant) -> (Vec<Event>, u64) {
        let before = self.connection.counters().violations;
        assert_eq!(self.take(mode, 0, |packet| packet.extension.grant = Some(grant)), Disposition::Drop);
        let events = std::iter::from_fn(|| self.connection.poll_event()).collect();
        (events, self.connection.counters().violations - before)
    }

    /// Sends a new message; returns its packet.
    fn sends(&mut self, send: Send) -> Packet {
        self.connection.send(send).expect("there is room");
        self.connection.handle_drained(0);
        self.connection.poll_transmit(0).expect("it leaves").packet
    }
}

const TOTAL: u64 = 100;

/// Proves that fragments of a granted message are accepted only after the match, with its id and length, and
/// up to its octets.
#[test]
fn granted_parts_must_fit_their_message() {
    let mut end = End::new();
    let request = Request { message_id: 5, total: TOTAL };
    let id = end.begin(Mode::RequestSend, 8, |packet| packet.extension.request = Some(request));
    let destination_id = id.destination_id();
    let right = Fragment { message_id: 5, destination_id, total: TOTAL, offset: 8 };
    end.refuses(right, 10);
    end.connection.matched(id).expect("it waits for that");
    end.refuses(Fragment { message_id: 6, ..right }, 10);
    end.refuses(Fragment { total: TOTAL + 1, ..right }, 10);
    end.refuses(Fragment { destination_id: destination_id + (1 << 22), ..right }, 10);
    end.refuses(Fragment { destination_id: destination_id + 1, ..right }, 10);
    end.refuses(right, 0);
    let continued = |offset, len, is_last| {
        Disposition::Deliver(Delivery::Continued { arrival: id, offset, len, is_last })
    };
    assert_eq!(end.part(Fragment { offset: 50, ..right }, 50), continued(50, 50, false));
    end.refuses(right, 43);
    assert_eq!(end.part(right, 42), continued(8, 42, true));
    end.refuses(right, 1);
}

/// Proves that the fragments of a message without a grant are accepted in order, one message at a time, and
/// that no destination id names it.
#[test]
fn parts_without_a_grant_must_follow_each_other() {
    let mut end = End::new();
    let first = Fragment { message_id: 6, destination_id: 0, total: TOTAL, offset: 0 };
    end.refuses(Fragment { total: 10, ..first }, 10);
    end.refuses(first, 0);
    let id = end.begin(Mode::Long, 20, |packet| packet.extension.fragment = Some(first));
    end.connection.matched(id).expect("it waits for that");
    let right = Fragment { offset: 20, ..first };
    end.refuses(Fragment { message_id: 7, ..first }, 20);
    end.refuses(Fragment { message_id: 7, ..right }, 20);
    end.refuses(Fragment { total: TOTAL + 1, ..right }, 20);
    end.refuses(Fragment { offset: 21, ..right }, 20);
    end.refuses(right, 0);
    end.refuses(Fragment { destination_id: id.destination_id(), ..right }, 20);
    let last = Delivery::Continued { arrival: id, offset: 20, len: 80, is_last: true };
    assert_eq!(end.part(right, 80), Disposition::Deliver(last));
    end.refuses(right, 80);
}

/// Proves that an RTS with more than its first octets is refused: an unmatched message occupies memory for
/// those only.
#[test]
fn rts_with_more_than_its_first_octets_is_refused() {
    let mut end = End::new();
    for (len, total, violations) in
        [(16, 8000, 0), (17, 8000, 1), (1000, 8000, 2), (17, 17, 3), (16, 16, 3), (0, 0, 3)]
    {
        let message_id = len + 7 * total;
        let request = Request { message_id, total: total.into() };
        let disposition = end.take(Mode::RequestSend, len, |packet| packet.extension.request = Some(request));
        let is_taken = matches!(disposition, Disposition::Deliver(Delivery::Arrived(_)));
        assert_eq!(end.connection.counters().violations, violations, "{len} of {total}");
        assert_eq!(is_taken, len <= 16, "{len} of {total}");
    }
}

/// Proves that a message id names one message at a time, and that the length of a whole message must match.
#[test]
fn message_ids_name_one_message() {
    let mut end = End::new();
    let fill = |packet: &mut Packet| {
        packet.extension.request = Some(Request { message_id: 9, total: 8 });
        packet.extension.sync = true;
    };
    let id = end.begin(Mode::Short, 8, fill);
    assert_eq!(end.take(Mode::Short, 8, fill), Disposition::Drop);
    assert_eq!(end.take(Mode::Short, 7, fill), Disposition::Drop);
    assert_eq!(end.connection.counters().violations, 2);
    end.connection.matched(id).expect("it waits for that");
    assert!(end.connection.matched(id).is_err());
    end.begin(Mode::Short, 8, fill);
}

/// Proves that nothing is sent for an unrequested grant, a partial grant, or one without a destination, and
/// that a grant counts once.
#[test]
fn unrequested_grant_is_refused() {
    let mut end = End::new();
    let send = Send { rendezvous: true, len: TOTAL, ..short(0) };
    let request = end.sends(send).extension.request.expect("it is announced");
    let right = Grant { message_id: request.message_id, destination_id: 3, granted: TOTAL };
    for wrong in [
        Grant { message_id: right.message_id + 1, ..right },
        Grant { granted: TOTAL - 1, ..right },
        Grant { granted: u64::MAX, ..right },
        Grant { destination_id: 0, ..right },
    ] {
        assert_eq!(end.answer(Mode::OkToSend, wrong), (Vec::new(), 1), "{wrong:?}");
    }
    // No cancel was requested.
    for granted in [0, u64::MAX] {
        assert_eq!(end.answer(Mode::AntiSendOk, Grant { granted, ..right }), (Vec::new(), 1));
    }
    assert_eq!(end.connection.cancel(send.token), Cancel::Asked);
    assert_eq!(end.answer(Mode::OkToSend, right), (vec![Event::Matched { token: send.token }], 0));
    assert_eq!(end.answer(Mode::OkToSend, right), (Vec::new(), 1));
    // It is matched, so it cannot be cancelled, whatever the peer answers.
    assert_eq!(end.answer(Mode::AntiSendOk, Grant { granted: 0, ..right }), (Vec::new(), 1));
    let events = vec![Event::NotCancelled { token: send.token }];
    assert_eq!(end.answer(Mode::AntiSendOk, Grant { granted: u64::MAX, ..right }), (events, 0));
    end.connection.handle_drained(0);
    let left: Vec<_> = std::iter::from_fn(|| end.connection.poll_transmit(0)).collect();
    let parts: Vec<_> = left.iter().filter_map(|transmit| transmit.packet.extension.fragment).collect();
    let message_id = right.message_id;
    assert_eq!(parts, [Fragment { message_id, destination_id: 3, total: TOTAL, offset: 16 }]);
    assert_eq!(end.answer(Mode::OkToSend, right), (Vec::new(), 1));
}

/// Proves that granted octets wait until they are there, fragment by fragment, and that others leave
/// meanwhile.
#[test]
fn granted_octets_wait_until_they_are_there() {
    let mut end = End::new();
    let len = 3 * end.connection.settings().room() as u64;
    let send = Send { len, rendezvous: true, token: 7, ..Send::default() };
    let request = end.sends(send).extension.request.expect("it is long");
    let granted = Grant { message_id: request.message_id, destination_id: 3, granted: len };
    assert_eq!(end.answer(Mode::OkToSend, granted).0, [Event::Matched { token: 7 }]);
    end.connection.send(short(8)).expect("there is room");
    end.connection.handle_drained(0);
    let mut sent = Vec::new();
    for there in [16, len / 2, len / 2, len - 1, len] {
        let is_there = |body: &Body| body.token != 7 || body.offset + u64::from(body.len) <= there;
        while let Some(transmit) = end.connection.poll_transmit_if(0, is_there) {
            end.connection.check();
            let Some(body) = transmit.body else { continue };
            assert!(is_there(&body), "{body:?} is sent when {there} octets are there");
            sent.push(body.token);
        }
    }
    let (others, parts): (Vec<u64>, Vec<u64>) = sent.iter().partition(|token| **token != 7);
    assert_eq!((others, sent[0]), (vec![9], 9));
    assert!(parts.len() >= 3 && end.connection.poll_transmit(0).is_none(), "{parts:?}");
}

/// Proves that a peer that exceeds its announced sends gets answers for matched messages only, within the
/// limit.
#[test]
fn forged_sends_are_answered_within_limits() {
    let settings =
        Settings { receive_window: 4, peer_sends_max: 1, arrivals_max: 100, ..Settings::new(Path::PRIVATE) };
    let mut end = End { connection: Connection::new(settings, 0).expect("settings"), next: 0 };
    let mut sent = 0;
    let mut send = |end: &mut End| {
        let (mut ids, before) = (Vec::new(), end.connection.counters().beyond_window);
        while end.connection.counters().beyond_window == before && sent < 500 {
            let request = Request { message_id: sent, total: 8 };
            sent += 1;
            let disposition = end.take(Mode::Short, 8, |packet| {
                (packet.extension.request, packet.extension.sync) = (Some(request), true);
            });
            if let Disposition::Deliver(Delivery::Arrived(Arrival { id: Some(id), .. })) = disposition {
                ids.push(id);
            }
        }
        ids
    };
    let waiting = send(&mut end);
    assert!((90..=100).contains(&waiting.len()), "{}", waiting.len());
    for id in waiting {
        end.connection.matched(id).expect("it waits for that");
        end.connection.check();
    }
    // More answers wait than for an honest peer: the packets permitted meanwhile may still arrive.
    for most in [4, 0] {
        end.next -= 1;
        let more = send(&mut end);
        assert!(more.len() <= most, "{more:?}");
        more.iter().for_each(|id| end.connection.matched(*id).expect("it waits for that"));
        end.connection.check();
    }
    assert_eq!(end.connection.counters().beyond_window, 3);
}
