//! A large number of unexpected messages, received from the last tag to the first.

use std::path::PathBuf;
use std::sync::Arc;

use mpjdev_bootstrap::job;
use mpjdev_buffer::SlabSource;
use mpjdev_engine::pool::HeapPool;
use mpjdev_engine::{Comm, Config, Mode, RequestId, Uninterruptible, mpi};

use super::{Launcher, be_a_rank, directory, launch_one, mpich, open_mpi};
use crate::rank_harness;
use crate::test_message::TestMessage;

/// Picks this test, which is not part of the suite.
pub(super) const PICKED: &str = "a flood";
/// Number of messages.
const COUNT: &str = "MPJDEV_TEST_COUNT";
/// Octets of a message.
const LEN: usize = 8;

/// One of the two ranks that send and receive the messages.
pub(super) fn exchange() {
    let count = std::env::var(COUNT).ok().and_then(|count| count.parse().ok()).expect("a count");
    let pool = HeapPool::new(4 << 30);
    let comm =
        job::join(Config::default(), &pool, &mut Uninterruptible).expect("an MPI").expect("a launcher").world;
    let source: Arc<dyn SlabSource> = pool;
    for mode in [Mode::Standard, Mode::Synchronous] {
        match comm.rank() {
            0 => send(&comm, &source, mode, count),
            _ => receive(&comm, count),
        }
    }
    comm.finish(&mut Uninterruptible).expect("nothing is left");
    println!("flood of {count} ... ok");
    mpi::end(None);
}

fn send(comm: &Comm, source: &Arc<dyn SlabSource>, mode: Mode, count: usize) {
    let message = |i: usize| TestMessage::plain(i as u64, LEN).write(source);
    let start = |i| comm.isend(&message(i), 1, i as i32, mode).expect("it goes");
    let sends: Vec<Option<RequestId>> = (0..count).map(start).collect();
    comm.barrier(&mut Uninterruptible).expect("all come");
    for id in sends.into_iter().flatten() {
        comm.wait(id, None, &mut Uninterruptible).expect("it is received");
    }
}

fn receive(comm: &Comm, count: usize) {
    comm.barrier(&mut Uninterruptible).expect("all come");
    for tag in (0..count).rev() {
        let from = rank_harness::from(0, tag as i32);
        if tag % 1000 == 0 {
            assert_eq!(comm.probe(from, &mut Uninterruptible).expect("it arrives").tag, tag as i32);
        }
        let (_, message) = comm.recv(from, LEN, None, &mut Uninterruptible).expect("it arrives");
        TestMessage::plain(tag as u64, LEN).check(&message);
    }
}

fn launch(test: &str, launcher: fn() -> Result<Launcher, String>) {
    if directory().is_some() {
        return be_a_rank();
    }
    match launcher() {
        Ok(mut launcher) => {
            let count = rank_harness::amount(20_000, 1_000_000);
            launcher.variables.push((COUNT, PathBuf::from(count.to_string())));
            let out = launch_one(&format!("flood::{test}"), &launcher, 2, PICKED);
            assert_eq!(out.matches("... ok").count(), 2, "{out}");
        }
        Err(why) => println!("SKIPPED {test}: {why}"),
    }
}

#[test]
fn messages_without_receives_over_open_mpi() {
    launch("messages_without_receives_over_open_mpi", open_mpi);
}

#[test]
fn messages_without_receives_over_mpich() {
    launch("messages_without_receives_over_mpich", mpich);
}
