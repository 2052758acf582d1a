//! The rank of a world in which not all ranks share memory: its connections and its transport.

use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use mpjdev_buffer::SlabSource;
use mpjdev_engine::Comm;
use mpjdev_proto::datagram::reliable::settings::Path;
use mpjdev_transport::StatusReporter;
use mpjdev_transport::config::Config;
use mpjdev_transport::hybrid;
use mpjdev_transport::pool::HeapPool;
use mpjdev_transport::shm::{self, SegmentPool};
use mpjdev_transport::tcp;
use mpjdev_transport::udp;
use mpjdev_transport::wait::Uninterruptible;

use super::error::JoinError;
use super::ranks::{site_rank, tcp_rank, udp_rank};
use super::world::{Carrier, Datagrams, World};
use crate::mesh;
use crate::mesh::{Mesh, Warning};
use crate::setup::{self, PortRelay, Setup};

/// The launcher's description of a world beyond shared memory.
#[derive(Debug)]
pub(super) struct NetworkWorld {
    pub(super) world: World,
    /// This rank's listening socket, whose address all others know.
    pub(super) listener: OwnedFd,
}

/// The memory of a rank of such a world.
pub(super) struct Memory<'a> {
    /// The shared memory of its launcher's ranks, if they share any.
    pub(super) shared: Option<shm::Job>,
    /// Its own segment there, in which the launcher sees its finish.
    pub(super) pool: &'a Arc<SegmentPool>,
    /// Its private memory.
    pub(super) private: &'a Arc<HeapPool>,
}

/// The communicator of all ranks, and the source of memory for messages.
type Connected = (Comm, Arc<dyn SlabSource>);

/// Makes the connections of a rank, numbered among those of its launcher. Datagrams pass through the relay,
/// if there is one. Blocks until all connections are made, within the time that the world sets. Nothing
/// interrupts it, since the other ranks wait for this one.
pub(super) fn connect(
    rank: u32,
    network: NetworkWorld,
    config: Config,
    memory: Memory<'_>,
    relay: Option<&dyn PortRelay>,
) -> Result<Connected, JoinError> {
    let NetworkWorld { world, listener } = network;
    let rank = world.base + rank;
    let config = Config { tag_ub: world.tag_ub as i32, ..config }.for_ranks(world.ranks_here()).bounded();
    if let Carrier::Udp(datagrams) = world.carrier {
        let datagrams = DatagramPath { datagrams, relay };
        return connect_by_datagrams(rank, &world, listener, datagrams, config, &memory);
    }
    let Memory { shared, pool, private } = memory;
    let sockets = sockets(rank, &world, listener, pool)?;
    let (members, site_of) = (world.members.clone(), world.sites());
    let job = tcp::Job { rank, members, site_of, terms: world.terms, sockets };
    let clients = world.clients(rank);
    // A rank that is alone in its site needs no shared memory, and parks on the connections.
    if let Some(shared) = shared.filter(|shared| shared.ranks() > 1) {
        let job = hybrid::Job { intra: shared, base: world.base, inter: job };
        return Ok((site_rank(job, clients, config, pool)?, pool.clone()));
    }
    // No other rank reads this memory, so it need not be shared.
    let source: Arc<dyn SlabSource> = private.clone();
    let world = tcp_rank(job, clients, config, &source, Some(pool.clone()))?;
    Ok((world, source))
}

/// The path to ranks of other machines, over a link without other traffic.
fn private_path(rate_kbit: NonZeroU32) -> Path {
    Path { rate: Some(u64::from(rate_kbit.get()) * 1000 / 8), ..Path::PRIVATE }
}

/// The parameters of datagrams, and the relay that they pass through.
struct DatagramPath<'a> {
    datagrams: Datagrams,
    relay: Option<&'a dyn PortRelay>,
}

/// Connects a rank whose messages go by datagrams. The connections serve for setup and for liveness.
fn connect_by_datagrams(
    rank: u32,
    world: &World,
    listener: OwnedFd,
    path: DatagramPath<'_>,
    config: Config,
    memory: &Memory<'_>,
) -> Result<Connected, JoinError> {
    if let Some(foreign) = world.members.iter().position(|member| !member.is_ours) {
        return Err(JoinError::Foreign { foreign: foreign as u32 });
    }
    let address = world.address(world.members[rank as usize].host);
    // All ranks are of this project, so each is a host of its own with the same number.
    let sockets = sockets(rank, world, listener, memory.pool)?;
    // A limit of its own: the connections may have taken all of theirs.
    let deadline = Instant::now() + world.connect_time;
    let dead_after = u64::try_from(world.peer_timeout.as_nanos()).unwrap_or(u64::MAX);
    let DatagramPath { datagrams, relay } = path;
    let path = datagrams.rate_kbit.map_or(Path::UNKNOWN, private_path);
    let terms = terms(&datagrams, dead_after);
    let ports = &world.ports;
    let setup = Setup { rank, sockets: &sockets, address, ports, terms, path, relay, deadline };
    let job = setup::run(&setup, &mut Uninterruptible).map_err(|error| {
        error.peer().into_iter().for_each(|peer| memory.pool.report_failed_peer(peer));
        JoinError::Setup { rank, error: Box::new(error) }
    })?;
    let source: Arc<dyn SlabSource> = memory.private.clone();
    let job = udp::Job { liveness: sockets, site_of: world.sites(), ..job };
    let (world, _) = udp_rank(job, config, &source, Some(memory.pool.clone()))?;
    Ok((world, source))
}

/// The terms that this rank proposes to the others.
fn terms(datagrams: &Datagrams, dead_after: u64) -> udp::Terms {
    let default = udp::Terms { dead_after, ..udp::Terms::default() };
    let datagram_len_max = datagrams.len_max.map_or(default.datagram_len_max, |len| len.get() as usize);
    udp::Terms { datagram_len_max, is_checked: datagrams.are_checked, ..default }
}

/// Connects this rank to all others that it does not share memory with; the sockets are indexed by host.
fn sockets(
    rank: u32,
    world: &World,
    listener: OwnedFd,
    pool: &SegmentPool,
) -> Result<Vec<Option<OwnedFd>>, JoinError> {
    let number = world.members[rank as usize].host;
    let unconnected = if world.shares_memory { world.own_hosts() } else { number..number + 1 };
    let mesh = Mesh {
        number,
        hosts: &world.mesh_hosts(),
        listener,
        bind: Some(world.address(number).ip()),
        key: Some(&world.key[..]).filter(|key| !key.is_empty()),
        job: &world.identity(),
        wanted: &|host| !unconnected.contains(&host),
        deadline: Instant::now() + world.connect_time,
        peer_timeout: world.peer_timeout,
    };
    match mesh::connect(mesh, &mut Uninterruptible) {
        Ok(connected) => {
            // The launcher prints one warning for all foreign hosts.
            let warnings = connected.warnings.iter().filter(|w| !matches!(w, Warning::ByAddress { .. }));
            warnings.for_each(|warning| eprintln!("mpjdev: rank {rank}: {warning}"));
            Ok(connected.sockets)
        }
        Err(error) => {
            // That peer may be the root cause of the failure.
            let at = |host| world.members.iter().position(|member| member.host == host);
            error.host().and_then(at).into_iter().for_each(|peer| pool.report_failed_peer(peer as u32));
            Err(JoinError::Mesh { rank, error: Box::new(error) })
        }
    }
}
