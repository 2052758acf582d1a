//! Cancels of a foreign sender (IMPI 8.6): an unmatched message is cancelled, a matched one is received.

use mpjdev_buffer::{Encoding, Message};
use mpjdev_engine::{Config, Mode};
use mpjdev_transport::tcp::Terms;

use crate::site::{Site, TERMS, content, from, octets, pair, usual_pair};
use crate::speaker::{CANCEL, CANCELNO, CANCELYES, DATA, DATASYNC, Head, SYNCACK, Speaker};

/// A numbered standard message, which can be cancelled.
fn numbered(speaker: &mut Speaker, tag: i32, srqid: u64, value: i8) {
    let plain = octets(Encoding::Big, &[value], &[]);
    let len = plain.len() as u32;
    let head = Head { len, msglen: len.into(), tag, srqid, ..speaker.head(DATA) };
    speaker.send_packet(&head, &plain);
}

fn cancel(speaker: &mut Speaker, srqid: u64) {
    let head = Head { srqid, ..speaker.head(CANCEL) };
    speaker.send_packet(&head, &[]);
}

#[track_caller]
fn value(site: &Site, tag: impl Into<Option<i32>>) -> i8 {
    let message = site.recv(from(1, tag.into()), 300).expect("it").message.expect("a message");
    content(site, message).0[0]
}

#[test]
fn unmatched_message_is_cancelled() {
    let (site, mut speaker) = usual_pair();
    numbered(&mut speaker, 1, 71, 1);
    let short = speaker.begin(2, &octets(Encoding::Big, &[2], &[]));
    let long = speaker.begin(3, &octets(Encoding::Big, &[3; 1000], &[]));
    numbered(&mut speaker, 4, 72, 4);
    for srqid in [71, short.srqid, long.srqid] {
        cancel(&mut speaker, srqid);
    }
    for srqid in [71, short.srqid, long.srqid] {
        assert_eq!(speaker.expect(CANCELYES, srqid).kind, CANCELYES);
    }
    assert_eq!(value(&site, None), 4, "the only one that is left");
    site.check_clean();
}

#[test]
fn matched_message_is_received_in_spite_of_a_cancel() {
    let (site, mut speaker) = usual_pair();
    let id = site.comm().irecv(from(1, 3), 2000, None).expect("irecv");
    let bytes = vec![3; 1000];
    let plain = octets(Encoding::Big, &bytes, &[]);
    let long = speaker.begin(3, &plain);
    let answer = speaker.expect(SYNCACK, long.srqid);
    cancel(&mut speaker, long.srqid);
    speaker.expect(CANCELNO, long.srqid);
    speaker.end(&long, answer.drqid, &plain);
    let message = site.wait(id).expect("all of it").message.expect("a message");
    assert_eq!(content(&site, message), (bytes, Vec::new()));
    numbered(&mut speaker, 1, 71, 1);
    assert_eq!(value(&site, 1), 1);
    cancel(&mut speaker, 71);
    speaker.expect(CANCELNO, 71);
    site.check_clean();
}

#[test]
fn an_id_that_no_message_has_is_refused() {
    let (site, mut speaker) = usual_pair();
    for srqid in [0, 1, u64::MAX] {
        cancel(&mut speaker, srqid);
        speaker.expect(CANCELNO, srqid);
    }
    site.check_clean();
}

/// A cancel names the latest message if ids are used again.
#[test]
fn latest_message_with_an_id_is_cancelled() {
    let (site, mut speaker) = usual_pair();
    numbered(&mut speaker, 1, 71, 1);
    numbered(&mut speaker, 1, 71, 2);
    cancel(&mut speaker, 71);
    speaker.expect(CANCELYES, 71);
    assert_eq!(value(&site, 1), 1);
    site.check_clean();
}

/// Our rank cancels a send whose first packet is sent. Over TCP it never asks the peer. The peer posts its
/// receive later. With marks of 1 each packet waits for the ProtoAck of the one before it.
#[test]
fn long_send_whose_cancel_came_too_late_arrives_when_the_receive_is_posted() {
    for terms in [TERMS, Terms { ackmark: 1, hiwater: 1, ..TERMS }] {
        for mode in [Mode::Standard, Mode::Synchronous] {
            [300, 200_000].into_iter().for_each(|len| cancels_too_late(terms, mode, len));
        }
    }
}

fn cancels_too_late(terms: Terms, mode: Mode, len: usize) {
    let (site, mut speaker) = pair(terms, Config::default());
    speaker.acknowledges = false;
    let isend = |message: &Message, tag, mode| site.comm().isend(message, 1, tag, mode).expect("isend");
    let bytes: Vec<i8> = (0..len).map(|at| at as i8).collect();
    let message = site.message(Encoding::Big, &bytes, &[]);
    let id = isend(&message, 7, mode).expect("a long message is not done yet");
    let first = speaker.take();
    assert_eq!((first.0.kind, first.0.tag), (DATASYNC, 7));
    assert!(!site.comm().cancel(id).expect("it is pending"));
    let next = isend(&site.message(Encoding::Big, &[1], &[]), 8, Mode::Standard);
    assert_eq!(next.is_some(), terms.hiwater == 1, "whether it waits for a ProtoAck");
    speaker.acknowledges = true;
    speaker.acknowledge();
    // The message behind it arrives before it is matched.
    assert_eq!(speaker.recv().head.tag, 8);
    let received = speaker.accept(first);
    assert_eq!(received.octets, octets(Encoding::Big, &bytes, &[]));
    next.into_iter().chain([id]).for_each(|id| drop(site.wait(id).expect("it is sent")));
    drop(message);
    site.check_clean();
}
