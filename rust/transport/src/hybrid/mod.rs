//! Transport of a site in a job of several sites: shared memory between the ranks of the site, TCP
//! connections to all others.
//!
//! It combines two transports. The number of a rank decides which one it belongs to, and with it its packets,
//! its credit and its heartbeat. The ranks of the site, the intra-node ones, are numbered from 0 among
//! themselves. All code above counts in the world. Messages of a rank to itself take the intra-node path.
//!
//! A waiting thread polls both transports, and sleeps on the futex that intra-node ranks wake. The progress
//! thread for the connections wakes that futex too. Matching is done in the layer above, so a receive from
//! any source needs no code here.

pub mod in_process;
mod net_poll;
mod packet_source;
#[cfg(test)]
mod tests;
mod transport;

use std::io;
use std::sync::Arc;

use mpjdev_buffer::SlabSource;

use super::shm::{self, SegmentPool};
use super::tcp::{self, TcpTransport};
use crate::StatusReporter;
use crate::config::Config;
pub use packet_source::HybridSource;
pub use transport::HybridTransport;

/// Resources of a rank before the first packet.
#[derive(Debug)]
pub struct Job {
    /// The files that the ranks of the site share.
    pub intra: shm::Job,
    /// World rank of the first rank of the site; the others follow.
    pub base: u32,
    /// The world, with connections to all ranks of other sites.
    pub inter: tcp::Job,
}

/// The transport and the packet source of a rank, and the transport of its connections. Messages and arriving
/// packets take memory from `pool`.
///
/// # Errors
/// The terms contradict each other; the system refuses.
pub fn connect(
    job: Job,
    config: &Config,
    pool: Arc<SegmentPool>,
) -> io::Result<(Arc<HybridTransport>, HybridSource, Arc<TcpTransport>)> {
    let Job { intra, base, inter } = job;
    let (rank, count) = (inter.rank, intra.ranks() as u32);
    let source: Arc<dyn SlabSource> = pool.clone();
    let (inter, inter_source) = tcp::connect(inter, config, source)?;
    let intra = Arc::new(intra.numbered_from(base));
    inter.report_to(Arc::new(FailureReporter(pool.clone())));
    let (intra, intra_source) = shm::connect(rank - base, config, pool, intra);
    inter.park_on(intra.clone())?;
    let transport = Arc::new(HybridTransport::new(rank, intra, inter.clone(), (base, count)));
    Ok((transport.clone(), HybridSource::new(transport, intra_source, inter_source), inter))
}

/// Reporter of failed peers alone. The intra-node transport finishes last and reports the finish of the
/// rank.
#[derive(Debug)]
struct FailureReporter(Arc<SegmentPool>);

impl StatusReporter for FailureReporter {
    fn report_failed_peer(&self, rank: u32) {
        self.0.report_failed_peer(rank);
    }

    fn mark_finished(&self) {}
}
