//! Barriers of ranks of ours with foreign ones: the clients' masters exchange the messages of IMPI 13.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use mpjdev_buffer::Encoding;
use mpjdev_engine::{Comm, Config, DeviceError};
use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::barrier::BarrierError;

use crate::masters::{CID, Master, Masters, TAG, expect_signal};
use crate::site::{
    ANY, Client, MAXLINEAR, Site, TERMS, content, for_a_while, from, octets, pair, soon, usual_pair,
};
use crate::speaker::{DATASYNC, Head, SYNCACK};

const ONE: Client = Client::Foreign(&[1]);

/// Jobs of two and three clients, with ours as lower and as higher ones. Some are linear, and some use the
/// tree.
pub(crate) const JOBS: [&[Client]; 10] = [
    &[Client::Ours(1), ONE],
    &[ONE, Client::Ours(1)],
    &[Client::Ours(3), ONE],
    &[Client::Foreign(&[2, 1]), Client::Ours(4)],
    &[Client::Ours(2), ONE, Client::Ours(3)],
    &[ONE, Client::Ours(2), ONE],
    &[Client::Ours(1), ONE, Client::Ours(2), ONE],
    &[ONE, ONE, Client::Ours(2), ONE, ONE],
    &[Client::Ours(2), ONE, ONE, ONE, Client::Ours(1), ONE],
    &[ONE, Client::Ours(1), ONE, ONE, Client::Ours(2), ONE, ONE, ONE, Client::Ours(1)],
];

/// Runs barriers on all ranks of ours and all foreign masters, and checks that no rank leaves before all have
/// entered.
pub(crate) fn meet(
    site: &Site,
    masters: &mut Masters,
    times: usize,
    of_ours: impl Fn(&Comm) -> Result<(), DeviceError> + Sync,
) {
    let total = site.ranks.len() + masters.all.len();
    let entered: Vec<AtomicUsize> = (0..times).map(|_| AtomicUsize::new(0)).collect();
    let (entered, of_ours) = (&entered, &of_ours);
    let enters = |time: usize| {
        entered[time].fetch_add(1, Ordering::SeqCst);
    };
    let leaves = |time: usize| assert_eq!(entered[time].load(Ordering::SeqCst), total, "barrier {time}");
    std::thread::scope(|scope| {
        for comm in site.ranks.values() {
            scope.spawn(move || {
                for time in 0..times {
                    enters(time);
                    of_ours(comm).unwrap_or_else(|error| panic!("rank {}: {error}", comm.rank()));
                    leaves(time);
                }
            });
        }
        for master in &mut masters.all {
            scope.spawn(move || {
                for time in 0..times {
                    master.barrier(|| enters(time));
                    leaves(time);
                }
            });
        }
    });
}

#[test]
fn no_rank_leaves_a_barrier_before_all_have_entered_and_only_masters_exchange_messages() {
    for clients in JOBS {
        for maxlinear in [MAXLINEAR, 1, 2, 100] {
            let mut site = Site::with_maxlinear(clients, maxlinear, TERMS, Config::default());
            let mut masters = Masters::of(&mut site, clients, maxlinear);
            meet(&site, &mut masters, 5, |comm| comm.barrier(&mut for_a_while()));
            let of_masters = masters.all.iter_mut().flat_map(|master| master.ours.values_mut());
            for speaker in of_masters.chain(&mut masters.others) {
                assert!(speaker.is_quiet(), "{clients:?}, {maxlinear}");
            }
            site.check_clean();
        }
    }
}

/// The messages have a context of their own, so no receive or probe matches them.
#[test]
fn no_receive_and_no_probe_of_a_program_meets_a_barriers_message() {
    let (site, mut speaker) = usual_pair();
    let posted = site.comm().irecv(ANY, 100, None).expect("irecv");
    speaker.send_as(0, CID, TAG, &[]);
    speaker.ask();
    assert!(site.comm().test(posted).expect("pending").is_none());
    for asked in [ANY, from(1, TAG), from(None, TAG), from(1, None)] {
        assert!(site.comm().iprobe(asked).expect("all ranks are alive").is_none());
    }
    // A message of the program may have the barrier's tag.
    speaker.send(TAG, &octets(Encoding::Big, &[5], &[]));
    let done = site.wait(posted).expect("the program's message");
    assert_eq!(done.status.expect("a status").tag, TAG);
    assert_eq!(content(&site, done.message.expect("a message")), (vec![5], vec![]));
    let behind = octets(Encoding::Big, &[6], &[]);
    speaker.send(TAG, &behind);
    site.comm().barrier(&mut for_a_while()).expect("all have entered");
    expect_signal(&mut speaker);
    let left = site.recv(from(1, TAG), 100).expect("it waited").message.expect("a message");
    assert_eq!(content(&site, left).0, [6]);
    site.check_clean();
}

/// Whether each rank of ours gets this error.
#[track_caller]
fn all_fail(site: &Site, is_it: impl Fn(u32, &DeviceError) -> bool + Sync) {
    std::thread::scope(|scope| {
        let threads = site.ranks.iter().map(|(rank, comm)| {
            let is_it = &is_it;
            scope.spawn(move || {
                let error = comm.barrier(&mut for_a_while()).unwrap_err();
                assert!(is_it(*rank, &error), "rank {rank}: {error}");
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().for_each(|thread| thread.join().expect("as it must"));
    });
}

/// Lets all ranks of ours enter, runs a step of the foreign masters, and checks the outcome of the barrier.
#[track_caller]
fn fails(
    clients: &[Client],
    meanwhile: impl FnOnce(&mut Vec<Master>) + Send,
    is_it: impl Fn(u32, &DeviceError) -> bool + Sync,
) {
    let mut site = Site::new(clients, TERMS, Config::default());
    let mut masters = Masters::of(&mut site, clients, MAXLINEAR);
    let Masters { all, others } = &mut masters;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            meanwhile(all);
            // A host's connections end together.
            if all.is_empty() {
                others.clear();
            }
        });
        all_fail(&site, is_it);
    });
    // Messages of another master to one that has ended its wait stay.
    assert!(site.ranks.values().all(|comm| comm.leftovers().1 == 0));
}

fn has_failed(rank: u32) -> impl Fn(u32, &DeviceError) -> bool + Sync {
    move |_, error| matches!(error, DeviceError::PeerFailed { rank: failed, .. } if *failed == rank)
}

#[test]
fn a_barrier_fails_on_all_ranks_of_ours_when_a_foreign_master_dies_in_it() {
    fails(&[Client::Ours(1), ONE], Vec::clear, has_failed(1));
    fails(&[Client::Ours(3), ONE], Vec::clear, has_failed(3));
    // After the messages of ours.
    let hears = |number: usize| {
        move |all: &mut Vec<Master>| {
            expect_signal(all[0].ours.get_mut(&number).expect("connected"));
            all.clear();
        }
    };
    fails(&[ONE, Client::Ours(1)], hears(1), has_failed(0));
    fails(&[ONE, Client::Ours(4)], hears(1), has_failed(0));
    // Two clients of ours, of which the second waits for the first.
    fails(&[Client::Ours(1), ONE, Client::Ours(2)], Vec::clear, has_failed(1));
}

/// Master 0 waits for master 1, which is alive and waits as well. The death of another master ends the
/// barrier.
#[test]
fn barrier_fails_when_an_awaited_rank_dies() {
    let last_dies = |all: &mut Vec<Master>| drop(all.pop());
    fails(&[Client::Ours(1), ONE, ONE], last_dies, has_failed(2));
    fails(&[ONE, Client::Ours(1), ONE], last_dies, has_failed(2));
    // In a tree.
    fails(&[ONE, Client::Ours(1), ONE, ONE, ONE], last_dies, has_failed(4));
    fails(&[Client::Ours(1), ONE, ONE, ONE, ONE], last_dies, has_failed(4));
}

#[test]
fn a_barrier_fails_when_a_foreign_rank_has_finished_without_it() {
    let finishes = |all: &mut Vec<Master>| {
        all.iter_mut().flat_map(|master| master.ours.values_mut()).for_each(crate::speaker::Speaker::fini);
    };
    let is_it = |_: u32, error: &DeviceError| *error == DeviceError::PeerFinished { rank: 1 };
    fails(&[Client::Ours(1), ONE], finishes, is_it);
}

/// A barrier's message has no octets. The receiver notifies the other ranks of its client.
#[test]
fn a_barriers_message_with_octets_fails_the_barrier_with_their_number() {
    for len in [1, 8, 256, 257, 5000] {
        let sends = move |all: &mut Vec<Master>| {
            let speaker = all[0].ours.get_mut(&0).expect("connected");
            let octets = vec![0; len];
            match len {
                0..=256 => speaker.send_as(0, CID, TAG, &octets),
                _ => {
                    let begun = Head {
                        len: 256,
                        msglen: len as u64,
                        tag: TAG,
                        cid: CID,
                        srqid: 77,
                        ..speaker.head(DATASYNC)
                    };
                    speaker.send_packet(&begun, &octets[..256]);
                    let answer = speaker.expect(SYNCACK, 77);
                    speaker.end(&begun, answer.drqid, &octets);
                }
            }
        };
        fails(&[Client::Ours(3), ONE], sends, |rank, error| match (rank, error) {
            (0, error) => {
                *error == BarrierError::NotEmpty { source_rank: 3, len: len as u64 }.into()
                    && error.to_string().contains(&len.to_string())
            }
            (_, error) => matches!(error, DeviceError::PeerFailed { rank: 3, .. }),
        });
    }
}

/// A message with another tag belongs to another operation. Ours have none, so no rank takes it.
#[test]
fn other_messages_in_its_context_do_not_count_for_the_barrier() {
    let (site, mut speaker) = usual_pair();
    for tag in [0, 1, TAG - 1, TAG + 1, 120, 190] {
        speaker.send_as(0, CID, tag, &[]);
    }
    let entered = &AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            assert!(speaker.is_quiet(), "no rank has entered yet");
            entered.store(1, Ordering::SeqCst);
            speaker.send_as(0, CID, TAG, &[]);
            expect_signal(&mut speaker);
        });
        site.comm().barrier(&mut for_a_while()).expect("all have entered");
        assert_eq!(entered.load(Ordering::SeqCst), 1);
    });
    assert!(site.comm().iprobe(ANY).expect_err("it has ended").to_string().contains("all other ranks"));
}

/// A master may send it as a synchronous message, too; then it gets a match ack.
#[test]
fn synchronous_barrier_message_counts_and_is_acked() {
    let (site, mut speaker) = usual_pair();
    let head = Head { tag: TAG, cid: CID, srqid: 5, ..speaker.head(DATASYNC) };
    speaker.send_packet(&head, &[]);
    site.comm().barrier(&mut for_a_while()).expect("all have entered");
    speaker.expect(SYNCACK, 5);
    expect_signal(&mut speaker);
    assert!(speaker.is_quiet());
    site.check_clean();
}

/// The draft requires negative tags and does not name them (IMPI 3.6).
#[test]
fn barrier_with_foreign_ranks_is_refused_in_the_drafts_dialect() {
    let terms = mpjdev_transport::tcp::Terms { dialect: Dialect::Draft, ..TERMS };
    let (site, _speaker) = pair(terms, Config::default());
    let error = site.comm().barrier(&mut for_a_while()).unwrap_err();
    assert_eq!(error, DeviceError::Foreign { operation: "barrier", rank: 1 });
}

/// An interrupted wait continues where it was.
#[test]
fn interrupted_barrier_completes_later() {
    let (site, mut speaker) = usual_pair();
    let mut barrier = site.comm().start_barrier();
    assert!(barrier.advance().expect("nothing is wrong").is_none());
    // A wait has a time limit, which may pass before it asks its wait control.
    let deadline = soon();
    let interrupted = loop {
        match barrier.wait(&mut || false) {
            Ok(()) if Instant::now() < deadline => {}
            ended => break ended,
        }
    };
    assert_eq!(interrupted, Err(DeviceError::Interrupted));
    speaker.send_as(0, CID, TAG, &[]);
    barrier.finish(&mut for_a_while()).expect("all have entered");
    expect_signal(&mut speaker);
    site.check_clean();
}
