//! Jobs: ranks that are threads of this process, and the rank that this process is.

#[cfg(not(loom))]
mod admission;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod launcher;
#[cfg(not(loom))]
mod network;
#[cfg(not(loom))]
mod processes;
#[cfg(not(loom))]
mod ranks;
#[cfg(not(loom))]
pub mod world;

use std::sync::Arc;

use mpjdev_buffer::SlabSource;
use mpjdev_engine::Comm;
use mpjdev_engine::PacketEngine;
use mpjdev_transport::config::Config;
use mpjdev_transport::local;

#[cfg(not(loom))]
pub use error::{JoinError, LauncherFault};
#[cfg(not(loom))]
pub use processes::{Joined, join, join_through};
#[cfg(not(loom))]
pub use ranks::{shm_rank, site_rank, tcp_rank, udp_rank};

/// The world communicators of a job of `ranks` ranks in this process, in the order of their ranks.
///
/// # Panics
/// With no rank, or more than 2³⁰.
pub fn local(ranks: usize, config: Config, source: &Arc<dyn SlabSource>) -> Vec<Comm> {
    assert!(ranks > 0, "a job has at least one rank");
    let config = config.for_ranks(ranks).bounded();
    let ends = local::connect(ranks, &config);
    let endpoints: Vec<Arc<PacketEngine>> = ends
        .into_iter()
        .enumerate()
        .map(|(rank, (transport, packet_source))| {
            let ends: (Arc<dyn mpjdev_transport::Transport>, Box<dyn mpjdev_transport::PacketSource>) =
                (Arc::new(transport), Box::new(packet_source));
            Arc::new(PacketEngine::new(rank as u32, ranks as u32, config.clone(), ends, source.clone()))
        })
        .collect();
    for endpoint in &endpoints {
        let others = endpoints.iter().filter(|e| !Arc::ptr_eq(e, endpoint));
        endpoint.set_process_ranks(others.map(Arc::downgrade).collect());
    }
    endpoints.into_iter().map(Comm::world).collect()
}
