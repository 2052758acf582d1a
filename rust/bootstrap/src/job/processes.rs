//! The rank that this process is.

use std::os::fd::AsFd;
use std::sync::Arc;

use mpjdev_buffer::SlabSource;
use mpjdev_engine::Comm;
use mpjdev_engine::mpi;
use mpjdev_sys::segment::has_room;
use mpjdev_transport::config::Config;
use mpjdev_transport::pool::HeapPool;
use mpjdev_transport::room;
use mpjdev_transport::wait::WaitControl;
use mpjdev_transport::{StatusReporter, shm};
use tracing::{debug, warn};

use crate::control;
use crate::setup::PortRelay;

use super::admission::{Admission, Admitted};
use super::error::{JoinError, LauncherFault, system};
use super::launcher;
use super::network::{self, Memory};
use super::ranks::shm_rank;

/// The rank of this process, and the source of memory for its messages.
#[derive(Debug)]
pub struct Joined {
    /// The communicator of all ranks.
    pub world: Comm,
    /// Memory for its messages: the segment, or the heap pool of the caller if all ranks get copies.
    pub source: Arc<dyn SlabSource>,
}

/// Makes this process the rank that a launcher has started it as, this project's or that of an MPI. Waits
/// until all ranks have joined; `None` without a launcher. Messages take memory from a segment and then from
/// `private`, whose limit holds for both.
///
/// A process may join again when it has finished. Then all ranks must, and nothing is shared with the job
/// before.
///
/// # Errors
/// It cannot be that rank; a rank will not join; interrupted.
pub fn join(
    config: Config,
    private: &Arc<HeapPool>,
    wait_control: &mut dyn WaitControl,
) -> Result<Option<Joined>, JoinError> {
    join_through(None, config, private, wait_control)
}

/// [`join`] with a relay that all datagrams pass through, for tests and benchmarks. Other transports do not
/// use it.
///
/// # Errors
/// As [`join`]; the relay fails.
pub fn join_through(
    relay: Option<&dyn PortRelay>,
    config: Config,
    private: &Arc<HeapPool>,
    wait_control: &mut dyn WaitControl,
) -> Result<Option<Joined>, JoinError> {
    let Some(control) = variable(control::CONTROL)? else {
        // MPJDEV_CONTROL precedes the variables of another launcher: mpjrun may run inside its allocation.
        return match mpi::is_asked_for()? {
            true => join_mpi(config, private, wait_control).map(Some),
            false => Ok(None),
        };
    };
    let (rank, ranks) = match (variable(control::RANK)?, variable(control::SIZE)?) {
        (Some(rank), Some(ranks)) if rank < ranks => (rank, ranks),
        _ => return Err(JoinError::Launcher(LauncherFault::NoRank)),
    };
    let config = config.for_ranks(ranks as usize).bounded();
    let len = segment_len(private.limit());
    make_room(ranks, len, private);
    let create = || shm::create(rank, ranks as usize, len, &config, private.clone());
    let pool = private.reclaiming(create).map_err(system("shared memory"))?;
    let file = private.reclaiming(|| pool.share()).map_err(system("shared memory"))?;
    let socket = launcher::control_socket(rank, control)?;
    debug!(target: "mpjdev::rank", rank, ranks, "rank asks its launcher for the job");
    let mut admission =
        Admission::ask(socket.as_fd(), (rank, ranks), file.as_fd(), config.slice, wait_control)?;
    admission.collect_by(private);
    let joined = admission.receive(wait_control).and_then(|found| {
        let Admitted { network, job } = found;
        let (connects, shares_memory) = (network.is_some(), job.is_some());
        debug!(target: "mpjdev::rank", rank, ranks, connects, shares_memory, "launcher has described the job");
        match (network, job) {
            (Some(network), shared) => {
                let memory = Memory { shared, pool: &pool, private };
                let (world, source) = network::connect(rank, network, config, memory, relay)?;
                Ok(Joined { world, source })
            }
            (None, Some(job)) => {
                let world = shm_rank(rank, &config, &pool, job)?;
                Ok(Joined { world, source: pool.clone() })
            }
            (None, None) => Err(JoinError::Launcher(LauncherFault::NoJob)),
        }
    });
    if let Err(error) = &joined {
        warn!(target: "mpjdev::rank", rank, %error, "rank has not joined");
    }
    joined.map(Some).inspect_err(|error| match error {
        // Other ranks may wait for this rank already.
        JoinError::Launcher(_) | JoinError::Descriptors { .. } | JoinError::System { .. } => {
            shm::fail_joining(&pool, &error.to_string())
        }
        _ => pool.mark_finished(),
    })
}

fn join_mpi(
    config: Config,
    private: &Arc<HeapPool>,
    wait_control: &mut dyn WaitControl,
) -> Result<Joined, JoinError> {
    match Comm::join_mpi(config, private.clone(), wait_control) {
        Ok(world) => Ok(Joined { world, source: private.clone() }),
        Err(mpi::Unfit::Interrupted) => Err(JoinError::Interrupted),
        Err(unfit) => Err(JoinError::Mpi(Box::new(unfit))),
    }
}

/// Has unused descriptors closed and unused segments unmapped if the limits may not suffice. A descriptor
/// beyond the limit is lost when it is received. Long segments are mapped when ranks first communicate, under
/// locks, where nothing can be unmapped.
fn make_room(ranks: u32, len: usize, private: &HeapPool) {
    /// Descriptors that joining takes, besides two for each rank.
    const SPARE: u64 = 32;
    /// A process never has this much address space for all ranks, whatever is unmapped.
    const SPACE: usize = 1 << 46;
    let needed = 2 * u64::from(ranks) + SPARE;
    let has_descriptors = room::descriptors().is_none_or(|(open, limit)| open + needed <= limit);
    let segments = (ranks as usize).min(SPACE / len);
    if !has_descriptors || !has_room(segments, len) {
        private.ask_for_room();
    }
}

/// A number in a variable of the launcher; `None` when it is not set.
fn variable(name: &'static str) -> Result<Option<u32>, JoinError> {
    let Some(value) = std::env::var_os(name) else { return Ok(None) };
    let value = value.to_string_lossy().into_owned();
    match value.parse() {
        Ok(number) if number <= i32::MAX as u32 => Ok(Some(number)),
        _ => Err(JoinError::Variable { name, value }),
    }
}

/// Octets of a segment's slabs for a limit on message memory. Twice the limit leaves room for slabs of all
/// sizes in any order; the system provides only the memory that is used.
fn segment_len(limit: u64) -> usize {
    const LEAST: u64 = 64 << 20;
    const MOST: u64 = 64 << 30;
    limit.saturating_mul(2).clamp(LEAST, MOST) as usize
}
