//! Tests of rank 0 that fails in the middle of a creation.

use std::sync::Arc;

use mpjdev_buffer::SlabSource;
use mpjdev_proto::context::{WORLD, collective};
use mpjdev_transport::config::{Config, ENVELOPE_LEN};
use mpjdev_transport::pool::HeapPool;
use mpjdev_transport::{PacketSource, Transport, local};

use super::traffic::pack;
use super::{Operation, Outcome};
use crate::comm::Comm;
use crate::error::DeviceError;
use crate::operation::Mode;
use crate::packet::PacketEngine;

/// A tag that no collective operation receives.
const UNUSED_TAG: i32 = 1000;

fn worlds(ranks: u32, config: &Config) -> Vec<Comm> {
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
