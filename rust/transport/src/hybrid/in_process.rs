//! Ranks of one process in several sites, for tests.

use std::io;
use std::sync::Arc;

use super::Job;
use crate::config::Config;
use crate::pool::HeapPool;
use crate::shm::{self, SegmentPool, StatusPage};
use crate::tcp::in_process::{all_pairs, members};
use crate::tcp::{self, Terms};

/// The job of each rank before the first packet, and its memory. The last site may have fewer ranks than the
/// others.
///
/// # Errors
/// The system refuses.
///
/// # Panics
/// With no rank in a site.
pub fn jobs(
    ranks: usize,
    ranks_per_site: usize,
    config: &Config,
    terms: Terms,
    segment_len: usize,
    private: &Arc<HeapPool>,
) -> io::Result<Vec<(Job, Arc<SegmentPool>)>> {
    let members = members(ranks);
    let mut sockets = all_pairs(ranks)?.into_iter();
    let mut jobs = Vec::new();
    for base in (0..ranks).step_by(ranks_per_site) {
        let site = base..ranks.min(base + ranks_per_site);
        let pools = (0..site.len() as u32)
            .map(|rank| shm::create(rank, site.len(), segment_len, config, private.clone()))
            .collect::<io::Result<Vec<_>>>()?;
        let status_page = StatusPage::create(site.len())?;
        for (rank, mut sockets) in site.clone().zip(&mut sockets) {
            sockets[site.clone()].fill_with(|| None);
            let files = pools.iter().map(|pool| pool.share()).collect::<io::Result<_>>()?;
            let intra = shm::Job::open(status_page.files(), files)?;
            let site_of = (0..ranks).map(|rank| (rank / ranks_per_site) as u32).collect();
            let inter = tcp::Job { rank: rank as u32, members: members.clone(), site_of, terms, sockets };
            jobs.push((Job { intra, base: base as u32, inter }, pools[rank - base].clone()));
        }
    }
    Ok(jobs)
}
