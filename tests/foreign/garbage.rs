//! Garbage: a message that is none fails its receive, a packet that is none ends its connection. Both report
//! the numbers.

use mpjdev_buffer::Encoding;
use mpjdev_engine::{Config, DeviceError};
use mpjdev_proto::send_policy::LengthError;

use crate::site::{ANY, Site, content, from, octets, pair, usual_pair};
use crate::speaker::{CANCELNO, CANCELYES, DATA, DATASYNC, Head, PROTOACK, SYNCACK, Speaker};
use crate::vectors;

/// Checks that the next two messages of the stream are whole.
#[track_caller]
fn check_next_messages(site: &Site, speaker: &mut Speaker) {
    for encoding in [Encoding::Big, Encoding::Little] {
        speaker.send(6, &octets(encoding, &[4, 5, 6], &[9]));
        let message = site.recv(ANY, 24).expect("the next message").message.expect("a message");
        assert_eq!(content(site, message), (vec![4, 5, 6], vec![9]));
    }
}

#[test]
fn octets_of_any_length_that_are_no_message_fail_one_receive_with_the_numbers() {
    for posted in [false, true] {
        let (site, mut speaker) = usual_pair();
        for len in (0..42).chain([255, 256]) {
            let id = posted.then(|| site.comm().irecv(ANY, 300, None).expect("irecv"));
            speaker.send(7, &vec![0xff; len]);
            let error = match id {
                Some(id) => site.wait(id).unwrap_err(),
                None => site.recv(ANY, 300).unwrap_err(),
            };
            assert!(
                matches!(error, DeviceError::Damaged { .. } | DeviceError::Lengths { .. }),
                "{len}: {error}"
            );
            assert!(error.to_string().contains("rank 1") && error.to_string().contains("tag 7"), "{error}");
            check_next_messages(&site, &mut speaker);
        }
        site.check_clean();
    }
}

/// Ten octets, which another program's own message may have, are reported as ten.
#[test]
fn text_of_another_program_fails_the_receive_as_no_message() {
    let (site, mut speaker) = usual_pair();
    speaker.send(7, b"hello-impi");
    let error = site.recv(ANY, 300).unwrap_err().to_string();
    assert!(error.contains("10"), "{error}");
    speaker.send(7, b"");
    let error = site.recv(ANY, 300).unwrap_err().to_string();
    assert!(error.contains(" 0 ") || error.contains("0 octets"), "{error}");
    site.check_clean();
}

/// Damage past the first octets is found by the reader, not by the receive.
#[test]
fn damaged_golden_messages_fail_their_receive_or_their_reader() {
    let (site, mut speaker) = pair(mpjdev_transport::tcp::Terms::default(), Config::default());
    let damaged: Vec<_> = vectors::all().into_iter().filter(|vector| vector.error.is_some()).collect();
    assert!(damaged.len() >= 40);
    let mut failed = 0;
    for vector in &damaged {
        speaker.send(7, &vector.octets);
        // A message that ends where a second part would begin is a first part. No second one follows.
        speaker.send(7, &[1]);
        let capacity = vector.octets.len();
        let first = site.recv(ANY, capacity);
        failed += usize::from(first.is_err());
        if !matches!(first, Err(DeviceError::Lengths { error: LengthError::SecondLength { .. }, .. })) {
            assert!(site.recv(ANY, capacity).is_err(), "{}: one octet is no message", vector.name);
        }
        drop(first);
        check_next_messages(&site, &mut speaker);
    }
    assert!(failed >= 20, "{failed}");
    site.check_clean();
}

#[test]
fn a_message_above_the_capacity_fails_one_receive_with_both_numbers() {
    let (site, mut speaker) = usual_pair();
    for len in [24, 200, 2000, 20_000] {
        let plain = octets(Encoding::Big, &vec![1; len - 8], &[]);
        let id = site.comm().irecv(ANY, 16, None).expect("irecv");
        speaker.send_any(7, &plain);
        let error = site.wait(id).unwrap_err();
        let expected = DeviceError::Truncated { needed: len, capacity: 16, source_rank: 1, tag: 7 };
        assert_eq!(error, expected);
        check_next_messages(&site, &mut speaker);
    }
    site.check_clean();
}

/// A forbidden packet ends the connection. The error text has the number.
#[track_caller]
fn ends(what: impl FnOnce(&mut Speaker), numbers: &[&str]) {
    let (site, mut speaker) = usual_pair();
    what(&mut speaker);
    let error = site.recv(from(1, 3), 100).unwrap_err();
    let DeviceError::PeerFailed { rank: 1, why } = &error else { panic!("{error}") };
    for number in numbers {
        assert!(why.contains(number), "{number} is not in: {why}");
    }
    let left = speaker.drain();
    assert!(left.iter().all(|head| head.kind != SYNCACK), "{left:?}");
    let ended = site.comm().finish(&mut mpjdev_engine::Uninterruptible);
    assert!(matches!(ended, Err(DeviceError::PeerFailed { rank: 1, .. })), "{ended:?}");
    site.check_clean();
}

fn empty(speaker: &Speaker) -> Head {
    speaker.head(DATA)
}

#[test]
fn tags_below_zero_and_contexts_that_it_has_not_end_its_connection() {
    ends(|s| s.put(&Head { tag: -3, ..empty(s) }, &[]), &["tag -3", "context 0"]);
    ends(|s| s.put(&Head { tag: i32::MIN, cid: 1, ..empty(s) }, &[]), &["-2147483648"]);
    for cid in [2, 3, 1 << 32, (1 << 32) + 2, 1 << 62, 1 << 63, (1 << 62) + 1, u64::MAX] {
        ends(|s| s.put(&Head { tag: 1, cid, ..empty(s) }, &[]), &[&format!("context {cid}")]);
        let begun = Head { kind: DATASYNC, tag: 1, cid, srqid: 5, len: 8, msglen: 1000, ..Head::default() };
        let put = |s: &mut Speaker| s.put(&Head { src: s.head(0).src, dest: s.theirs, ..begun }, &[0; 8]);
        ends(put, &[&format!("context {cid}")]);
    }
}

#[test]
fn packets_that_contradict_the_protocol_end_its_connection() {
    ends(|s| s.put(&Head { kind: 8, ..empty(s) }, &[]), &["type 8"]);
    ends(|s| s.put(&Head { src: ([7; 16], 1), ..empty(s) }, &[]), &["07070707", "/1"]);
    ends(|s| s.put(&Head { dest: ([9; 16], 77), ..empty(s) }, &[]), &["09090909", "/77"]);
    ends(|s| s.put(&Head { len: 257, msglen: 257, ..empty(s) }, &[0; 257]), &["257", "256"]);
    ends(|s| s.put(&Head { len: 9, msglen: 8, ..empty(s) }, &[0; 9]), &["9", "8"]);
    ends(|s| s.put(&Head { len: 8, msglen: 99, drqid: 0xabc, ..empty(s) }, &[0; 8]), &["0xabc"]);
    for kind in [SYNCACK, CANCELYES, CANCELNO] {
        ends(|s| s.put(&Head { srqid: 0x77, ..s.head(kind) }, &[]), &["0x77"]);
    }
    ends(|s| s.put(&s.head(PROTOACK), &[]), &["ProtoAck for 4", "0"]);
    ends(|s| s.put_octets(&[0xff; 128]), &["4294967295"]);
}

#[test]
fn packets_after_its_fini_are_refused_except_match_acks() {
    for data in [false, true] {
        let (site, mut speaker) = usual_pair();
        speaker.fini();
        site.until("it has finished", |comm| comm.iprobe(from(1, 3)).is_err());
        assert_eq!(site.recv(from(1, 3), 8).unwrap_err(), DeviceError::PeerFinished { rank: 1 });
        match data {
            true => speaker.send(3, &octets(Encoding::Big, &[], &[])),
            false => speaker.fini(),
        }
        assert!(speaker.drain().is_empty(), "its connection is closed");
        site.check_clean();
    }
}
