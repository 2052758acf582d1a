//! Workloads of the measuring commands: cases, sizes, ranks and units of each.

use crate::protocol::Case;
use crate::report::Unit;

/// Workload of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Time of one way, half of a round trip.
    Pingpong,
    /// Octets per second.
    Bandwidth,
    /// Messages per second.
    Rate,
    /// Messages from every rank to every other.
    Alltoall,
    /// Message around a ring of all ranks.
    Ring,
    /// Two ranks in Java beside the baseline.
    Baseline,
    /// Figures of package mpi, beside direct calls of mpjdev and C.
    Mpj,
    /// Time of one way over the size.
    Series,
    /// Figures of all targets.
    Figures,
    /// Streams and messages through an impaired network.
    Goodput,
}

impl Workload {
    pub(super) fn cases(self) -> &'static [Case] {
        match self {
            Workload::Pingpong => &[Case::Arrays, Case::Direct, Case::Buffers],
            Workload::Bandwidth => &[Case::RateArrays],
            Workload::Rate => &[Case::RateArrays, Case::RateDirect, Case::RateBuffers, Case::RateRequests],
            Workload::Alltoall => &[Case::Alltoall],
            Workload::Ring => &[Case::Ring],
            Workload::Baseline => &[
                Case::Arrays,
                Case::Direct,
                Case::Buffers,
                Case::RateArrays,
                Case::RateDirect,
                Case::RateBuffers,
            ],
            Workload::Mpj | Workload::Series | Workload::Figures | Workload::Goodput => &[],
        }
    }

    pub(super) fn sizes(self) -> &'static [u64] {
        match self {
            Workload::Pingpong => {
                &[8, 64, 512, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20]
            }
            Workload::Bandwidth => &[1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20],
            Workload::Rate | Workload::Ring => &[8, 1 << 10],
            Workload::Baseline => &[8, 1 << 10, 64 << 10, 1 << 20],
            Workload::Alltoall => &[8, 1 << 10, 64 << 10],
            Workload::Mpj | Workload::Series | Workload::Figures | Workload::Goodput => &[],
        }
    }

    /// Whether it has two ranks only, as plain sockets require.
    pub(super) fn is_of_two(self) -> bool {
        matches!(
            self,
            Workload::Pingpong | Workload::Bandwidth | Workload::Rate | Workload::Baseline | Workload::Series
        )
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Workload::Pingpong | Workload::Series => "One way between two ranks, half of a round trip",
            Workload::Bandwidth | Workload::Rate => "One message of a window of 64",
            Workload::Alltoall => "A message from every rank to every other",
            Workload::Ring => "One hop around a ring of all ranks",
            Workload::Baseline => "Two ranks beside the baseline",
            Workload::Figures => "Figures",
            Workload::Mpj => "Package mpi",
            Workload::Goodput => "Goodput",
        }
    }

    pub(super) fn ranks(self) -> u32 {
        match self {
            Workload::Alltoall | Workload::Ring => 4,
            Workload::Pingpong
            | Workload::Bandwidth
            | Workload::Rate
            | Workload::Baseline
            | Workload::Mpj
            | Workload::Series
            | Workload::Figures
            | Workload::Goodput => 2,
        }
    }

    pub(super) fn unit(self) -> Unit {
        match self {
            Workload::Bandwidth => Unit::Bandwidth,
            Workload::Rate => Unit::Rate,
            Workload::Pingpong
            | Workload::Alltoall
            | Workload::Ring
            | Workload::Baseline
            | Workload::Mpj
            | Workload::Series
            | Workload::Figures
            | Workload::Goodput => Unit::Time,
        }
    }
}
