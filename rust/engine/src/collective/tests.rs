//! Tests of creations, and of ranks that fail in the middle of one.

use std::sync::Arc;

use mpjdev_buffer::SlabSource;
use mpjdev_proto::collective::Refusal;
use mpjdev_proto::context::{WORLD, collective};
use mpjdev_transport::config::{Config, ENVELOPE_LEN};
use mpjdev_transport::pool::HeapPool;
use mpjdev_transport::wait::Uninterruptible;
use mpjdev_transport::{PacketSource, Transport, local};

use super::traffic::pack;
use super::{Operation, Outcome};
use crate::comm::Comm;
use crate::error::DeviceError;
use crate::operation::Mode;
use crate::packet::PacketEngine;

/// A tag that no collective operation receives.
const UNUSED_TAG: i32 = 1000;

pub(super) fn worlds(ranks: u32, config: &Config) -> Vec<Comm> {
    let source: Arc<dyn SlabSource> = HeapPool::new(1 << 30);
    let ends = local::connect(ranks as usize, config).into_iter();
    let engines = ends.zip(0..).map(|((transport, packets), rank)| {
        let ends: (Arc<dyn Transport>, Box<dyn PacketSource>) = (Arc::new(transport), Box::new(packets));
        PacketEngine::new(rank, ranks, config.clone(), ends, source.clone())
    });
    engines.map(|engine| Comm::world(Arc::new(engine))).collect()
}

/// Sends messages on the collective context until the rank refuses more: no receive takes them.
fn use_up_reserve(comm: &Comm, dest: u32) {
    let engine = comm.packet_engine().expect("no C MPI");
    let message = pack(comm.source(), &[]).expect("memory");
    let isend = || engine.isend(dest, collective(WORLD), UNUSED_TAG, &message, Mode::Synchronous);
    let refused = (0..1000).find_map(|_| isend().err());
    assert!(matches!(refused, Some(DeviceError::Unmatched { .. })), "{refused:?}");
}

#[track_caller]
fn assert_waits(operation: &mut Operation) {
    assert!(matches!(operation.advance(), Ok(None)));
}

/// Advances operations in turns until all are complete.
fn finish(operations: &mut [Operation]) -> Vec<Comm> {
    let mut made: Vec<Option<Comm>> = operations.iter().map(|_| None).collect();
    for _ in 0..1000 {
        for (operation, made) in operations.iter_mut().zip(&mut made).filter(|(_, made)| made.is_none()) {
            if let Some(Outcome::Created(comm)) = operation.advance().expect("no failure") {
                *made = comm;
            }
        }
    }
    made.into_iter().map(|made| made.expect("a communicator")).collect()
}

/// Two communicators of two ranks each, at all four ranks, and the start of an intercommunicator of both.
fn start_intercomms(worlds: &[Comm]) -> (Vec<Comm>, Vec<Operation>) {
    let mut splits: Vec<_> = (0..).zip(worlds).map(|(rank, world)| world.start_split(rank / 2, 0)).collect();
    let halves = finish(&mut splits);
    let starts = (0..).zip(halves.iter().zip(worlds));
    let starts =
        starts.map(|(rank, (half, world))| half.start_intercomm(0, Some(world), 2 - rank / 2 * 2, 7));
    let starts = starts.collect();
    (halves, starts)
}

/// Members, peers and ranks of an intercommunicator, of its dup and of the merged one.
#[test]
fn intercommunicator_has_two_groups_and_merges_them() {
    let worlds = worlds(4, &Config::default());
    let (_halves, mut starts) = start_intercomms(&worlds);
    let inters = finish(&mut starts);
    let dups = finish(&mut inters.iter().map(Comm::start_dup).collect::<Vec<_>>());
    for comms in [&inters, &dups] {
        for (rank, comm) in (0..).zip(comms) {
            assert!(comm.is_inter());
            assert_eq!((comm.rank(), comm.size()), (rank % 2, 2));
            let groups: [&[u32]; 2] = if rank < 2 { [&[0, 1], &[2, 3]] } else { [&[2, 3], &[0, 1]] };
            assert_eq!([comm.members(), comm.peers()], groups);
        }
    }
    assert_ne!(inters[0].context(), dups[0].context());
    let mut merges: Vec<_> = (0..).zip(&dups).map(|(rank, comm)| comm.start_merge(rank < 2)).collect();
    for (rank, merged) in (0..).zip(finish(&mut merges)) {
        assert!(!merged.is_inter());
        assert_eq!((merged.members(), merged.rank()), (&[2, 3, 0, 1][..], (rank + 2) % 4));
    }
    let bad = inters[0].isend(&pack(inters[0].source(), &[]).expect("memory"), 2, 0, Mode::Standard);
    assert_eq!(bad, Err(DeviceError::BadRank { rank: 2, size: 2 }));
}

/// A leader leaves after its offer: no rank gets the intercommunicator, and the other group continues.
#[test]
fn leader_that_leaves_ends_the_creation_in_both_groups() {
    let worlds = worlds(4, &Config::default());
    let (halves, mut starts) = start_intercomms(&worlds);
    starts.iter_mut().for_each(assert_waits);
    drop(starts.remove(0));
    for (operation, own) in starts.iter_mut().zip(1..) {
        let mut ended = operation.advance();
        for _ in 0..10 {
            if matches!(ended, Ok(None)) {
                ended = operation.advance();
            }
        }
        let left = DeviceError::Refused(Refusal::Left { rank: 0 });
        assert_eq!(ended.map(drop), Err(left), "rank {own}");
    }
    let barrier = halves[1].start_barrier().advance().map(drop);
    assert!(matches!(barrier, Err(DeviceError::Abandoned { .. })), "{barrier:?}");
    let mut dups: Vec<_> = halves[2..].iter().map(Comm::start_dup).collect();
    finish(&mut dups);
}

/// A leader with invalid arguments tells its group. Both continue with the communicator of the group.
#[test]
fn invalid_arguments_of_a_leader_end_the_creation_in_its_group() {
    let worlds = worlds(4, &Config::default());
    let (halves, starts) = start_intercomms(&worlds);
    drop(starts);
    let half = &halves[2..];
    let freed: Option<&Comm> = None;
    let size = worlds.len();
    let cases = [
        (freed, 0, 7, DeviceError::Freed),
        (Some(&worlds[2]), 4, 7, DeviceError::BadRank { rank: 4, size }),
        (Some(&worlds[2]), 0, -1, DeviceError::BadTag { tag: -1, max: i32::MAX }),
        (Some(&worlds[0]), 0, 7, DeviceError::MixedRanks),
    ];
    for (peer, remote_leader, tag, why) in cases {
        let mut other = half[1].start_intercomm(0, None, 0, 7);
        assert_waits(&mut other);
        let refused = half[0].start_intercomm(0, peer, remote_leader, tag).advance();
        assert_eq!(refused.map(drop), Err(why));
        let left = DeviceError::Refused(Refusal::Left { rank: 2 });
        assert_eq!(other.advance().map(drop), Err(left));
        finish(&mut half.iter().map(Comm::start_dup).collect::<Vec<_>>());
    }
}

/// Rank 1 has its settlement, and the one for rank 2 cannot be sent.
#[test]
fn rank_0_that_fails_between_settlements_leaves_the_new_communicator() {
    let config = Config { queue_cells: 1024, envelopes: ENVELOPE_LEN, ..Config::default() };
    let worlds = worlds(3, &config);
    let mut dups: Vec<Operation> = worlds.iter().map(Comm::start_dup).collect();
    dups.iter_mut().for_each(assert_waits);
    use_up_reserve(&worlds[0], 2);
    // Without credit a settlement needs a match ack.
    assert!(worlds[0].packet_engine().expect("no C MPI").take_credit(2, 2 * config.credit));
    let failed = dups[0].advance();
    assert!(matches!(failed, Err(DeviceError::Unmatched { rank: 2, .. })), "{:?}", failed.map(drop));
    let Ok(Some(Outcome::Created(Some(made)))) = dups[1].advance() else { panic!("rank 1 is settled") };
    let barrier = made.start_barrier().advance().map(drop);
    assert!(matches!(barrier, Err(DeviceError::Abandoned { rank: 0, .. })), "{barrier:?}");
}

#[test]
fn barrier_after_finish_is_refused() {
    let worlds = worlds(1, &Config::default());
    worlds[0].barrier(&mut Uninterruptible).expect("of one rank");
    let engine = worlds[0].packet_engine().expect("over a transport");
    engine.finish(None, &mut Uninterruptible).expect("nothing is left");
    assert_eq!(worlds[0].barrier(&mut Uninterruptible), Err(DeviceError::Finished { rank: 0 }));
}
