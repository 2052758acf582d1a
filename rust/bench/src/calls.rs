//! Collective calls of package `mpi`, as cases of a measurement.

/// A collective call. Its octets are those of a rank; of [`Call::Alltoall`], those of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// No data.
    Barrier,
    /// From rank 0.
    Bcast,
    /// Sum of doubles, with the result at each rank.
    Allreduce,
    /// The same by a function of the program, in Java.
    AllreduceUser,
    /// Java heap that the sum allocates. The second result is the number of octets.
    AllreduceGarbage,
    /// Sum of doubles at rank 0.
    Reduce,
    /// Sum of doubles, of which each rank gets its part.
    ReduceScatter,
    /// Sums of doubles of the ranks up to each.
    Scan,
    /// A block from each rank to each.
    Alltoall,
    /// A block from each rank to all.
    Allgather,
    /// A block from each rank to rank 0.
    Gather,
    /// A block from rank 0 to each rank.
    Scatter,
}

impl Call {
    /// All calls.
    pub const ALL: [Call; 12] = [
        Call::Barrier,
        Call::Bcast,
        Call::Allreduce,
        Call::AllreduceUser,
        Call::AllreduceGarbage,
        Call::Reduce,
        Call::ReduceScatter,
        Call::Scan,
        Call::Alltoall,
        Call::Allgather,
        Call::Gather,
        Call::Scatter,
    ];

    /// Word of the call in a command.
    pub fn word(self) -> &'static str {
        match self {
            Call::Barrier => "mpi-barrier",
            Call::Bcast => "mpi-bcast",
            Call::Allreduce => "mpi-allreduce",
            Call::AllreduceUser => "mpi-allreduce-user",
            Call::AllreduceGarbage => "mpi-allreduce-garbage",
            Call::Reduce => "mpi-reduce",
            Call::ReduceScatter => "mpi-reduce-scatter",
            Call::Scan => "mpi-scan",
            Call::Alltoall => "mpi-alltoall",
            Call::Allgather => "mpi-allgather",
            Call::Gather => "mpi-gather",
            Call::Scatter => "mpi-scatter",
        }
    }

    /// Name in reports.
    pub fn title(self) -> &'static str {
        match self {
            Call::Barrier => "Barrier",
            Call::Bcast => "Bcast",
            Call::Allreduce => "Allreduce",
            Call::AllreduceUser => "Allreduce by a user function",
            Call::AllreduceGarbage => "garbage of Allreduce",
            Call::Reduce => "Reduce",
            Call::ReduceScatter => "Reduce_scatter",
            Call::Scan => "Scan",
            Call::Alltoall => "Alltoall",
            Call::Allgather => "Allgather",
            Call::Gather => "Gather",
            Call::Scatter => "Scatter",
        }
    }

    /// Whether contestants have the call that are not in Java.
    pub fn is_of_c(self) -> bool {
        !matches!(self, Call::AllreduceUser | Call::AllreduceGarbage)
    }
}
