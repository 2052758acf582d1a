//! Ends of a foreign rank at any moment: each operation that waits for it fails with its number, within a
//! bounded time.

use mpjdev_buffer::Encoding;
use mpjdev_engine::{Config, DeviceError, Mode, Uninterruptible};

use crate::site::{ANY, Client, Site, TERMS, content, from, halves, octets, usual_pair};
use crate::speaker::{CANCEL, DATA, Head, SYNCACK, Speaker};

#[test]
fn a_foreign_rank_has_finished_with_its_fini_and_failed_without() {
    for orderly in [true, false] {
        let (site, mut speaker) = usual_pair();
        let posted = site.comm().irecv(from(1, 3), 100, None).expect("irecv");
        speaker.send(4, &octets(Encoding::Big, &[1], &[]));
        if orderly {
            speaker.fini();
        }
        drop(speaker);
        let is_it = |error: DeviceError| match error {
            DeviceError::PeerFinished { rank: 1 } => orderly,
            DeviceError::PeerFailed { rank: 1, why } => {
                !orderly && why == "its connection has ended before it had finished"
            }
            _ => false,
        };
        assert!(is_it(site.wait(posted).unwrap_err()));
        let message = site.message(Encoding::Big, &[1], &[]);
        for mode in [Mode::Standard, Mode::Synchronous] {
            assert!(is_it(site.comm().send(&message, 1, 3, mode, &mut Uninterruptible).unwrap_err()));
        }
        drop(message);
        assert!(is_it(site.comm().iprobe(from(1, 3)).unwrap_err()));
        // The messages that it sent before have arrived.
        let message = site.recv(ANY, 16).expect("it").message.expect("a message");
        assert_eq!(content(&site, message), (vec![1], vec![]));
        assert_eq!(site.recv(ANY, 16).unwrap_err(), DeviceError::NoSourceLeft);
        match orderly {
            true => assert_eq!(site.comm().finish(&mut Uninterruptible), Ok(())),
            false => ends_without(&site),
        }
        site.check_clean();
    }
}

/// No message is undelivered, but the job has lost a rank.
#[track_caller]
fn ends_without(site: &Site) {
    let ended = site.comm().finish(&mut Uninterruptible);
    assert!(matches!(ended, Err(DeviceError::PeerFailed { rank: 1, .. })), "{ended:?}");
}

/// Ends the connection after `until`, in the middle of packets that the operation waits for.
#[track_caller]
fn dies(until: impl FnOnce(&Site, &mut Speaker), operation: impl FnOnce(&Site) -> mpjdev_engine::RequestId) {
    let (site, mut speaker) = usual_pair();
    let id = operation(&site);
    until(&site, &mut speaker);
    drop(speaker);
    match site.wait(id).unwrap_err() {
        DeviceError::PeerFailed { rank: 1, .. } => {}
        error => panic!("{error}"),
    }
    assert!(matches!(site.recv(from(1, 9), 8), Err(DeviceError::PeerFailed { rank: 1, .. })));
    // A send that no thread waits for would be reported; these were waited for.
    ends_without(&site);
    site.check_clean();
}

fn posted(site: &Site) -> mpjdev_engine::RequestId {
    site.comm().irecv(from(1, 7), 6000, None).expect("irecv")
}

#[test]
fn receive_fails_at_each_octet_where_its_message_stops() {
    let plain = octets(Encoding::Big, &[1; 200], &[]);
    let long = octets(Encoding::Big, &[1; 2000], &[]);
    let (first, second) = halves(Encoding::Big, &[1; 100], &[2; 2000]);
    let (long_first, _) = halves(Encoding::Big, &[1; 2000], &[2; 2000]);
    dies(|_, _| {}, posted);
    // In the header, and after it.
    let packet = |speaker: &Speaker| {
        let len = plain.len() as u32;
        let head = Head { len, msglen: len.into(), tag: 7, ..speaker.head(DATA) };
        [head.octets(), plain.clone()].concat()
    };
    for len in [1, 127, 128, 129, 135, 343] {
        dies(|_, speaker| speaker.put_octets(&packet(speaker)[..len]), posted);
    }
    // A long one: pending, matched, in the middle of its data.
    dies(
        |_, speaker| {
            let _ = speaker.begin(7, &long);
        },
        posted,
    );
    let matched = |_: &Site, speaker: &mut Speaker| {
        let begun = speaker.begin(7, &long);
        speaker.expect(SYNCACK, begun.srqid);
    };
    dies(matched, posted);
    let part = |_: &Site, speaker: &mut Speaker| {
        let begun = speaker.begin(7, &long);
        let drqid = speaker.expect(SYNCACK, begun.srqid).drqid;
        let head = Head { kind: DATA, drqid, ..begun };
        speaker.send_packet(&head, &[0; 256]);
        let half = [head.octets(), vec![0; 99]].concat();
        speaker.put_octets(&half);
    };
    dies(part, posted);
    // Between two parts, and in the second.
    dies(|_, speaker| speaker.send(7, &first), posted);
    let in_second = |_: &Site, speaker: &mut Speaker| {
        speaker.send(7, &first);
        let begun = speaker.begin(7, &second);
        speaker.expect(SYNCACK, begun.srqid);
    };
    dies(in_second, posted);
    // With others behind an ambiguous message.
    let behind = |_: &Site, speaker: &mut Speaker| {
        let begun = speaker.begin(7, &long_first);
        speaker.send(7, &plain);
        speaker.begin(7, &long);
        speaker.send(8, &plain);
        speaker.expect(SYNCACK, begun.srqid);
    };
    dies(behind, posted);
}

#[test]
fn send_fails_at_each_octet_where_its_match_ack_stops() {
    let isend = |len: usize, mode: Mode| {
        move |site: &Site| {
            let message = site.message(Encoding::Big, &vec![1; len], &[]);
            site.comm().isend(&message, 1, 7, mode).expect("isend").expect("pending")
        }
    };
    for (len, mode) in [(8, Mode::Synchronous), (5000, Mode::Standard), (5000, Mode::Synchronous)] {
        dies(|_, _| {}, isend(len, mode));
        dies(|_, speaker| assert_eq!(speaker.take().0.tag, 7), isend(len, mode));
    }
    // Both parts of one, the first matched alone.
    let split = |site: &Site| {
        let message = site.message(Encoding::Big, &[1; 8], &[2; 1000]);
        site.comm().isend(&message, 1, 7, Mode::Synchronous).expect("isend").expect("pending")
    };
    let first = |_: &Site, speaker: &mut Speaker| {
        let (head, _) = speaker.take();
        speaker.put(&Head { srqid: head.srqid, ..speaker.head(SYNCACK) }, &[]);
        speaker.take();
    };
    dies(first, split);
}

/// It was matched, so the send is done. No thread waits for the rest, which the flow control stops.
#[test]
fn rest_of_a_matched_message_is_dropped_when_its_receiver_has_ended() {
    let (site, mut speaker) = usual_pair();
    speaker.acknowledges = false;
    let message = site.message(Encoding::Big, &[1; 5000], &[]);
    let id = site.comm().isend(&message, 1, 7, Mode::Standard).expect("isend").expect("pending");
    drop(message);
    let (head, _) = speaker.take();
    speaker.put(&Head { srqid: head.srqid, drqid: 5, ..speaker.head(SYNCACK) }, &[]);
    for _ in 1..TERMS.hiwater {
        assert_eq!(speaker.take().0.drqid, 5);
    }
    site.wait(id).expect("matched");
    drop(speaker);
    ends_without(&site);
    site.check_clean();
}

/// A message of a dead sender that is received in part fails, and no other one does.
#[test]
fn part_of_a_long_message_matches_no_receive_after_its_sender_has_ended() {
    let (site, mut speaker) = usual_pair();
    speaker.begin(7, &octets(Encoding::Big, &[1; 2000], &[]));
    speaker.ask();
    drop(speaker);
    site.until("its end is known", |comm| comm.iprobe(from(1, 9)).is_err());
    let failed = site.recv(from(1, 7), 6000);
    assert!(matches!(failed, Err(DeviceError::PeerFailed { rank: 1, .. })), "{failed:?}");
    site.check_clean();
}

/// A complete request cancels a message, and a part of one does not.
#[test]
fn incomplete_cancel_request_cancels_nothing() {
    for len in [0, 1, 64, 127, 128] {
        let (site, mut speaker) = usual_pair();
        let begun = speaker.begin(7, &octets(Encoding::Big, &[1], &[]));
        let request = Head { srqid: begun.srqid, ..speaker.head(CANCEL) };
        speaker.put_octets(&request.octets()[..len]);
        drop(speaker);
        site.until("its end is known", |comm| comm.iprobe(from(1, 9)).is_err());
        match site.recv(from(1, 7), 16) {
            Ok(done) => {
                assert!(len < 128, "it is taken back");
                assert_eq!(content(&site, done.message.expect("a message")).0, [1]);
            }
            Err(DeviceError::PeerFailed { rank: 1, .. }) => assert_eq!(len, 128),
            Err(error) => panic!("{error}"),
        }
        assert!(matches!(site.recv(from(1, 7), 16), Err(DeviceError::PeerFailed { rank: 1, .. })));
        site.check_clean();
    }
}

/// A host with two processes: each has its own flow and ids, and the host's Fini ends both.
#[test]
fn processes_of_one_host_are_separate_ranks() {
    let mut site = Site::new(&[Client::Foreign(&[2]), Client::Ours(1)], TERMS, Config::default());
    let mut speaker = site.speakers.remove(&(0, 2)).expect("connected");
    let comm = site.comm().clone();
    assert_eq!((comm.rank(), comm.size()), (2, 3));
    // The same tags and ids of both, in turn; more than hiwater together.
    for round in 0..TERMS.hiwater as i32 - 1 {
        for process in [0, 1] {
            speaker.send_as(process, 0, round, &octets(Encoding::Big, &[process as i8], &[]));
        }
    }
    for round in 0..TERMS.hiwater as i32 - 1 {
        for process in [1, 0] {
            let done = site.recv(from(process, round), 16).expect("it");
            assert_eq!(done.status.expect("a status").source, process as u32);
            let message = done.message.expect("a message");
            assert_eq!(content(&site, message).0, [process as i8]);
        }
    }
    for process in [0, 1] {
        let message = site.message(Encoding::Big, &[process as i8], &[]);
        let id = comm.isend(&message, process, 5, Mode::Synchronous).expect("isend").expect("pending");
        drop(message);
        let received = speaker.recv();
        assert_eq!(received.head.dest, speaker.head_of(process as usize, 0).src);
        assert_eq!(received.head.lsrank, 2);
        site.wait(id).expect("matched");
    }
    // Halves of one do not match the other.
    let (first, second) = halves(Encoding::Big, &[1; 8], &[7; 9]);
    let (other_first, other_second) = halves(Encoding::Little, &[2; 8], &[8; 9]);
    for (process, octets) in [(0, &first), (1, &other_first), (1, &other_second), (0, &second)] {
        speaker.send_as(process, 0, 7, octets);
    }
    for (process, value) in [(0, 7), (1, 8)] {
        let message = site.recv(from(process, 7), 16).expect("both").message.expect("a message");
        assert_eq!(content(&site, message).1, [value; 9]);
    }
    // A SyncAck for a message of the other process is ignored.
    speaker.fini();
    site.until("they have finished", |comm| comm.iprobe(from(1, 3)).is_err());
    for rank in [0, 1] {
        assert_eq!(comm.iprobe(from(rank, 3)).unwrap_err(), DeviceError::PeerFinished { rank: rank as u32 });
    }
    site.check_clean();
}

#[test]
fn processes_of_one_host_fail_together() {
    let mut site = Site::new(&[Client::Ours(1), Client::Foreign(&[2, 1])], TERMS, Config::default());
    let mut speaker = site.speakers.remove(&(1, 0)).expect("connected");
    let mut neighbour = site.speakers.remove(&(2, 0)).expect("connected");
    let posted = [1, 2, 3].map(|rank| site.comm().irecv(from(rank, 7), 16, None).expect("irecv"));
    // A SyncAck for a message that only the other process has.
    let message = site.message(Encoding::Big, &[1], &[]);
    let id = site.comm().isend(&message, 1, 5, Mode::Synchronous).expect("isend").expect("pending");
    drop(message);
    let (head, _) = speaker.take();
    speaker.put(&Head { srqid: head.srqid, ..speaker.head_of(1, SYNCACK) }, &[]);
    for id in [posted[0], posted[1], id] {
        let error = site.wait(id).unwrap_err();
        let DeviceError::PeerFailed { rank: 1 | 2, why } = &error else { panic!("{error}") };
        assert!(why.contains(&format!("srqid {:#x} waits for SyncAck", head.srqid)), "{why}");
    }
    neighbour.send(7, &octets(Encoding::Big, &[1], &[]));
    assert!(site.wait(posted[2]).is_ok(), "another host is another host");
    neighbour.send_packet(&Head { srqid: 1, ..neighbour.head(CANCEL) }, &[]);
    site.check_clean();
}
