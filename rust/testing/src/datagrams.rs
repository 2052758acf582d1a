//! Jobs over UDP sockets, also with a simulated network between them.

use std::sync::Arc;

use mpjdev_bootstrap::job::{JoinError, udp_rank};
use mpjdev_buffer::SlabSource;
use mpjdev_engine::Comm;
use mpjdev_sim::{Impairment, Network};
use mpjdev_transport::config::Config;
use mpjdev_transport::udp::{self, SimulatedNetwork};

/// Ranks over UDP sockets of this machine.
///
/// # Errors
/// The system refuses; the terms contradict each other.
pub fn udp(
    jobs: Vec<udp::Job>,
    config: Config,
    source: &Arc<dyn SlabSource>,
) -> Result<Vec<Comm>, JoinError> {
    let config = config.for_ranks(jobs.len()).bounded();
    let rank = |job| udp_rank(job, config.clone(), source, None).map(|(world, _)| world);
    jobs.into_iter().map(rank).collect()
}

/// Puts a network with this impairment between each rank and each other.
pub fn impair(jobs: &mut [udp::Job], impairment: Impairment, seed: u64) {
    for job in jobs {
        let seed_of = |peer: usize| seed.wrapping_add(u64::from(job.rank) << 32 | peer as u64);
        let network = |peer| Some(Box::new(Impaired(Network::new(impairment, seed_of(peer)))) as Box<_>);
        job.networks = (0..job.members.len()).map(network).collect();
    }
}

/// The network of the simulations, with datagrams as packets.
#[derive(Debug)]
struct Impaired(Network<Vec<u8>>);

impl SimulatedNetwork for Impaired {
    fn send(&mut self, now: u64, octets: Vec<u8>) {
        self.0.send(now, octets.len(), octets);
    }

    fn poll_deliver(&mut self, now: u64) -> Option<Vec<u8>> {
        self.0.poll_deliver(now)
    }

    fn next_time(&self) -> Option<u64> {
        self.0.next_time_ns()
    }
}
