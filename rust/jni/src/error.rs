//! Failures of native methods, and the Java exceptions that they become.

use mpjdev_bootstrap::job::JoinError;
use mpjdev_buffer::{BufferError, SlabError};
use mpjdev_datatype::DatatypeError;
use mpjdev_engine::handle_table::HandleError;
use mpjdev_engine::{DeviceError, Refusal};
use mpjdev_group::{GroupError, TopologyError};
use mpjdev_reduction::Unsupported;
use mpjdev_schedule::ChoiceError;
use thiserror::Error;

/// A failed native method.
///
/// Boxed, so that results fit registers (decision 0004).
#[derive(Debug, Error)]
#[error(transparent)]
pub(crate) struct Failure(Box<Fault>);

/// The kinds of failure.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    #[error(transparent)]
    Buffer(BufferError),
    #[error(transparent)]
    Device(DeviceError),
    #[error(transparent)]
    Join(JoinError),
    #[error(transparent)]
    Datatype(DatatypeError),
    #[error(transparent)]
    Group(GroupError),
    #[error(transparent)]
    Topology(TopologyError),
    #[error(transparent)]
    Operation(Unsupported),
    #[error(transparent)]
    Choice(ChoiceError),
    #[error("the buffer is in use: a receive into it is pending")]
    InUse,
    #[error("the {what} is closed")]
    Closed { what: &'static str },
    #[error("the {what} is used by another thread right now: guard it, or use one per thread")]
    Shared { what: &'static str },
    #[error("no further {what}: four million are open")]
    TableFull { what: &'static str },
    #[error("the {what} cannot do this: {why}")]
    WrongKind { what: &'static str, why: &'static str },
    #[error("the {what} cannot be used: {why}")]
    Unusable { what: &'static str, why: &'static str },
    #[error("{name} is null")]
    Null { name: &'static str },
    #[error("the system has no memory for {asked} octets")]
    Memory { asked: u64 },
    /// A Java exception is pending already and takes precedence. If the JVM has failed without one, it had no
    /// memory.
    #[error("the JVM has no memory for this copy or view")]
    Pending,
}

/// An empty vector with room for `len` elements. A length that a caller gives must not end the process.
///
/// # Errors
/// The system has no memory for them.
pub(crate) fn reserved<T>(len: usize) -> Result<Vec<T>, Failure> {
    let mut elements = Vec::new();
    let asked = (len as u64).saturating_mul(size_of::<T>() as u64);
    elements.try_reserve_exact(len).map_err(|_| Fault::Memory { asked })?;
    Ok(elements)
}

/// A vector of `len` default elements.
///
/// # Errors
/// As for [`reserved`].
pub(crate) fn zeroed<T: Default + Clone>(len: usize) -> Result<Vec<T>, Failure> {
    let mut elements = reserved(len)?;
    elements.resize(len, T::default());
    Ok(elements)
}

impl Failure {
    /// The failure of a refused handle; `what` names its kind.
    pub(crate) fn handle(what: &'static str) -> impl Fn(HandleError) -> Failure {
        move |refused| {
            Failure::from(match refused {
                HandleError::Stale => Fault::Closed { what },
                HandleError::Busy => Fault::Shared { what },
                HandleError::Full => Fault::TableFull { what },
            })
        }
    }
}

impl Failure {
    /// The error of the engine, if it is one.
    pub(crate) fn device_error(&self) -> Option<DeviceError> {
        match &*self.0 {
            Fault::Device(error) => Some(error.clone()),
            _ => None,
        }
    }

    /// Whether the reason may be an exception of an upcall: a wait has ended because the
    /// [environment](crate::boundary::Env::may_wait) requested it, or a reduction has failed.
    pub(crate) fn is_of_upcall(&self) -> bool {
        matches!(
            *self.0,
            Fault::Device(DeviceError::Interrupted | DeviceError::OperationFailed { .. })
                | Fault::Join(JoinError::Interrupted)
        )
    }
}

impl From<Fault> for Failure {
    #[cold]
    fn from(fault: Fault) -> Self {
        Failure(Box::new(fault))
    }
}

impl From<BufferError> for Failure {
    #[cold]
    fn from(error: BufferError) -> Self {
        Fault::Buffer(error).into()
    }
}

impl From<DeviceError> for Failure {
    #[cold]
    fn from(error: DeviceError) -> Self {
        Fault::Device(error).into()
    }
}

impl From<JoinError> for Failure {
    #[cold]
    fn from(error: JoinError) -> Self {
        Fault::Join(error).into()
    }
}

impl From<DatatypeError> for Failure {
    #[cold]
    fn from(error: DatatypeError) -> Self {
        Fault::Datatype(error).into()
    }
}

impl From<GroupError> for Failure {
    #[cold]
    fn from(error: GroupError) -> Self {
        Fault::Group(error).into()
    }
}

impl From<TopologyError> for Failure {
    #[cold]
    fn from(error: TopologyError) -> Self {
        Fault::Topology(error).into()
    }
}

impl From<SlabError> for Failure {
    #[cold]
    fn from(error: SlabError) -> Self {
        BufferError::Slab(error).into()
    }
}

/// The Java class of a failure: an exception of the platform, or a code from which the Java interface makes
/// its own exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JavaClass {
    ArrayIndex,
    IllegalArgument,
    IllegalState,
    NullPointer,
    OutOfMemory,
    UnsupportedOperation,
    /// `mpjdev.core.NativeFailure` with this code, and the rank that it concerns or -1.
    Coded(i32, i32),
}

/// Codes of `mpjdev.core.NativeFailure`; a JUnit test compares both sides.
pub(crate) mod code {
    pub(crate) const OVERFLOW: i32 = 1;
    pub(crate) const END_OF_SECTIONS: i32 = 2;
    pub(crate) const TYPE_MISMATCH: i32 = 3;
    pub(crate) const SIZE_MISMATCH: i32 = 4;
    pub(crate) const DAMAGED: i32 = 5;
    pub(crate) const TRUNCATED: i32 = 6;
    pub(crate) const PEER_FAILED: i32 = 7;
    pub(crate) const TIMED_OUT: i32 = 8;
    pub(crate) const INTERRUPTED: i32 = 9;
    pub(crate) const CANCELLED: i32 = 10;
    pub(crate) const NOT_INITIALIZED: i32 = 11;
    pub(crate) const BAD_ARGUMENT: i32 = 12;
    pub(crate) const UNDELIVERED: i32 = 13;
    pub(crate) const ABANDONED: i32 = 14;
    pub(crate) const BAD_GROUP: i32 = 15;
    pub(crate) const OPERATION_FAILED: i32 = 16;

    /// Names as in Java, in the order of the codes from 1.
    pub(crate) const NAMES: [&str; 16] = [
        "OVERFLOW",
        "END_OF_SECTIONS",
        "TYPE_MISMATCH",
        "SIZE_MISMATCH",
        "DAMAGED",
        "TRUNCATED",
        "PEER_FAILED",
        "TIMED_OUT",
        "INTERRUPTED",
        "CANCELLED",
        "NOT_INITIALIZED",
        "BAD_ARGUMENT",
        "UNDELIVERED",
        "ABANDONED",
        "BAD_GROUP",
        "OPERATION_FAILED",
    ];
}

impl Failure {
    /// The Java exception for this failure. No wildcard: a new variant must be placed.
    pub(crate) fn java_class(&self) -> JavaClass {
        match &*self.0 {
            Fault::Buffer(error) => buffer_class(error),
            Fault::Device(error) => device_class(error),
            Fault::Join(error) => join_class(error),
            Fault::Datatype(error) => datatype_class(error),
            Fault::Group(_) | Fault::Topology(_) => JavaClass::IllegalArgument,
            Fault::Closed { .. } | Fault::Shared { .. } | Fault::WrongKind { .. } | Fault::InUse => {
                JavaClass::IllegalState
            }
            Fault::Unusable { .. } | Fault::Operation(_) | Fault::Choice(_) => JavaClass::IllegalArgument,
            Fault::TableFull { .. } | Fault::Memory { .. } | Fault::Pending => JavaClass::OutOfMemory,
            Fault::Null { .. } => JavaClass::NullPointer,
        }
    }
}

fn join_class(error: &JoinError) -> JavaClass {
    match error {
        JoinError::Peer { rank, .. } => JavaClass::Coded(code::PEER_FAILED, *rank as i32),
        JoinError::Interrupted => JavaClass::Coded(code::INTERRUPTED, -1),
        JoinError::Variable { .. }
        | JoinError::Transport(_)
        | JoinError::Refused { .. }
        | JoinError::Launcher(_)
        | JoinError::Descriptors { .. }
        | JoinError::Mesh { .. }
        | JoinError::Mpi(_)
        | JoinError::Setup { .. }
        | JoinError::Foreign { .. }
        | JoinError::Descriptor { .. }
        | JoinError::System { .. } => JavaClass::IllegalState,
    }
}

fn datatype_class(error: &DatatypeError) -> JavaClass {
    match error {
        DatatypeError::Range { .. } => JavaClass::ArrayIndex,
        DatatypeError::Negative { .. }
        | DatatypeError::Lengths { .. }
        | DatatypeError::BaseMismatch { .. }
        | DatatypeError::Overflow { .. }
        | DatatypeError::TooComplex { .. }
        | DatatypeError::TooMany { .. } => JavaClass::IllegalArgument,
    }
}

fn buffer_class(error: &BufferError) -> JavaClass {
    let coded = |code| JavaClass::Coded(code, -1);
    match error {
        BufferError::Overflow { .. } | BufferError::SecondaryOverflow { .. } => coded(code::OVERFLOW),
        BufferError::EndOfSections { .. } => coded(code::END_OF_SECTIONS),
        BufferError::TypeMismatch { .. } | BufferError::NotSole { .. } => coded(code::TYPE_MISMATCH),
        BufferError::UnitSection { element, wanted, .. } if element == wanted => coded(code::TRUNCATED),
        BufferError::UnitSection { .. } => coded(code::TYPE_MISMATCH),
        BufferError::SizeMismatch { .. } => coded(code::SIZE_MISMATCH),
        BufferError::Damaged { .. } => coded(code::DAMAGED),
        BufferError::TooLong { .. } => coded(code::TRUNCATED),
        BufferError::ArrayBounds { .. } | BufferError::Index { .. } | BufferError::Patch { .. } => {
            JavaClass::ArrayIndex
        }
        BufferError::Capacity { .. } | BufferError::Negative { .. } | BufferError::Volume { .. } => {
            JavaClass::IllegalArgument
        }
        BufferError::ForeignStream => JavaClass::IllegalState,
        BufferError::Slab(_) => JavaClass::OutOfMemory,
    }
}

fn device_class(error: &DeviceError) -> JavaClass {
    let coded = |code| JavaClass::Coded(code, -1);
    let from = |code, rank: &u32| JavaClass::Coded(code, *rank as i32);
    match error {
        DeviceError::Truncated { source_rank, .. } => from(code::TRUNCATED, source_rank),
        DeviceError::Lengths { source_rank, .. } | DeviceError::Damaged { source_rank, .. } => {
            from(code::DAMAGED, source_rank)
        }
        DeviceError::PeerFailed { rank, .. } | DeviceError::PeerFinished { rank } => {
            from(code::PEER_FAILED, rank)
        }
        DeviceError::NoSourceLeft | DeviceError::Library(_) => coded(code::PEER_FAILED),
        DeviceError::NotAtBarrier { rank, .. } => from(code::PEER_FAILED, rank),
        DeviceError::TimedOut { .. } => coded(code::TIMED_OUT),
        DeviceError::Interrupted => coded(code::INTERRUPTED),
        DeviceError::Cancelled => coded(code::CANCELLED),
        DeviceError::Finished { .. } => coded(code::NOT_INITIALIZED),
        DeviceError::BadRank { rank, .. } => JavaClass::Coded(code::BAD_ARGUMENT, *rank),
        DeviceError::BadTag { .. } | DeviceError::MixedRanks => coded(code::BAD_ARGUMENT),
        DeviceError::Refused(refusal) => refusal_class(refusal),
        DeviceError::NoSuchRequest | DeviceError::Freed => JavaClass::IllegalState,
        DeviceError::Memory(_) | DeviceError::NoFreePair(_) | DeviceError::Unmatched { .. } => {
            JavaClass::OutOfMemory
        }
        DeviceError::Protocol(_) | DeviceError::Masters(_) => coded(code::DAMAGED),
        DeviceError::OperationFailed { rank } | DeviceError::OtherOperation { rank } => {
            from(code::OPERATION_FAILED, rank)
        }
        DeviceError::Foreign { .. } => JavaClass::UnsupportedOperation,
        DeviceError::Abandoned { rank, .. } => from(code::ABANDONED, rank),
        DeviceError::Undelivered { rank, .. } | DeviceError::Unacked { rank, .. } => {
            from(code::UNDELIVERED, rank)
        }
    }
}

fn refusal_class(refusal: &Refusal) -> JavaClass {
    let code = match refusal {
        Refusal::DifferentIds { .. }
        | Refusal::BadIds { .. }
        | Refusal::IdOutOfRange { .. }
        | Refusal::RepeatedId { .. }
        | Refusal::Overlap { .. } => code::BAD_GROUP,
        Refusal::NoContexts | Refusal::Ended { .. } | Refusal::Damaged { .. } => code::BAD_ARGUMENT,
        Refusal::Left { rank } => return JavaClass::Coded(code::ABANDONED, *rank as i32),
    };
    JavaClass::Coded(code, -1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(error: DeviceError) -> JavaClass {
        Failure::from(error).java_class()
    }

    /// An operation that foreign ranks do not support is an exception of the platform, with the text of the
    /// engine. A failure of theirs is a failed peer.
    #[test]
    fn unsupported_operation_of_a_foreign_rank_is_a_platform_exception_and_its_failure_a_failed_peer() {
        for operation in ["dup", "create", "split", "barrier"] {
            let refused = DeviceError::Foreign { operation, rank: 3 };
            let text = Failure::from(refused.clone()).to_string();
            assert!(text.contains(operation) && text.contains("rank 3"), "{text}");
            assert_eq!(class(refused), JavaClass::UnsupportedOperation);
        }
        let absent = DeviceError::NotAtBarrier { rank: 3, after: std::time::Duration::from_secs(1) };
        assert_eq!(class(absent), JavaClass::Coded(code::PEER_FAILED, 3));
    }

    /// A length that no memory can hold is an error with the octets, not the end of the process.
    #[test]
    fn length_without_memory_is_an_out_of_memory_error() {
        let refused = zeroed::<i64>(1 << 58).expect_err("too much");
        assert_eq!(refused.java_class(), JavaClass::OutOfMemory);
        assert_eq!(refused.to_string(), format!("the system has no memory for {} octets", 1u64 << 61));
        assert_eq!(reserved::<i64>(usize::MAX).expect_err("too much").java_class(), JavaClass::OutOfMemory);
        assert_eq!(zeroed::<i32>(3).expect("memory"), [0; 3]);
    }

    /// If the JVM returns nothing and throws nothing, Java gets an error nevertheless.
    #[test]
    fn failure_without_a_pending_exception_is_an_out_of_memory_error() {
        assert_eq!(Failure::from(Fault::Pending).java_class(), JavaClass::OutOfMemory);
    }
}
