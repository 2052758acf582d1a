//! Jobs: the bodies of the native methods that make ranks and end them.

use mpjdev_bootstrap::job;
use mpjdev_engine::{Comm, Config, mpi};
use mpjdev_profile::{Call, Span};

use crate::array::Array;
use crate::boundary::Env;
use crate::comm::Answer;
use crate::{handle, stats};

pub(crate) fn world_of_one(_: &mut Env) -> Answer {
    handle::keep_comm(alone_in_world())
}

fn alone_in_world() -> Comm {
    job::local(1, Config::default(), &handle::private()).remove(0)
}

/// Makes this process the rank that a launcher has started it as, or rank 0 of 1 without a launcher. Blocks
/// until all ranks have joined.
pub(crate) fn process_world(env: &mut Env) -> Answer {
    let world = match job::join(Config::default(), handle::pool(), &mut || env.may_wait())? {
        Some(joined) => {
            if let Some(endpoint) = joined.world.packet_engine() {
                handle::share(joined.source, endpoint);
            }
            joined.world
        }
        None => alone_in_world(),
    };
    stats::start_profile(&world);
    handle::keep_comm(world)
}

/// Makes a job of as many ranks as the array has elements, and stores their world communicators in it.
pub(crate) fn local_job(env: &mut Env, worlds: Array, message_oriented: bool) -> Answer<()> {
    let config = Config { message_oriented, ..Config::default() };
    for (rank, world) in job::local(worlds.len(), config, &handle::private()).into_iter().enumerate() {
        let handle = handle::keep_comm(world)?;
        worlds.put_long(env, rank, handle);
    }
    Ok(())
}

/// Whether the process has to [end its MPI](end_process) before it exits.
pub(crate) fn uses_mpi(_: &mut Env) -> Answer<bool> {
    Ok(mpi::is_used())
}

/// Ends the use of an MPI; does nothing without one. If the rank of this process has not finished, ends the
/// job with this reason.
pub(crate) fn end_process(_: &mut Env, why: String) -> Answer<()> {
    mpi::end((!why.is_empty()).then_some(&*why));
    Ok(())
}

/// Ends the job with a status of one octet, if a C MPI carries it.
pub(crate) fn end_job(_: &mut Env, status: i32, why: String) -> Answer<()> {
    mpi::end_job(u8::try_from(status).unwrap_or(u8::MAX), &why);
    Ok(())
}

/// Finishes this rank. The warning about messages that no receive took is printed here, for all Java
/// interfaces.
pub(crate) fn finish(env: &mut Env, comm: i64) -> Answer<()> {
    let comm = handle::comm(comm)?;
    let span = Span::begin(Call::Finalize);
    let finished = comm.finish(&mut || env.may_wait());
    span.end();
    stats::write_profile();
    if let Some(unreceived) = comm.take_unreceived() {
        eprintln!("mpjdev: {unreceived}");
    }
    if let Some(endpoint) = comm.packet_engine() {
        handle::unshare(endpoint);
    }
    Ok(finished?)
}

/// Ends the job: all operations of all ranks fail.
pub(crate) fn abort(_: &mut Env, comm: i64, why: String) -> Answer<()> {
    handle::comm(comm)?.fail(&why);
    Ok(())
}
