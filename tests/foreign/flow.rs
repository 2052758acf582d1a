//! Flow control between a rank of ours and a foreign one (IMPI 9).
//!
//! The limits of a receiver's memory are those of IMPI 18, 8.

use mpjdev_buffer::Encoding;
use mpjdev_engine::{Config, DeviceError, Mode};
use mpjdev_transport::tcp::Terms;

use crate::site::{ANY, TERMS, content, from, octets, pair, usual_pair};
use crate::speaker::{DATASYNC, PROTOACK, SYNCACK};

#[test]
fn no_more_than_hiwater_packets_leave_before_they_are_acknowledged() {
    let (site, mut speaker) = usual_pair();
    speaker.acknowledges = false;
    let message = site.message(Encoding::Big, &[1], &[]);
    let ids: Vec<_> =
        (0..20).map(|tag| site.comm().isend(&message, 1, tag, Mode::Standard).expect("isend")).collect();
    drop(message);
    let mut tags = Vec::new();
    // The speaker counts packets and fails past hiwater. A ProtoAck stands for ackmark, 4.
    for (more, acknowledge) in [(8, true), (8, true), (4, false)] {
        tags.extend((0..more).map(|_| speaker.take().0.tag));
        if acknowledge {
            site.until("all that may leave has", |_| true);
            speaker.acknowledge();
        }
    }
    assert_eq!(tags, (0..20).collect::<Vec<_>>());
    for id in ids.into_iter().flatten() {
        site.wait(id).expect("all have left");
    }
    site.check_clean();
}

/// A sender that respects hiwater stops when unreceived messages fill its share of memory, and continues when
/// they are received.
#[test]
fn a_flood_is_acknowledged_only_as_far_as_there_is_memory_for_it() {
    let credit = 40 * (256 + 64);
    let (site, mut speaker) = pair(TERMS, Config { credit, ..Config::default() });
    let plain = octets(Encoding::Big, &[1; 232], &[]);
    assert_eq!(plain.len(), 256);
    let mut sent = speaker.flood(400, |speaker, tag| speaker.send(tag as i32, &plain)) as i32;
    assert!((40..60).contains(&sent), "{sent} messages have been taken");
    assert!(site.pool.used() < 60 * 512, "{} octets", site.pool.used());
    for tag in 0..400 {
        while sent < 400 && (speaker.may_send(0) || sent <= tag) {
            speaker.send(sent, &plain);
            sent += 1;
        }
        let message = site.recv(from(1, tag), 300).expect("in its turn").message.expect("a message");
        assert_eq!(content(&site, message).0.len(), 232);
        speaker.read_available();
    }
    assert_eq!(sent, 400);
    site.check_clean();
}

/// The same for numbered messages and for empty ones.
#[test]
fn numbered_and_empty_messages_count_as_well() {
    for (numbered, len) in [(true, 0), (true, 8), (false, 0), (true, 256)] {
        let (site, mut speaker) = pair(TERMS, Config { credit: 4000, ..Config::default() });
        let sent = speaker.flood(200, |speaker, _| match numbered {
            true => drop(speaker.begin(5, &vec![0; len])),
            false => speaker.send(5, &vec![0; len]),
        });
        assert!(sent < 100, "{sent} of {len} octets");
        assert!(site.pool.used() < 8000, "{} octets", site.pool.used());
        for _ in 0..sent {
            assert!(site.recv(ANY, 300).is_err(), "no message of ours");
            speaker.read_available();
        }
        site.check_clean();
    }
}

#[test]
fn a_flood_above_hiwater_ends_its_connection() {
    let (site, mut speaker) = pair(TERMS, Config { credit: 1000, ..Config::default() });
    let plain = octets(Encoding::Big, &[1; 232], &[]);
    let len = plain.len() as u32;
    let head = crate::speaker::Head { len, msglen: len.into(), tag: 5, ..speaker.head(0) };
    let mut packet = head.octets();
    packet.extend(plain);
    for _ in 0..1000 {
        if !speaker.try_put_octets(&packet) {
            break;
        }
    }
    let error = site.recv(from(1, 4), 300).unwrap_err();
    let DeviceError::PeerFailed { rank: 1, why } = &error else { panic!("{error}") };
    assert!(why.contains("more than hiwater, 8, packets"), "{why}");
    // Messages that arrived before can be received.
    assert!(site.recv(from(1, 5), 300).is_ok());
    assert!(site.pool.used() < 40 * 512, "{} octets", site.pool.used());
}

/// With the smallest marks every packet waits for the one before it.
#[test]
fn messages_of_all_lengths_pass_where_all_limits_are_one() {
    let terms = Terms { maxdatalen: 1, ackmark: 1, hiwater: 1, ..Terms::default() };
    let (site, mut speaker) = pair(terms, Config::default());
    let bytes: Vec<i8> = (0..40).collect();
    let plain = octets(Encoding::Little, &bytes, &[]);
    let message = site.message(Encoding::Little, &bytes, &[]);
    let id = site.comm().isend(&message, 1, 3, Mode::Standard).expect("isend").expect("pending");
    drop(message);
    assert_eq!(speaker.recv().octets, plain);
    site.wait(id).expect("it has left");
    let id = site.comm().irecv(from(1, 4), 48, None).expect("irecv");
    speaker.send_any(4, &plain);
    let message = site.wait(id).expect("all of it").message.expect("a message");
    assert_eq!(content(&site, message).0, bytes);
    site.check_clean();
}

/// The rest of a matched long message arrives although others fill the memory, if its sender takes turns.
#[test]
fn matched_long_message_arrives_through_a_flood_of_others() {
    for matched_first in [true, false] {
        let (site, mut speaker) = pair(TERMS, Config { credit: 4000, ..Config::default() });
        let bytes = vec![5; 40_000];
        let plain = octets(Encoding::Big, &bytes, &[]);
        let other = octets(Encoding::Big, &[1; 200], &[]);
        let posted = matched_first.then(|| site.comm().irecv(from(1, 5), 50_000, None).expect("irecv"));
        let long = speaker.begin(5, &plain);
        let mut others = 0;
        if !matched_first {
            others = speaker.flood(200, |speaker, _| speaker.send(6, &other));
            assert!(others < 100, "{others}");
        }
        let id = posted.unwrap_or_else(|| site.comm().irecv(from(1, 5), 50_000, None).expect("irecv"));
        let answer = speaker.expect(SYNCACK, long.srqid);
        for part in plain[256..].chunks(256) {
            let head = crate::speaker::Head { kind: 0, len: part.len() as u32, drqid: answer.drqid, ..long };
            speaker.send_packet(&head, part);
            speaker.send(6, &other);
            others += 1;
        }
        let message = site.wait(id).expect("all of it").message.expect("a message");
        assert_eq!(content(&site, message).0, bytes);
        for _ in 0..others {
            let message = site.recv(from(1, 6), 300).expect("in its turn").message.expect("a message");
            assert_eq!(content(&site, message).0.len(), 200);
            speaker.read_available();
        }
        site.check_clean();
    }
}

/// SyncAcks of a rank wait at hiwater as well, and are sent later.
#[test]
fn answers_wait_for_acknowledgements_and_are_not_lost() {
    let (site, mut speaker) = usual_pair();
    speaker.acknowledges = false;
    let plain = octets(Encoding::Big, &[1], &[]);
    let ids: Vec<_> = (0..20).map(|_| site.comm().irecv(ANY, 16, None).expect("irecv")).collect();
    let mut begun = Vec::new();
    for tag in 0..20 {
        begun.push(speaker.begin(tag, &plain));
        assert_eq!(begun[tag as usize].kind, DATASYNC);
    }
    for id in ids {
        site.wait(id).expect("a message");
    }
    speaker.acknowledges = true;
    speaker.acknowledge();
    for head in begun {
        speaker.expect(SYNCACK, head.srqid);
    }
    assert_ne!(PROTOACK, SYNCACK);
    site.check_clean();
}
