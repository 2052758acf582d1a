//! The barrier at the end of a job with foreign ranks (IMPI 14): after all messages, before each rank's Fini.

use std::time::{Duration, Instant};

use mpjdev_buffer::Encoding;
use mpjdev_engine::{Comm, Config, DeviceError, Mode};
use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::barrier::BarrierError;
use mpjdev_transport::tcp::Terms;

use crate::barriers::{JOBS, meet};
use crate::masters::{CID, Masters, TAG, expect_signal};
use crate::site::{Client, MAXLINEAR, Site, TERMS, for_a_while, from, pair, usual_pair};
use crate::speaker::{FINI, SYNCACK, Speaker};

const ONE: Client = Client::Foreign(&[1]);

fn finish(comm: &Comm) -> Result<(), DeviceError> {
    comm.finish(&mut for_a_while())
}

/// Nothing but the Fini arrives.
#[track_caller]
fn expect_fini(speaker: &mut Speaker) {
    assert_eq!(speaker.take().0.kind, FINI);
}

#[test]
fn no_rank_finishes_before_all_have_entered_the_barrier_and_all_send_fini() {
    for clients in JOBS {
        for maxlinear in [MAXLINEAR, 1] {
            let mut site = Site::with_maxlinear(clients, maxlinear, TERMS, Config::default());
            let mut masters = Masters::of(&mut site, clients, maxlinear);
            // A barrier before it, as in programs of LAM that end with a barrier.
            meet(&site, &mut masters, 1, |comm| comm.barrier(&mut for_a_while()));
            meet(&site, &mut masters, 1, finish);
            let of_masters = masters.all.iter_mut().flat_map(|master| master.ours.values_mut());
            for speaker in of_masters.chain(&mut masters.others) {
                expect_fini(speaker);
                speaker.fini();
            }
            site.check_clean();
            drop(site);
            let of_masters = masters.all.iter_mut().flat_map(|master| master.ours.values_mut());
            of_masters.chain(&mut masters.others).for_each(|speaker| assert!(speaker.drain().is_empty()));
        }
    }
}

/// A speaker for a rank that counts as one of ours receives the Fini alone, as before.
#[test]
fn a_job_of_ranks_of_ours_ends_without_a_barrier() {
    for clients in [[Client::Ours(1), Client::Posing(1)], [Client::Posing(2), Client::Ours(2)]] {
        let site = Site::new(&clients, TERMS, Config::default());
        site.ranks.values().for_each(|comm| assert_eq!(finish(comm), Ok(())));
        for mut speaker in site.speakers.into_values() {
            expect_fini(&mut speaker);
        }
    }
}

#[test]
fn messages_are_matched_before_a_rank_enters_the_barrier() {
    let (site, mut speaker) = usual_pair();
    let message = site.message(Encoding::Big, &[1; 2000], &[]);
    let id = site.comm().isend(&message, 1, 7, Mode::Synchronous).expect("isend").expect("pending");
    drop(message);
    std::thread::scope(|scope| {
        let finishing = scope.spawn(|| finish(site.comm()));
        let (head, _) = speaker.take();
        assert_eq!(head.tag, 7);
        // Its part of the barrier has already arrived and gets no answer.
        speaker.send_as(0, CID, TAG, &[]);
        assert!(speaker.is_quiet(), "a message waits to be matched");
        speaker
            .send_packet(&crate::speaker::Head { srqid: head.srqid, drqid: 3, ..speaker.head(SYNCACK) }, &[]);
        let mut here = u64::from(head.len);
        while here < head.msglen {
            let (part, _) = speaker.take();
            assert_eq!(part.drqid, 3);
            here += u64::from(part.len);
        }
        expect_signal(&mut speaker);
        expect_fini(&mut speaker);
        assert_eq!(finishing.join().expect("no panic"), Ok(()));
    });
    site.wait(id).expect("it was matched");
    site.check_clean();
}

/// Finishes each rank of ours and returns the results by rank.
fn finish_all(site: &Site) -> Vec<(u32, Result<(), DeviceError>)> {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            site.ranks.iter().map(|(rank, comm)| (*rank, scope.spawn(|| finish(comm)))).collect();
        threads.into_iter().map(|(rank, thread)| (rank, thread.join().expect("no panic"))).collect()
    })
}

fn impatient(time: Duration) -> Config {
    Config { foreign_timeout: time, ..Config::default() }
}

#[test]
fn absent_foreign_master_is_named() {
    let patience = Duration::from_millis(100);
    let jobs: [&[Client]; 4] = [
        &[Client::Ours(1), ONE],
        &[Client::Ours(3), ONE],
        &[ONE, Client::Ours(2)],
        &[ONE, ONE, ONE, ONE, Client::Ours(1)],
    ];
    for clients in jobs {
        let mut site = Site::new(clients, TERMS, impatient(patience));
        let masters = Masters::of(&mut site, clients, MAXLINEAR);
        let (first, absent) = match clients[0] {
            Client::Ours(ranks) => (0, ranks as u32),
            _ => (masters.all.len() as u32, 0),
        };
        for (rank, ended) in finish_all(&site) {
            match ended.unwrap_err() {
                error @ DeviceError::NotAtBarrier { .. } if rank == first => {
                    let DeviceError::NotAtBarrier { rank, after } = error else { unreachable!("just seen") };
                    assert!(rank == absent && after >= patience, "{error}");
                    let begin = format!("rank {absent} has not reached the barrier");
                    assert!(error.to_string().starts_with(&begin), "{error}");
                }
                // The master notifies the other ranks of its client.
                DeviceError::PeerFailed { rank: failed, .. } if rank != first => assert_eq!(failed, absent),
                error => panic!("rank {rank}: {error}"),
            }
        }
        // They have finished nevertheless.
        for mut speaker in masters.all.into_iter().flat_map(|master| master.ours.into_values()) {
            while speaker.take().0.kind != FINI {}
        }
        site.check_clean();
    }
}

/// The second client of ours waits for the first one, which ends its wait.
#[test]
fn ranks_of_ours_wait_for_each_other_without_a_timeout() {
    let clients = [Client::Ours(1), ONE, Client::Ours(2)];
    let mut site = Site::new(&clients, TERMS, impatient(Duration::from_millis(100)));
    let _masters = Masters::of(&mut site, &clients, MAXLINEAR);
    let ended = finish_all(&site);
    assert!(matches!(ended[0].1, Err(DeviceError::NotAtBarrier { rank: 1, .. })), "{ended:?}");
    for (_, ended) in &ended[1..] {
        assert_eq!(*ended, Err(DeviceError::PeerFinished { rank: 0 }));
    }
}

#[test]
fn timeout_restarts_with_each_packet() {
    // A probe and its answer take less time on any machine.
    let patience = Duration::from_secs(5);
    let (site, mut speaker) = pair(TERMS, impatient(patience));
    std::thread::scope(|scope| {
        let finishing = scope.spawn(|| finish(site.comm()));
        let begun = Instant::now();
        while begun.elapsed() < patience * 6 / 5 {
            assert!(speaker.is_quiet());
        }
        speaker.send_as(0, CID, TAG, &[]);
        expect_signal(&mut speaker);
        assert_eq!(finishing.join().expect("no panic"), Ok(()));
    });
}

#[test]
fn finishing_fails_on_all_ranks_of_ours_when_a_foreign_rank_dies_in_the_barrier() {
    let jobs: [(&[Client], u32); 5] = [
        (&[Client::Ours(1), ONE], 1),
        (&[Client::Ours(3), ONE], 3),
        (&[ONE, Client::Ours(2)], 0),
        (&[Client::Ours(1), ONE, Client::Ours(2)], 1),
        (&[ONE, Client::Ours(2), ONE, ONE, ONE], 0),
    ];
    for (clients, dead) in jobs {
        for before in [true, false] {
            let mut site = Site::new(clients, TERMS, Config::default());
            let mut masters = Masters::of(&mut site, clients, MAXLINEAR);
            let ended = std::thread::scope(|scope| {
                let finishing = scope.spawn(|| finish_all(&site));
                let mut first = masters.all.remove(0);
                // In a tree it would first wait for others.
                if !before && first.number == 0 && clients.len() <= MAXLINEAR as usize {
                    expect_signal(first.ours.get_mut(&1).expect("connected"));
                }
                drop(first);
                masters.others.retain(|speaker| speaker.head(0).lsrank != dead as i32);
                finishing.join().expect("no panic")
            });
            for (rank, ended) in ended {
                match ended.unwrap_err() {
                    DeviceError::PeerFailed { rank: failed, .. } => assert_eq!(failed, dead, "rank {rank}"),
                    // The other client of ours has noticed it before, and ended.
                    DeviceError::PeerFinished { rank: 0 } if rank >= 2 && dead == 1 => {}
                    error => panic!("{clients:?}, rank {rank}: {error}"),
                }
            }
            let no_request = |comm: &Comm| comm.leftovers().1 == 0;
            assert!(site.ranks.values().all(no_request));
        }
    }
}

/// A rank that has sent its Fini needs no other rank, and no rank waits for it, although it has not entered
/// the barrier.
#[test]
fn a_foreign_rank_that_has_finished_is_not_waited_for() {
    for clients in [[Client::Ours(2), ONE], [ONE, Client::Ours(2)]] {
        let site = Site::new(&clients, TERMS, Config::default());
        let mut speakers: Vec<Speaker> = site.speakers.into_values().collect();
        speakers.iter_mut().for_each(Speaker::fini);
        let site = Site { speakers: std::collections::BTreeMap::new(), ..site };
        finish_all(&site).into_iter().for_each(|(_, ended)| assert_eq!(ended, Ok(())));
        site.check_clean();
    }
}

#[test]
fn octets_in_the_last_barrier_fail_it_with_their_number() {
    let clients = [Client::Ours(2), ONE];
    let mut site = Site::new(&clients, TERMS, Config::default());
    let mut masters = Masters::of(&mut site, &clients, MAXLINEAR);
    masters.all[0].ours.get_mut(&0).expect("connected").send_as(0, CID, TAG, &[1, 2, 3]);
    let ended = finish_all(&site);
    assert_eq!(ended[0].1, Err(BarrierError::NotEmpty { source_rank: 2, len: 3 }.into()));
    assert!(matches!(ended[1].1, Err(DeviceError::PeerFailed { rank: 2, .. })), "{ended:?}");
    site.check_clean();
}

/// An interrupt ends the wait, and the rank.
#[test]
fn interrupted_finish_is_complete() {
    let (site, mut speaker) = usual_pair();
    let mut asked = 0;
    let mut patience = || {
        asked += 1;
        asked < 5
    };
    assert_eq!(site.comm().finish(&mut patience), Err(DeviceError::Interrupted));
    expect_fini(&mut speaker);
    assert_eq!(site.recv(from(1, 1), 8).unwrap_err(), DeviceError::Finished { rank: 0 });
    site.check_clean();
}

/// The job has failed already, so no rank waits.
#[test]
fn a_job_that_has_failed_ends_without_a_barrier() {
    let (site, mut speaker) = usual_pair();
    site.comm().fail("enough");
    assert_eq!(finish(site.comm()), Ok(()));
    expect_fini(&mut speaker);
}

/// The tags of its barrier are not known (IMPI 3.6), and there is no Fini.
#[test]
fn a_job_in_the_drafts_dialect_ends_without_a_barrier() {
    let (site, mut speaker) = pair(Terms { dialect: Dialect::Draft, ..TERMS }, Config::default());
    assert_eq!(finish(site.comm()), Ok(()));
    assert!(speaker.drain().is_empty());
}

/// While a rank waits for the others its receives are still pending, and its sends are not.
#[test]
fn a_rank_that_waits_in_the_barrier_sends_nothing_more() {
    let (site, mut speaker) = usual_pair();
    let posted = site.comm().irecv(from(1, 5), 100, None).expect("irecv");
    std::thread::scope(|scope| {
        let finishing = scope.spawn(|| finish(site.comm()));
        site.until("it has begun", |comm| comm.iprobe(from(1, 6)).is_err());
        let message = site.message(Encoding::Big, &[1], &[]);
        let error = site.comm().send(&message, 1, 3, Mode::Standard, &mut for_a_while()).unwrap_err();
        assert_eq!(error, DeviceError::Finished { rank: 0 });
        drop(message);
        speaker.send(5, &crate::site::octets(Encoding::Big, &[2], &[]));
        speaker.send_as(0, CID, TAG, &[]);
        assert_eq!(finishing.join().expect("no panic"), Ok(()));
    });
    assert!(site.wait(posted).is_ok());
    expect_signal(&mut speaker);
    expect_fini(&mut speaker);
    site.check_clean();
}
