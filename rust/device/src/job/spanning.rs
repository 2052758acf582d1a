//! A rank of a world in which not all ranks share memory: its connections are made, and then it is a rank as any other.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use mpjdev_buffer::SlabSource;

use super::processes::{JoinError, Joined, system};
use super::remote::sites_rank;
use super::world::World;
use crate::comm::Comm;
use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::pool::HeapPool;
use crate::transport::remote::pump;
use crate::transport::shm::{self, SegmentPool, blame};
use crate::transport::sites;
use crate::transport::tcp::mesh::{Mesh, MeshError, Warning};
use crate::transport::tcp::{self, mesh};
use crate::transport::{Inbox, Wire};
use crate::waiting::Patience;

/// What the launcher has handed out of a world that spans more than shared memory.
#[derive(Debug)]
pub(super) struct Spanning {
    pub(super) world: World,
    /// Where this rank listens, as all others know.
    pub(super) listener: OwnedFd,
}

/// What a rank of such a world has in memory.
pub(super) struct Memory<'a> {
    /// What the ranks of its launcher share, where they do.
    pub(super) near: Option<shm::Job>,
    /// Its own part of that. The launcher sees there when it has finished.
    pub(super) pool: &'a Arc<SegmentPool>,
    /// Its own.
    pub(super) private: &'a Arc<HeapPool>,
}

/// Makes the connections of a rank, numbered among those of its launcher. Blocks until all are there.
pub(super) fn connect(
    rank: u32,
    spanning: Spanning,
    config: Config,
    memory: Memory<'_>,
    patience: &mut dyn Patience,
) -> Result<Joined, JoinError> {
    let Spanning { world, listener } = spanning;
    let rank = world.base + rank;
    let config = Config { tag_ub: world.tag_ub as i32, ..config }.for_ranks(world.ranks_here()).bounded();
    let Memory { near, pool, private } = memory;
    let sockets = sockets(rank, &world, listener, patience).inspect_err(|error| {
        let missing = if let JoinError::Mesh { error, .. } = error { error.host() } else { None };
        // The launcher is to know that the failure may have begun there.
        let culprit = missing.and_then(|host| world.members.iter().position(|member| member.host == host));
        culprit.into_iter().for_each(|culprit| blame(pool, culprit as u32));
    })?;
    let job = tcp::Job { rank, members: world.members.clone(), terms: world.terms, sockets };
    let clients = world.clients(rank);
    // Who is alone has nobody to share memory with, and may sleep on the connections.
    if let Some(near) = near.filter(|near| near.ranks() > 1) {
        let job = sites::Job { near, base: world.base, far: job };
        let world = sites_rank(job, clients, config, pool).map_err(system("the connections"))?;
        return Ok(Joined { world, source: pool.clone() });
    }
    // Memory that the others cannot see is as good as any.
    let source: Arc<dyn SlabSource> = private.clone();
    let (wire, inbox) = tcp::connect(job, &config, source.clone()).map_err(system("the connections"))?;
    wire.tell_finish(pool.clone());
    let ends: (Arc<dyn Wire>, Box<dyn Inbox>) = (wire.clone(), Box::new(inbox));
    let endpoint = Endpoint::new(rank, world.members.len() as u32, config, ends, source.clone());
    clients.into_iter().for_each(|clients| endpoint.set_clients(clients));
    let endpoint = Arc::new(endpoint);
    pump::start("tcp", &endpoint, &wire).map_err(system("a thread"))?;
    Ok(Joined { world: Comm::world(endpoint), source })
}

/// Connects this rank to all others that it does not share memory with; the sockets are by host.
fn sockets(
    rank: u32,
    world: &World,
    listener: OwnedFd,
    patience: &mut dyn Patience,
) -> Result<Vec<Option<OwnedFd>>, JoinError> {
    let number = world.members[rank as usize].host;
    let near = if world.shares_memory { world.own_hosts() } else { number..number + 1 };
    let mesh = Mesh {
        number,
        hosts: &world.mesh_hosts(),
        listener,
        bind: Some(world.address(number).ip()),
        key: Some(&world.key[..]).filter(|key| !key.is_empty()),
        job: &world.identity(),
        wanted: &|host| !near.contains(&host),
        deadline: Instant::now() + world.connect_time,
        silence_max: world.silence_max,
    };
    match mesh::connect(mesh, patience) {
        Ok(connected) => {
            // That a foreign host proves nothing is said once, by the launcher.
            let told = connected.warnings.iter().filter(|w| !matches!(w, Warning::ByAddress { .. }));
            told.for_each(|warning| eprintln!("mpjdev: rank {rank}: {warning}"));
            Ok(connected.sockets)
        }
        Err(MeshError::Interrupted) => Err(JoinError::Interrupted),
        Err(error) => Err(JoinError::Mesh { rank, error: Box::new(error) }),
    }
}
