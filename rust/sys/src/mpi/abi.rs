//! Choices of each implementation: types, constants, and the locations of predefined objects.

use std::ffi::{c_int, c_void};
use std::fmt;

use libloading::os::unix::Library;

use super::ThreadLevel;

mod mpich;
mod open_mpi;
mod standard;

pub(super) use mpich::Mpich;
pub(super) use open_mpi::OpenMpi;
pub(super) use standard::Standard;

/// Family of implementations with the same choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Open MPI 4 and 5.
    OpenMpi,
    /// MPICH 3 and later, and implementations that follow its ABI.
    Mpich,
    /// The ABI of the MPI-5 standard.
    Standard,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::OpenMpi => "Open MPI",
            Family::Mpich => "MPICH",
            Family::Standard => "MPI-5 standard ABI",
        })
    }
}

impl Family {
    /// The family of a library with this version text; `None` if it is unknown. `is_standard`: it has the
    /// functions of the standard ABI, under the name that only such a library has.
    pub(super) fn of(version: &str, is_standard: bool) -> Option<Family> {
        const LIKE_MPICH: [&str; 4] = ["MPICH", "MVAPICH", "Intel(R) MPI", "CRAY MPICH"];
        match version {
            _ if is_standard => Some(Family::Standard),
            _ if version.contains("Open MPI") => Some(Family::OpenMpi),
            _ if LIKE_MPICH.iter().any(|name| version.contains(name)) => Some(Family::Mpich),
            _ => None,
        }
    }
}

/// A handle as the C interface has it, and as a word. A handle of 32 bits never goes through a parameter of
/// 64.
pub(super) trait Handle: Copy + Send + Sync + 'static {
    fn word(self) -> u64;
    fn from_word(word: u64) -> Self;
}

impl Handle for c_int {
    fn word(self) -> u64 {
        self as u32 as u64
    }

    fn from_word(word: u64) -> Self {
        word as u32 as c_int
    }
}

/// A pointer to an object of the library, as a number: no code here dereferences it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Pointer(*mut c_void);

// SAFETY: it is a number here; only the library dereferences it.
unsafe impl Send for Pointer {}
// SAFETY: as above.
unsafe impl Sync for Pointer {}

impl Handle for Pointer {
    fn word(self) -> u64 {
        self.0 as u64
    }

    fn from_word(word: u64) -> Self {
        Pointer(word as *mut c_void)
    }
}

/// Predefined objects.
#[derive(Clone, Copy)]
pub(super) struct Objects<H> {
    pub(super) world: H,
    pub(super) byte: H,
    pub(super) errors_return: H,
    pub(super) request_null: H,
    pub(super) message_null: H,
}

/// The choices of one family.
pub(super) trait Abi: 'static {
    type Handle: Handle;
    /// As large as the library's status, with fields at the same offsets.
    type Status: Copy + Default;

    const FAMILY: Family;
    const ANY_SOURCE: c_int;
    const ANY_TAG: c_int;
    /// Key of the largest tag.
    const TAG_UB: c_int;
    /// By level, from single on.
    const THREAD_LEVELS: [c_int; 4];
    /// Error class of a message that is too long for its receive.
    const TRUNCATE: c_int;

    /// # Errors
    /// A symbol is missing.
    fn objects(library: &Library) -> Result<Objects<Self::Handle>, libloading::Error>;
    fn source(status: &Self::Status) -> c_int;
    fn tag(status: &Self::Status) -> c_int;
}

/// The level that a number of the library means: the highest that it reaches.
pub(super) fn thread_level<A: Abi>(number: c_int) -> ThreadLevel {
    let levels = [ThreadLevel::Single, ThreadLevel::Funneled, ThreadLevel::Serialized, ThreadLevel::Multiple];
    let reached = A::THREAD_LEVELS.iter().rposition(|level| *level <= number);
    levels[reached.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn family_is_known_by_the_text_of_the_library() {
        let of = |version| Family::of(version, false);
        assert_eq!(of("Open MPI v4.1.4, package: Debian Open MPI, ident: 4.1.4"), Some(Family::OpenMpi));
        assert_eq!(of("MPICH Version:      4.0.2\nMPICH Release date: Thu Apr  7"), Some(Family::Mpich));
        assert_eq!(of("Intel(R) MPI Library 2021.10 for Linux* OS"), Some(Family::Mpich));
        assert_eq!(of("MVAPICH2 Version      :\t2.3.7"), Some(Family::Mpich));
        assert_eq!(Family::of("MPICH Version:      5.0.2", true), Some(Family::Standard));
        assert_eq!(of("Some MPI 1.0"), None);
    }

    #[test]
    fn handles_survive_the_round_trip_through_words() {
        for handle in [0x4400_0000, -1, i32::MIN, 0] {
            assert_eq!(c_int::from_word(handle.word()), handle);
        }
        assert_eq!((-1_i32).word(), 0xffff_ffff, "not a word of 64 ones");
        assert_eq!(Pointer::from_word(0x101).word(), 0x101);
    }

    #[test]
    fn thread_level_is_translated_for_each_family() {
        assert_eq!(thread_level::<OpenMpi>(3), ThreadLevel::Multiple);
        assert_eq!(thread_level::<Mpich>(1), ThreadLevel::Funneled);
        assert_eq!(thread_level::<Standard>(2048), ThreadLevel::Serialized);
        assert_eq!(thread_level::<Standard>(3), ThreadLevel::Single);
    }
}
