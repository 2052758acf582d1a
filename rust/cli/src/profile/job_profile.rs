//! The profile of a job: those of its ranks, and sums over them. Pure.

use std::collections::BTreeMap;

use mpjdev_profile::RankProfile;
use serde::Serialize;

use super::folder::FolderError;

/// Long calls that are shown.
const LONGEST: usize = 10;

/// The profile of a job.
#[derive(Debug, Default, Serialize)]
pub struct JobProfile {
    /// Number of ranks of the job.
    pub size: u32,
    /// Time of the rank that counted longest.
    pub elapsed_ns: u64,
    /// Ranks without a profile.
    pub missing: Vec<u32>,
    /// Sums over the ranks, most time first.
    pub calls: Vec<CallSum>,
    /// Sent messages of all ranks by size, as in a rank's profile.
    pub sizes: Vec<u64>,
    /// The longest calls of all ranks, longest first.
    pub longest: Vec<LongestCall>,
    /// The profiles of the ranks, in their order.
    pub ranks: Vec<RankProfile>,
}

/// The sum of a call over ranks and peers.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct CallSum {
    /// Name in MPI.
    pub call: String,
    /// Number of calls.
    pub count: u64,
    /// Time in them.
    pub ns: u64,
    /// Octets that they sent.
    pub sent: u64,
    /// Octets that they received.
    pub received: u64,
}

/// One of the longest calls.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct LongestCall {
    /// The rank that called.
    pub rank: u32,
    /// Name in MPI.
    pub call: String,
    /// Its peer.
    pub peer: Option<u32>,
    /// Its start, since the end of the rank's init.
    pub at_ns: u64,
    /// Its time.
    pub ns: u64,
    /// Octets that it sent and received.
    pub octets: u64,
}

impl JobProfile {
    /// Adds a rank. One that is there already is replaced.
    ///
    /// # Errors
    /// It is of another job.
    pub fn add(&mut self, profile: RankProfile) -> Result<(), FolderError> {
        let RankProfile { rank, ranks, .. } = profile;
        if !self.ranks.is_empty() && ranks != self.size {
            return Err(FolderError::Mixed { rank, ranks, others: self.size });
        }
        self.size = ranks;
        self.ranks.retain(|other| other.rank != rank);
        self.ranks.push(profile);
        Ok(())
    }

    /// Makes the sums, when all ranks are there.
    pub fn finish(&mut self) {
        self.ranks.sort_by_key(|profile| profile.rank);
        let known: Vec<u32> = self.ranks.iter().map(|profile| profile.rank).collect();
        self.missing = (0..self.size).filter(|rank| known.binary_search(rank).is_err()).collect();
        self.elapsed_ns = self.ranks.iter().map(|profile| profile.elapsed_ns).max().unwrap_or(0);
        self.calls = sums(&self.ranks);
        let classes = self.ranks.iter().map(|profile| profile.sizes.len()).max().unwrap_or(0);
        self.sizes = vec![0; classes];
        for profile in &self.ranks {
            self.sizes
                .iter_mut()
                .zip(&profile.sizes)
                .for_each(|(sum, more)| *sum = sum.saturating_add(*more));
        }
        let calls = self.ranks.iter().flat_map(|profile| {
            profile.longest.iter().map(|call| LongestCall {
                rank: profile.rank,
                call: call.call.clone(),
                peer: call.peer,
                at_ns: call.at_ns,
                ns: call.ns,
                octets: call.octets,
            })
        });
        self.longest = calls.collect();
        self.longest.sort_by_key(|call| std::cmp::Reverse(call.ns));
        self.longest.truncate(LONGEST);
    }
}

fn sums(ranks: &[RankProfile]) -> Vec<CallSum> {
    let mut sums: BTreeMap<&str, CallSum> = BTreeMap::new();
    for count in ranks.iter().flat_map(|profile| &profile.calls) {
        let sum = sums.entry(&count.call).or_default();
        for (sum, more) in [
            (&mut sum.count, count.count),
            (&mut sum.ns, count.ns),
            (&mut sum.sent, count.sent),
            (&mut sum.received, count.received),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
    let mut sums: Vec<CallSum> =
        sums.into_iter().map(|(call, sum)| CallSum { call: call.to_owned(), ..sum }).collect();
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.ns));
    sums
}

/// Octets sent by a rank, also within collective calls.
#[must_use]
pub fn sent(profile: &RankProfile) -> u64 {
    profile.peers.iter().fold(0, |sum, peer| sum.saturating_add(peer.sent))
}

/// Number of calls of a rank.
#[must_use]
pub fn calls(profile: &RankProfile) -> u64 {
    profile.calls.iter().fold(0, |sum, count| sum.saturating_add(count.count))
}

/// Octets from ranks to ranks. A side of more than `most` ranks is divided into groups of ranks.
#[derive(Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Ranks of a group.
    pub group: usize,
    /// Number of groups.
    pub side: usize,
    /// Octets, one row for each sending group.
    pub octets: Vec<u64>,
}

impl Matrix {
    /// The matrix of a job.
    #[must_use]
    pub fn of(job: &JobProfile, most: usize) -> Matrix {
        let size = job.size as usize;
        let group = size.div_ceil(most).max(1);
        let side = size.div_ceil(group);
        let mut octets = vec![0u64; side * side];
        for profile in &job.ranks {
            for peer in &profile.peers {
                let (row, column) = (profile.rank as usize / group, peer.peer as usize / group);
                let sum = &mut octets[row * side + column];
                *sum = sum.saturating_add(peer.sent);
            }
        }
        Matrix { group, side, octets }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use mpjdev_profile::rank_profile::{CallCount, LongCall, PeerCount};

    use super::*;

    /// A rank that has sent `octets` to the next one, in calls of `ns` in all.
    pub(in super::super) fn rank(rank: u32, ranks: u32, octets: u64, ns: u64) -> RankProfile {
        let peer = (rank + 1) % ranks;
        let count =
            CallCount { call: "Send".to_owned(), peer: Some(peer), count: 2, ns, sent: octets, received: 0 };
        RankProfile {
            version: 1,
            rank,
            ranks,
            host: "one".to_owned(),
            elapsed_ns: 1_000_000_000,
            threads: 1,
            thread_ns: 1_000_000_000,
            calls_ns: ns,
            peers: vec![PeerCount { peer, messages_sent: 2, sent: octets, ..PeerCount::default() }],
            sizes: vec![0, 1, u64::from(rank)],
            longest: vec![LongCall { call: "Send".to_owned(), peer: Some(peer), at_ns: 5, ns, octets }],
            calls: vec![count],
            ..RankProfile::default()
        }
    }

    /// A job of such ranks.
    pub(in super::super) fn job(ranks: u32) -> JobProfile {
        let mut job = JobProfile::default();
        for number in 0..ranks {
            job.add(rank(number, ranks, u64::from(number) << 10, u64::from(number) * 1_000_000))
                .expect("a rank");
        }
        job.finish();
        job
    }

    #[test]
    fn sums_are_over_all_ranks() {
        let job = job(3);
        let sum = CallSum { call: "Send".to_owned(), count: 6, ns: 3_000_000, sent: 3 << 10, received: 0 };
        assert_eq!(job.calls, [sum]);
        assert_eq!((job.sizes.as_slice(), job.missing.len()), (&[0, 3, 3][..], 0));
        assert_eq!(job.longest.iter().map(|call| call.rank).collect::<Vec<_>>(), [2, 1, 0]);
    }

    #[test]
    fn ranks_without_a_profile_are_named_and_other_jobs_refused() {
        let mut job = JobProfile::default();
        job.add(rank(2, 4, 0, 0)).expect("a rank");
        job.add(rank(0, 4, 0, 0)).expect("a rank");
        assert!(job.add(rank(1, 3, 0, 0)).is_err());
        job.finish();
        assert_eq!(job.missing, [1, 3]);
    }

    #[test]
    fn matrix_of_many_ranks_has_groups() {
        let job = job(5);
        let full = Matrix::of(&job, 64);
        assert_eq!((full.group, full.side, full.octets[5 + 2], full.octets[4 * 5]), (1, 5, 1 << 10, 4 << 10));
        let grouped = Matrix::of(&job, 2);
        assert_eq!((grouped.group, grouped.side), (3, 2));
        assert_eq!(grouped.octets, [1 << 10, 2 << 10, 4 << 10, 3 << 10]);
    }
}
