//! Ranks of which some share memory with this one, and the others are behind TCP connections: a site of a job that has several.
//!
//! There are two transports under one roof. A rank belongs to one of them by its number, and so does all that is about it: its
//! packets, its credit, its life. Near ranks are numbered from 0 among themselves; everybody above here counts in the world.
//! Messages of a rank to itself go the near way.
//!
//! A thread that waits polls both ways, and sleeps on the bell that the near ranks ring; the thread that the rank
//! has beside it for the connections rings that too. Matching is above here, so a receive from any source is nothing special.

pub mod in_process;
mod inbox;
#[cfg(test)]
mod tests;
mod turns;
mod wire;

use std::io;
use std::sync::Arc;

use mpjdev_buffer::SlabSource;

use super::shm::{self, SegmentPool};
use super::tcp::{self, TcpWire};
use crate::config::Config;
pub use inbox::SitesInbox;
pub use wire::SitesWire;

/// What a rank has before the first packet.
#[derive(Debug)]
pub struct Job {
    /// What the ranks of the site share.
    pub near: shm::Job,
    /// World rank of the first of them; the others follow.
    pub base: u32,
    /// The world, with connections to all ranks of other sites.
    pub far: tcp::Job,
}

/// The wire and the inbox of a rank, and the wire of its connections. Messages take memory from `pool`, and so does what arrives.
///
/// # Errors
/// The terms contradict each other; the system refuses.
pub fn connect(
    job: Job,
    config: &Config,
    pool: Arc<SegmentPool>,
) -> io::Result<(Arc<SitesWire>, SitesInbox, Arc<TcpWire>)> {
    let Job { near, base, far } = job;
    let (rank, count) = (far.rank, near.ranks() as u32);
    let source: Arc<dyn SlabSource> = pool.clone();
    let (far, far_inbox) = tcp::connect(far, config, source)?;
    let near = Arc::new(near.numbered_from(base));
    far.tell_failures(pool.clone());
    let (near, near_inbox) = shm::connect(rank - base, config, pool, near);
    far.sleep_on(near.clone())?;
    let wire = Arc::new(SitesWire::new(rank, near, far.clone(), (base, count)));
    Ok((wire.clone(), SitesInbox::new(wire, near_inbox, far_inbox), far))
}
