//! Messages of two parts, both ways: the second part follows the first in the same context, with the same
//! tag.

use mpjdev_buffer::Encoding;
use mpjdev_engine::{Config, DeviceError, Mode, Uninterruptible};
use mpjdev_proto::send_policy::LengthError;
use mpjdev_transport::tcp::Terms;

use crate::plain::BOTH;
use crate::site::{ANY, Site, TERMS, content, from, halves, octets, pair, usual_pair};
use crate::speaker::{CANCEL, CANCELYES, DATA, DATASYNC, Head, SYNCACK, Speaker};

/// A message of two parts whose content follows from a number.
fn parts(seed: usize, primary: usize, secondary: usize) -> (Vec<i8>, Vec<u8>) {
    let bytes = (0..primary).map(|at| (at + seed) as i8).collect();
    (bytes, (0..secondary).map(|at| (3 * at + seed) as u8 | 1).collect())
}

/// Lengths of both parts on both sides of what fits a packet of 256 octets.
const LENS: [(usize, usize); 4] = [(8, 9), (8, 5000), (5000, 8), (5000, 5000)];

#[test]
fn both_parts_are_sent_in_order_under_one_tag() {
    for (primary, secondary) in LENS {
        for encoding in BOTH {
            for mode in [Mode::Standard, Mode::Synchronous] {
                let (site, mut speaker) = usual_pair();
                let (bytes, stream) = parts(1, primary, secondary);
                let message = site.message(encoding, &bytes, &stream);
                assert!(message.is_split());
                let (first, second) = halves(encoding, &bytes, &stream);
                let id = site.comm().isend(&message, 1, 7, mode).expect("isend");
                drop(message);
                for expected in [first, second] {
                    let received = speaker.recv();
                    assert_eq!((received.head.cid, received.head.tag, received.head.lsrank), (0, 7, 0));
                    assert_eq!(received.octets, expected);
                }
                id.into_iter().for_each(|id| drop(site.wait(id).expect("both have left")));
                site.check_clean();
            }
        }
    }
}

/// Two threads send to one rank. Both parts of a message stay together, although the flow control stops after
/// every few packets, also in the middle of messages.
#[test]
fn threads_that_send_at_once_never_separate_two_parts() {
    for terms in [TERMS, Terms { maxdatalen: 64, ackmark: 1, hiwater: 1, ..TERMS }] {
        let (site, mut speaker) = pair(terms, Config::default());
        let (threads, rounds) = (4, 40);
        let total = threads * rounds * 3;
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (site, comm) = (&site, site.comm());
                scope.spawn(move || {
                    for round in 0..rounds {
                        let (bytes, stream) = parts(round, 8 + 40 * (round % 3), 9 + 300 * (round % 2));
                        let split = site.message(Encoding::Big, &bytes, &stream);
                        let plain = site.message(Encoding::Big, &bytes, &[]);
                        let mode = if round % 5 == 0 { Mode::Synchronous } else { Mode::Standard };
                        comm.send(&split, 1, thread as i32, mode, &mut Uninterruptible).expect("send");
                        comm.send(&plain, 1, thread as i32, Mode::Standard, &mut Uninterruptible)
                            .expect("send");
                    }
                });
            }
            let received: Vec<_> = (0..total).map(|_| speaker.recv()).collect();
            let mut at = 0;
            let mut rounds_of = vec![0; threads];
            while at < received.len() {
                let thread = received[at].head.tag as usize;
                let round = rounds_of[thread] / 2;
                let (bytes, stream) = parts(round, 8 + 40 * (round % 3), 9 + 300 * (round % 2));
                let expected = match rounds_of[thread] % 2 {
                    0 => halves(Encoding::Big, &bytes, &stream),
                    _ => (octets(Encoding::Big, &bytes, &[]), Vec::new()),
                };
                assert_eq!(received[at].octets, expected.0, "thread {thread}, round {round}");
                at += 1;
                if !expected.1.is_empty() {
                    assert_eq!(received[at].head.tag, thread as i32, "thread {thread}, round {round}");
                    assert_eq!(received[at].octets, expected.1, "thread {thread}, round {round}");
                    at += 1;
                }
                rounds_of[thread] += 1;
            }
        });
        site.check_clean();
    }
}

/// Sends both parts as a foreign sender does: the rest of long ones when they are matched.
#[derive(Debug)]
struct Parts {
    begun: Vec<(Head, Vec<u8>)>,
}

impl Parts {
    /// The first packets.
    fn begin(speaker: &mut Speaker, tag: i32, messages: &[Vec<u8>]) -> Parts {
        let mut begun = Vec::new();
        for message in messages {
            match message.len() <= speaker.limits.maxdatalen {
                true => speaker.send(tag, message),
                false => begun.push((speaker.begin(tag, message), message.clone())),
            }
        }
        Parts { begun }
    }

    /// The rest of each, in the order of their first packets.
    fn end(self, speaker: &mut Speaker) {
        for (head, octets) in self.begun {
            let answer = speaker.expect(SYNCACK, head.srqid);
            speaker.end(&head, answer.drqid, &octets);
        }
    }
}

#[track_caller]
fn check(site: &Site, done: Result<mpjdev_engine::Done, DeviceError>, expected: &(Vec<i8>, Vec<u8>)) {
    let message = done.expect("both parts").message.expect("a message");
    assert_eq!(content(site, message), *expected);
}

/// A second part completes its own receive, beside receives posted before, meanwhile and after.
#[test]
fn parts_of_a_foreign_sender_are_joined_beside_other_posted_receives() {
    for encoding in BOTH {
        for (primary, secondary) in LENS {
            for posted in [0, 1, 2, 4] {
                let (site, mut speaker) = usual_pair();
                let asked = [ANY, from(1, 7), from(None, 7), from(1, None)];
                let irecv = |at: usize| site.comm().irecv(asked[at], 6000, None).expect("irecv");
                let mut ids: Vec<_> = (0..posted).map(irecv).collect();
                let messages: Vec<_> = (0..4).map(|seed| parts(seed, primary, secondary)).collect();
                let mut octets = Vec::new();
                for (bytes, stream) in &messages {
                    let (first, second) = halves(encoding, bytes, stream);
                    octets.extend([first, second]);
                }
                let begun = Parts::begin(&mut speaker, 7, &octets);
                speaker.ask();
                ids.extend((posted..4).map(irecv));
                begun.end(&mut speaker);
                for (id, expected) in ids.into_iter().zip(&messages) {
                    check(&site, site.wait(id), expected);
                }
                site.check_clean();
            }
        }
    }
}

/// The kind of a first part is known when it is complete. Until then the next message with its tag is
/// deferred, and so are all messages behind that one, so that messages keep their order.
#[test]
fn possible_second_part_waits_until_the_first_has_arrived() {
    for is_split in [true, false] {
        for posted_before in [true, false] {
            let (site, mut speaker) = usual_pair();
            let comm = site.comm();
            let irecv = || comm.irecv(ANY, 6000, None).expect("irecv");
            let posted: Vec<_> =
                posted_before.then(|| [irecv(), irecv(), irecv()]).into_iter().flatten().collect();
            let (bytes, stream) = parts(1, 2000, if is_split { 24 } else { 0 });
            let (first, second) = halves(Encoding::Big, &bytes, &stream);
            let other = octets(Encoding::Little, &[5], &[]);
            let begun = Parts::begin(&mut speaker, 7, &[first]);
            if is_split {
                speaker.send(7, &second);
            }
            speaker.send(7, &other);
            speaker.send(8, &octets(Encoding::Little, &[6], &[]));
            speaker.ask();
            let ids = if posted_before { posted } else { vec![irecv(), irecv(), irecv()] };
            assert_eq!(comm.iprobe(ANY), Ok(None), "the next message is still ambiguous");
            assert!(comm.test(ids[1]).expect("test").is_none());
            begun.end(&mut speaker);
            check(&site, site.wait(ids[0]), &(bytes, stream));
            check(&site, site.wait(ids[1]), &(vec![5], vec![]));
            check(&site, site.wait(ids[2]), &(vec![6], vec![]));
            site.check_clean();
        }
    }
}

/// Messages with other tags that are not behind a deferred one are received while a long one arrives, and so
/// are messages of other ranks.
#[test]
fn long_message_delays_only_messages_of_its_tag() {
    let (site, mut speaker) = usual_pair();
    let long = site.comm().irecv(from(1, 7), 6000, None).expect("irecv");
    let (bytes, _) = parts(1, 2000, 0);
    let begun = Parts::begin(&mut speaker, 7, &[octets(Encoding::Big, &bytes, &[])]);
    speaker.send(8, &octets(Encoding::Big, &[5], &[]));
    check(&site, site.recv(ANY, 16), &(vec![5], vec![]));
    begun.end(&mut speaker);
    check(&site, site.wait(long), &(bytes, vec![]));
    site.check_clean();
}

/// Two long messages with different tags, each with a second part, and others behind keep their order.
#[test]
fn several_long_first_parts_are_distinguished() {
    let (site, mut speaker) = usual_pair();
    let comm = site.comm();
    let ids: Vec<_> = (0..4).map(|_| comm.irecv(ANY, 6000, None).expect("irecv")).collect();
    let [a, b] = [parts(1, 2000, 24), parts(2, 3000, 3000)];
    let (a1, a2) = halves(Encoding::Big, &a.0, &a.1);
    let (b1, b2) = halves(Encoding::Little, &b.0, &b.1);
    let first_a = Parts::begin(&mut speaker, 7, &[a1]);
    let first_b = Parts::begin(&mut speaker, 8, &[b1]);
    let second_b = Parts::begin(&mut speaker, 8, &[b2]);
    let second_a = Parts::begin(&mut speaker, 7, &[a2]);
    speaker.send(8, &octets(Encoding::Big, &[1], &[]));
    speaker.send(7, &octets(Encoding::Big, &[2], &[]));
    // The kind of the later one is known first.
    first_b.end(&mut speaker);
    second_b.end(&mut speaker);
    check(&site, site.wait(ids[1]), &b);
    assert_eq!(comm.iprobe(ANY), Ok(None));
    first_a.end(&mut speaker);
    second_a.end(&mut speaker);
    check(&site, site.wait(ids[0]), &a);
    check(&site, site.wait(ids[2]), &(vec![1], vec![]));
    check(&site, site.wait(ids[3]), &(vec![2], vec![]));
    site.check_clean();
}

/// The format leaves octets 0 to 3 of the secondary header unspecified, so a foreign sender may leave
/// anything there.
#[test]
fn foreign_split_message_with_garbage_in_unused_octets_is_joined() {
    for (primary, secondary) in LENS {
        for encoding in BOTH {
            for (garbage, capacity) in [(0xdead_beef_u32, 6000), (1, 6000), (u32::MAX, 8)] {
                let (site, mut speaker) = usual_pair();
                let (bytes, stream) = parts(1, primary, secondary);
                let (mut first, second) = halves(encoding, &bytes, &stream);
                let unused = first.len() - 8;
                first[unused..unused + 4].copy_from_slice(&garbage.to_be_bytes());
                let id = site.comm().irecv(ANY, capacity, None).expect("irecv");
                let begun = Parts::begin(&mut speaker, 7, &[first, second]);
                speaker.send(7, &octets(Encoding::Big, &[9], &[]));
                begun.end(&mut speaker);
                match site.wait(id) {
                    Err(DeviceError::Truncated { .. }) => assert_eq!(capacity, 8),
                    done => check(&site, done, &(bytes, stream)),
                }
                check(&site, site.recv(ANY, 16), &(vec![9], vec![]));
                site.check_clean();
            }
        }
    }
}

/// A capacity that is too small is an error, and both parts are consumed.
#[test]
fn both_parts_are_consumed_when_the_first_does_not_fit() {
    for (primary, secondary) in LENS {
        let (site, mut speaker) = usual_pair();
        let (bytes, stream) = parts(1, primary, secondary);
        let (first, second) = halves(Encoding::Little, &bytes, &stream);
        let begun = Parts::begin(&mut speaker, 7, &[first]);
        speaker.ask();
        let id = site.comm().irecv(ANY, 8, None).expect("irecv");
        let second = Parts::begin(&mut speaker, 7, &[second]);
        speaker.send(7, &octets(Encoding::Big, &[9], &[]));
        begun.end(&mut speaker);
        second.end(&mut speaker);
        let needed = 8 + primary.next_multiple_of(8);
        let error = DeviceError::Truncated { needed, capacity: 8, source_rank: 1, tag: 7 };
        assert_eq!(site.wait(id).unwrap_err(), error);
        check(&site, site.recv(ANY, 16), &(vec![9], vec![]));
        site.check_clean();
    }
}

#[test]
fn a_second_part_of_another_length_is_an_error_with_both_numbers() {
    for len in [0, 1, 23, 25, 5000] {
        let (site, mut speaker) = usual_pair();
        let (bytes, stream) = parts(1, 8, 24);
        let (first, _) = halves(Encoding::Big, &bytes, &stream);
        let id = site.comm().irecv(ANY, 100, None).expect("irecv");
        speaker.send(7, &first);
        speaker.send_any(7, &vec![1; len]);
        let error = LengthError::SecondLength { expected: 24, actual: len };
        assert_eq!(site.wait(id).unwrap_err(), DeviceError::Lengths { error, source_rank: 1, tag: 7 });
        site.check_clean();
    }
}

/// A deferred message that its sender cancels is dropped.
#[test]
fn message_behind_a_long_one_can_be_cancelled() {
    let (site, mut speaker) = usual_pair();
    let long = site.comm().irecv(ANY, 6000, None).expect("irecv");
    let (bytes, _) = parts(1, 2000, 0);
    let begun = Parts::begin(&mut speaker, 7, &[octets(Encoding::Big, &bytes, &[])]);
    let taken_back = speaker.begin(7, &octets(Encoding::Big, &[5], &[]));
    speaker.send(7, &octets(Encoding::Big, &[6], &[]));
    speaker.send_packet(&Head { srqid: taken_back.srqid, ..speaker.head(CANCEL) }, &[]);
    speaker.expect(CANCELYES, taken_back.srqid);
    begun.end(&mut speaker);
    check(&site, site.wait(long), &(bytes, vec![]));
    check(&site, site.recv(ANY, 16), &(vec![6], vec![]));
    site.check_clean();
}

/// Many long messages with one tag, all sent before any is matched, and longer than the memory together. All
/// arrive.
#[test]
fn long_messages_with_one_tag_arrive_in_order() {
    let (site, mut speaker) = pair(TERMS, Config { credit: 2000, ..Config::default() });
    let count = 60;
    let ids: Vec<_> = (0..count).map(|_| site.comm().irecv(ANY, 2000, None).expect("irecv")).collect();
    let message = |seed: usize| octets(Encoding::Big, &parts(seed, 1500, 0).0, &[]);
    // First packets in turn with the rests, as the flow control allows.
    let mut rests = std::collections::VecDeque::new();
    for seed in 0..count {
        rests.push_back((speaker.begin(7, &message(seed)), seed));
        if seed % 6 == 5 {
            let (head, seed) = rests.pop_front().expect("begun");
            let answer = speaker.expect(SYNCACK, head.srqid);
            speaker.end(&head, answer.drqid, &message(seed));
        }
    }
    for (head, seed) in rests {
        let answer = speaker.expect(SYNCACK, head.srqid);
        speaker.end(&head, answer.drqid, &message(seed));
    }
    for (seed, id) in ids.into_iter().enumerate() {
        check(&site, site.wait(id), &parts(seed, 1500, 0));
    }
    assert_ne!(DATA, DATASYNC);
    site.check_clean();
}
