//! Messages of one part, both ways: plain octets in IMPI's packets.

use mpjdev_buffer::{Encoding, Message, ReadBuffer, WriteBuffer};
use mpjdev_engine::{Config, Mode, Uninterruptible};
use mpjdev_transport::tcp::Terms;

use crate::site::{ANY, Site, TERMS, content, from, octets, pair, usual_pair};
use crate::speaker::{DATASYNC, Head, SYNCACK};
use crate::values;
use crate::vectors::{self, Vector};

pub(crate) const BOTH: [Encoding; 2] = [Encoding::Big, Encoding::Little];

/// The message of a description, in one part.
fn written(site: &Site, vector: &Vector) -> Message {
    let capacity = vector.octets.len() as i64;
    let order = vector.encoding.expect("described");
    let mut buffer = WriteBuffer::new(site.source(), capacity, order).expect("a capacity");
    vector.sections.iter().for_each(|section| values::write(&mut buffer, section));
    if !vector.stream.is_empty() {
        buffer.stage_secondary(vector.stream.len()).expect("memory").put_octets(&vector.stream);
        buffer.grow_secondary(vector.stream.len());
    }
    buffer.finish().expect("memory").clone()
}

#[test]
fn golden_messages_leave_octet_for_octet_in_headers_that_say_nothing_else() {
    let (site, mut speaker) = pair(Terms::default(), Config::default());
    let canonical: Vec<Vector> = vectors::all().into_iter().filter(|vector| vector.canonical).collect();
    assert!(canonical.len() >= 36);
    for (tag, vector) in (0..).zip(&canonical) {
        let message = written(&site, vector);
        site.comm().send(&message, 1, tag, Mode::Standard, &mut Uninterruptible).expect("send");
        let received = speaker.recv();
        assert_eq!(received.octets, vector.octets, "{}", vector.name);
        let len = vector.octets.len() as u32;
        // The number of the message is for tracing (IMPI 7.3). Unused fields and lsrank are zero.
        let expected = Head {
            len,
            msglen: len.into(),
            tag,
            seqnum: tag as u64 + 1,
            src: speaker.theirs,
            dest: speaker.head(0).src,
            ..Head::default()
        };
        assert_eq!(received.head, expected, "{}", vector.name);
    }
    site.check_clean();
}

#[test]
fn golden_messages_of_a_foreign_rank_are_read_in_either_byte_order() {
    let (site, mut speaker) = pair(Terms::default(), Config::default());
    let sound: Vec<Vector> = vectors::all().into_iter().filter(|vector| vector.error.is_none()).collect();
    assert!(sound.len() >= 40);
    for (tag, vector) in (0..).zip(&sound) {
        speaker.send(tag, &vector.octets);
        let done = site.recv(from(1, tag), vector.octets.len()).expect("a message");
        let (status, message) = (done.status.expect("a status"), done.message.expect("a message"));
        assert_eq!((status.source, status.tag), (1, tag));
        assert_eq!(Some(message.encoding()), vector.encoding, "{}", vector.name);
        let mut stream = vec![0; vector.stream.len() + 1];
        assert_eq!(message.copy_secondary(0, &mut stream), vector.stream.len(), "{}", vector.name);
        assert_eq!(stream[..vector.stream.len()], vector.stream, "{}", vector.name);
        let mut buffer = ReadBuffer::new(site.source(), message.capacity() as i64).expect("a capacity");
        buffer.adopt(message);
        for section in &vector.sections {
            assert_eq!(values::read(&mut buffer, section), Ok(()), "{}", vector.name);
        }
        assert_eq!(buffer.peek(), Ok(None), "{}", vector.name);
    }
    site.check_clean();
}

/// Posted before or after, and blocking, which receives without a request.
#[test]
fn message_is_received_by_every_kind_of_receive() {
    let (site, mut speaker) = usual_pair();
    for encoding in BOTH {
        for asked in [ANY, from(1, None), from(None, 5), from(1, 5)] {
            let expected = (vec![1, -2, 3], Vec::new());
            let id = site.comm().irecv(asked, 16, None).expect("irecv");
            speaker.send(5, &octets(encoding, &[1, -2, 3], &[]));
            let message = site.wait(id).expect("posted before").message.expect("a message");
            assert_eq!(content(&site, message), expected);
            speaker.send(5, &octets(encoding, &[1, -2, 3], &[]));
            let (status, message) =
                site.comm().recv(asked, 16, None, &mut Uninterruptible).expect("polled for");
            assert_eq!((status.source, status.tag, status.size), (1, 5, 16));
            assert_eq!(content(&site, message), expected);
            speaker.send(5, &octets(encoding, &[1, -2, 3], &[]));
            site.until("it is seen", |comm| comm.iprobe(asked) != Ok(None));
            let seen = site.comm().iprobe(asked).expect("iprobe").expect("it stays");
            assert_eq!((seen.source, seen.tag, seen.size), (1, 5, 16));
            let message = site.recv(asked, 16).expect("here before").message.expect("a message");
            assert_eq!(content(&site, message), expected);
        }
    }
    site.check_clean();
}

/// Up to maxdatalen in one packet. Above it, the rest follows when the message is matched (IMPI 8.2, 8.3).
#[test]
fn messages_around_the_packet_length_go_both_ways() {
    let (site, mut speaker) = usual_pair();
    let packet = TERMS.maxdatalen as usize;
    for (tag, len) in (0..).zip([packet - 8, packet, packet + 8, 2 * packet, 2 * packet + 8, 40 * packet]) {
        let bytes: Vec<i8> = (0..len - 24).map(|at| (at * 7) as i8).collect();
        for encoding in BOTH {
            let plain = octets(encoding, &bytes, &[]);
            assert_eq!(plain.len(), len);
            let message = site.message(encoding, &bytes, &[]);
            let id = site.comm().isend(&message, 1, tag, Mode::Standard).expect("isend");
            let received = speaker.recv();
            assert_eq!(received.octets, plain, "{len} octets");
            assert_eq!(received.head.kind == DATASYNC, len > packet, "{len} octets");
            id.into_iter().for_each(|id| drop(site.wait(id).expect("the rest has left")));
            drop(message);
            let id = site.comm().irecv(from(1, tag), len - 16, None).expect("irecv");
            speaker.send_any(tag, &plain);
            let message = site.wait(id).expect("all of it").message.expect("a message");
            assert_eq!(content(&site, message), (bytes.clone(), Vec::new()), "{len} octets");
        }
    }
    site.check_clean();
}

/// In both directions only the SyncAck states that a receive has matched the message (IMPI 8.2).
#[test]
fn a_synchronous_message_is_answered_when_it_is_matched() {
    let (site, mut speaker) = usual_pair();
    let plain = octets(Encoding::Big, &[1, 2], &[]);
    let begun = speaker.begin(3, &plain);
    speaker.send(4, &plain);
    assert!(site.recv(from(1, 4), 16).is_ok(), "the message and the one behind it have arrived");
    let message = site.message(Encoding::Big, &[1, 2], &[]);
    let id = site.comm().isend(&message, 1, 9, Mode::Synchronous).expect("isend").expect("pending");
    drop(message);
    let (head, data) = speaker.take();
    assert_eq!(
        (head.kind, head.tag, head.cid),
        (DATASYNC, 9, 0),
        "before any SyncAck of the message with tag 3"
    );
    assert_ne!(head.srqid, 0);
    assert_eq!(data, plain);
    assert!(site.recv(from(1, 3), 16).is_ok());
    assert_eq!(speaker.expect(SYNCACK, begun.srqid).kind, SYNCACK);
    assert!(site.comm().test(id).expect("test").is_none(), "no receive has matched it");
    // As LAM sends it: with meaningless lengths and no drqid (IMPI 7.2).
    let answer = Head { srqid: head.srqid, len: 128, msglen: 128, tag: -1, ..speaker.head(SYNCACK) };
    speaker.put(&answer, &[]);
    site.wait(id).expect("matched");
    site.check_clean();
}

/// A standard message with an id, which its sender could cancel, gets no SyncAck (IMPI 8.1, 8.6).
#[test]
fn a_numbered_standard_message_is_received_and_not_answered() {
    let (site, mut speaker) = usual_pair();
    let plain = octets(Encoding::Little, &[7], &[]);
    let len = plain.len() as u32;
    let head = Head { len, msglen: len.into(), tag: 3, srqid: 77, ..speaker.head(0) };
    speaker.send_packet(&head, &plain);
    let message = site.recv(ANY, 8 + 8).expect("it").message.expect("a message");
    assert_eq!(content(&site, message), (vec![7], Vec::new()));
    let message = site.message(Encoding::Big, &[1, 2], &[]);
    site.comm().send(&message, 1, 9, Mode::Standard, &mut Uninterruptible).expect("send");
    drop(message);
    assert_eq!(speaker.take().0.tag, 9, "and no SyncAck before it");
    site.check_clean();
}
