//! Communicators that are made and freed more often than a library has context ids: about 2000 in MPICH, 2^16
//! in Open MPI.

use std::path::PathBuf;
use std::sync::Arc;

use mpjdev_bootstrap::job;
use mpjdev_buffer::SlabSource;
use mpjdev_engine::collective::Outcome;
use mpjdev_engine::pool::HeapPool;
use mpjdev_engine::{Comm, Config, Mode, Uninterruptible, mpi};

use super::{Launcher, be_a_rank, directory, launch_one, mpich, open_mpi};
use crate::rank_harness;
use crate::test_message::TestMessage;

/// Picks the test of one round with many communicators.
pub(super) const CYCLES: &str = "communicators come and go";
/// Picks the test of many rounds in which rank 1 keeps its communicators.
pub(super) const ROUNDS: &str = "communicators are kept";

/// Number of communicators.
const COUNT: &str = "MPJDEV_TEST_COUNT";
/// Communicators that are made in each round.
const KEPT: usize = 50;
/// More than MPICH has context ids, for two of its communicators each.
const MANY: usize = 1200;

fn dup(comm: &Comm) -> Comm {
    match comm.start_dup().finish(&mut Uninterruptible) {
        Ok(Outcome::Created(Some(comm))) => comm,
        other => panic!("dup gives {other:?}"),
    }
}

fn join(pool: &Arc<HeapPool>) -> Comm {
    job::join(Config::default(), pool, &mut Uninterruptible).expect("an MPI").expect("a launcher").world
}

fn count() -> usize {
    std::env::var(COUNT).ok().and_then(|count| count.parse().ok()).expect("a count")
}

/// The tag of a cycle's messages.
fn tag(cycle: usize) -> i32 {
    cycle as i32 % 32_767
}

/// Sends the next rank a message that it does not receive, sometimes a rendezvous.
fn leave_message(comm: &Comm, source: &Arc<dyn SlabSource>, cycle: usize) {
    let test_message =
        if cycle.is_multiple_of(3) { TestMessage::split(2, 30_000, 300) } else { TestMessage::plain(1, 16) };
    let dest = (comm.rank() + 1) % comm.size() as u32;
    let sent =
        comm.isend(&test_message.write(source), dest as i32, tag(cycle), Mode::Standard).expect("it goes");
    if let Some(id) = sent {
        comm.detach(id);
    }
}

/// One rank of a job that makes and frees communicators, each with an unreceived message.
pub(super) fn make_and_free() {
    let pool = HeapPool::new(1 << 30);
    let world = join(&pool);
    let source: Arc<dyn SlabSource> = pool;
    for cycle in 0..count() {
        let comm = dup(&world);
        let seen = comm.iprobe(rank_harness::ANY).expect("iprobe");
        assert!(seen.is_none_or(|seen| seen.tag == tag(cycle)), "{seen:?} in cycle {cycle}");
        leave_message(&comm, &source, cycle);
        comm.free();
    }
    // A rank that has finished is sent nothing more.
    world.barrier(&mut Uninterruptible).expect("both ranks left their messages");
    world.finish(&mut Uninterruptible).expect("what is freed is dropped");
    println!("freed ... ok");
    mpi::end(None);
}

/// One rank of a job that joins many times. Rank 1 frees the communicators of a session after its finish.
pub(super) fn make_and_keep() {
    let pool = HeapPool::new(1 << 30);
    for _ in 0..count() / KEPT {
        let world = join(&pool);
        let mut kept = Vec::new();
        for _ in 0..KEPT {
            let comm = dup(&world);
            if world.rank() == 1 {
                kept.push(comm);
            }
        }
        world.finish(&mut Uninterruptible).expect("nothing was sent");
    }
    println!("freed ... ok");
    mpi::end(None);
}

fn launch(test: &str, launcher: fn() -> Result<Launcher, String>, pick: &str, count: usize) {
    if directory().is_some() {
        return be_a_rank();
    }
    match launcher() {
        Ok(mut launcher) => {
            launcher.variables.push((COUNT, PathBuf::from(count.to_string())));
            let out = launch_one(&format!("freed::{test}"), &launcher, 2, pick);
            assert_eq!(out.matches("freed ... ok").count(), 2, "{out}");
        }
        Err(why) => println!("SKIPPED {test}: {why}"),
    }
}

macro_rules! freed {
    ($($test:ident: $launcher:ident, $pick:ident, $check:expr, $soak:expr;)*) => {
        $(
            #[test]
            fn $test() {
                launch(stringify!($test), $launcher, $pick, rank_harness::amount($check, $soak));
            }
        )*
    };
}

freed! {
    open_mpi_has_context_ids_for_all_communicators: open_mpi, CYCLES, 300, 100_000;
    mpich_has_context_ids_for_all_communicators: mpich, CYCLES, MANY, 100_000;
    open_mpi_frees_what_one_rank_kept_in_the_next_round: open_mpi, ROUNDS, 100, 40_000;
    mpich_frees_what_one_rank_kept_in_the_next_round: mpich, ROUNDS, MANY, 10_000;
}
