//! The calls of a program, by which the profile counts.

/// Defines the calls with their names.
macro_rules! calls {
    ($($call:ident = $name:literal,)*) => {
        /// A call of a program, by the name that it has in MPI.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Call {
            $(#[allow(missing_docs, reason = "the name says it")] $call,)*
        }

        impl Call {
            /// All calls, in the order of their numbers.
            pub const ALL: &[Call] = &[$(Call::$call,)*];

            /// The name in MPI.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Call::$call => $name,)*
                }
            }
        }
    };
}

calls! {
    Send = "Send",
    Isend = "Isend",
    Recv = "Recv",
    Irecv = "Irecv",
    Sendrecv = "Sendrecv",
    Probe = "Probe",
    Iprobe = "Iprobe",
    Wait = "Wait",
    Test = "Test",
    Waitany = "Waitany",
    Waitall = "Waitall",
    Waitsome = "Waitsome",
    Testany = "Testany",
    Testall = "Testall",
    Testsome = "Testsome",
    Barrier = "Barrier",
    Bcast = "Bcast",
    Gather = "Gather",
    Scatter = "Scatter",
    Allgather = "Allgather",
    Alltoall = "Alltoall",
    Reduce = "Reduce",
    Allreduce = "Allreduce",
    ReduceScatter = "Reduce_scatter",
    Scan = "Scan",
    Create = "Comm_create",
    Finalize = "Finalize",
}

impl Call {
    /// Whether all members of a communicator make the call. It has no single peer then.
    #[must_use]
    pub fn is_collective(self) -> bool {
        self as u8 >= Call::Barrier as u8
    }

    /// Whether the call takes some nanoseconds if it does not wait and its message is short.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn may_be_short(self) -> bool {
        use Call::{Iprobe, Irecv, Isend, Recv, Send, Test};
        matches!(self, Send | Isend | Recv | Irecv | Iprobe | Test)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_numbered_in_their_order() {
        for (number, call) in Call::ALL.iter().enumerate() {
            assert_eq!(*call as usize, number);
        }
    }

    #[test]
    fn collective_calls_are_those_of_all_members() {
        let collective: Vec<_> =
            Call::ALL.iter().filter(|call| call.is_collective()).map(|c| c.name()).collect();
        assert_eq!(collective[..3], ["Barrier", "Bcast", "Gather"]);
        assert!(!Call::Testsome.is_collective());
    }
}
