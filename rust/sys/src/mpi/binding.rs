//! Opened MPI: its functions, with types that cannot be confused.

use std::ffi::{OsStr, c_int, c_void};
use std::mem::ManuallyDrop;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::abi::{Family, Mpich, OpenMpi, Standard};
use super::functions::{self, Calls, Functions, Seen};
use super::signals::{self, Kept};
use super::{
    Candidates, Class, Comm, Envelope, Matched, Mpi, MpiError, OpenError, RecvFrom, ThreadLevel, Tried,
    Unusable,
};

/// A function that only libraries with the standard ABI have (MPI 5.0, 20.2).
const ONLY_STANDARD: &[u8] = b"MPI_Abi_get_version\0";

impl Mpi {
    /// Opens the first usable candidate.
    ///
    /// # Errors
    /// None is usable; the error has the reason for each.
    pub fn open(candidates: &Candidates) -> Result<Mpi, OpenError> {
        signals::leave_to_us();
        let mut tried = Vec::new();
        for name in &candidates.names {
            match Mpi::open_one(name) {
                Ok(mpi) => return Ok(mpi),
                Err(why) => tried.push(Tried { name: name.to_string_lossy().into_owned(), why }),
            }
        }
        Err(OpenError { tried, is_named: candidates.is_named })
    }

    fn open_one(name: &OsStr) -> Result<Mpi, Unusable> {
        let kept = Kept::now();
        // Open MPI finds its plug-ins' symbols among the global ones.
        // SAFETY: a library may run any code when it is loaded; the caller asked for that.
        let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_GLOBAL) };
        kept.restore();
        // It is never closed: it may have begun threads.
        let library = ManuallyDrop::new(library.map_err(|error| Unusable::Loader(text_of(&error)))?);
        let version = functions::version(&library)?;
        // SAFETY: only the existence of the symbol is checked.
        let has_standard = unsafe { library.get::<*mut c_void>(ONLY_STANDARD) }.is_ok();
        // A library may have both ABIs. Its name states which one its functions follow.
        let is_standard = has_standard && name.to_string_lossy().contains("mpi_abi");
        let first = version.lines().next().unwrap_or_default();
        let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
        let Some(family) = Family::of(&version, is_standard) else {
            return Err(Unusable::Family { version: first });
        };
        let resolved: Result<Box<dyn Calls>, libloading::Error> = match family {
            Family::OpenMpi => Functions::<OpenMpi>::resolve(&library).map(|f| Box::new(f) as _),
            Family::Mpich => Functions::<Mpich>::resolve(&library).map(|f| Box::new(f) as _),
            Family::Standard => Functions::<Standard>::resolve(&library).map(|f| Box::new(f) as _),
        };
        let functions = resolved
            .map_err(|error| Unusable::Function { version: first.clone(), loader: text_of(&error) })?;
        Ok(Mpi { path: name.to_string_lossy().into_owned(), version: first, family, functions })
    }

    /// The name or path by which it was opened.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The first line of its version text.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The family of the library.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// Initialises it with the highest thread level that it supports, and returns that level. A library that
    /// was initialised before is used as it is. Blocks until all processes of the job do so (MPI 4.1, 11.2).
    /// The calling thread counts as the main one.
    ///
    /// # Errors
    /// The library's; it was finalised before.
    pub fn init(&self) -> Result<ThreadLevel, MpiError> {
        if self.functions.is_initialized()? {
            // A library that gets other calls after its end may end the process.
            return match self.functions.is_finalized()? {
                false => self.functions.thread_level(),
                true => Err(MpiError {
                    function: "MPI_Finalized",
                    code: 0,
                    class: Class::Other,
                    text: "it was finalised before, and MPI can be used once in a process".to_owned(),
                }),
            };
        }
        let kept = Kept::now();
        let level = self.functions.init();
        kept.restore();
        level
    }

    /// Ends the use of the library. Blocks until all processes of the job do so. No other call may follow.
    ///
    /// # Errors
    /// The library's.
    pub fn finalize(&self) -> Result<(), MpiError> {
        self.functions.finalize()
    }

    /// Ends all processes of the job with a status. Returns only with an error.
    ///
    /// # Errors
    /// The library's.
    pub fn abort(&self, status: u8) -> Result<(), MpiError> {
        self.functions.abort(self.functions.world(), status.into())
    }

    /// The communicator of all processes.
    #[must_use]
    pub fn world(&self) -> Comm {
        Comm(self.functions.world())
    }

    /// Makes a communicator return errors, instead of ending the process. Communicators made from it do so as
    /// well.
    ///
    /// # Errors
    /// The library's.
    pub fn return_errors(&self, comm: Comm) -> Result<(), MpiError> {
        self.functions.return_errors(comm.0)
    }

    /// This process's number in a communicator.
    ///
    /// # Errors
    /// The library's.
    pub fn rank(&self, comm: Comm) -> Result<u32, MpiError> {
        self.functions.rank(comm.0).map(natural)
    }

    /// Number of processes of a communicator.
    ///
    /// # Errors
    /// The library's.
    pub fn size(&self, comm: Comm) -> Result<u32, MpiError> {
        self.functions.size(comm.0).map(natural)
    }

    /// The largest tag; 32767 if the library does not state it (MPI 4.1, 9.1.2).
    ///
    /// # Errors
    /// The library's.
    pub fn tag_max(&self, comm: Comm) -> Result<i32, MpiError> {
        Ok(self.functions.tag_max(comm.0)?.unwrap_or(32_767))
    }

    /// Begins to create a communicator of the same processes with messages of its own. Collective; does not
    /// block.
    ///
    /// # Errors
    /// The library's.
    pub fn idup(&'static self, comm: Comm) -> Result<Dup, MpiError> {
        let new = Box::into_raw(Box::new(0_u64));
        // SAFETY: the word is in memory of its own, which is freed when the library has completed the
        // request.
        let request = unsafe { self.functions.idup(comm.0, new) }?;
        Ok(Dup { mpi: self, request, new: new as usize })
    }

    /// Creates a communicator of some processes of `comm`, given by their numbers in it, in this order.
    /// Collective for those alone; blocks until all of them do so, with the same numbers and tag.
    ///
    /// # Errors
    /// The library's.
    pub fn create_group(&self, comm: Comm, ranks: &[u32], tag: i32) -> Result<Comm, MpiError> {
        let ranks: Vec<c_int> = ranks.iter().map(|rank| int(*rank)).collect();
        self.functions.create_group(comm.0, &ranks, tag).map(Comm)
    }

    /// Frees a communicator. Collective, and may block until all do so.
    ///
    /// # Errors
    /// The library's.
    pub fn free(&self, comm: Comm) -> Result<(), MpiError> {
        self.functions.free(comm.0)
    }

    /// Begins a barrier of all processes of a communicator. Collective; does not block.
    ///
    /// # Errors
    /// The library's.
    pub fn ibarrier(&self, comm: Comm) -> Result<Barrier<'_>, MpiError> {
        Ok(Barrier { mpi: self, request: self.functions.ibarrier(comm.0)? })
    }

    /// A message that a receive could get; it stays where it is.
    ///
    /// # Errors
    /// The library's.
    pub fn iprobe(&self, from: RecvFrom, comm: Comm) -> Result<Option<Envelope>, MpiError> {
        Ok(self.functions.iprobe(wanted(from), comm.0)?.map(envelope))
    }

    /// A message that a receive could get, taken so that no other one gets it.
    ///
    /// # Errors
    /// The library's.
    pub fn improbe(&self, from: RecvFrom, comm: Comm) -> Result<Option<(Matched, Envelope)>, MpiError> {
        let taken = self.functions.improbe(wanted(from), comm.0)?;
        Ok(taken.map(|(message, seen)| (Matched(message), envelope(seen))))
    }

    pub(super) fn calls(&self) -> &dyn Calls {
        &*self.functions
    }
}

/// A pending barrier.
#[derive(Debug)]
pub struct Barrier<'a> {
    mpi: &'a Mpi,
    request: u64,
}

impl Barrier<'_> {
    /// Whether all processes have reached the barrier. It must not be tested again after that. Does not
    /// block.
    ///
    /// # Errors
    /// The library's.
    pub fn test(&mut self) -> Result<bool, MpiError> {
        Ok(self.mpi.functions.test(self.request)?.is_some())
    }
}

/// A communicator that is being created.
#[derive(Debug)]
pub struct Dup {
    mpi: &'static Mpi,
    request: u64,
    /// Address of the word that the library writes it to. The word of a forgotten request is leaked.
    new: usize,
}

impl Dup {
    /// The communicator, once created. It must not be tested again after that. Does not block.
    ///
    /// # Errors
    /// The library's.
    pub fn test(&mut self) -> Result<Option<Comm>, MpiError> {
        if self.mpi.functions.test(self.request)?.is_none() {
            return Ok(None);
        }
        // SAFETY: it was boxed by `idup`, the library has written to it and has completed the request, and it
        // is taken once.
        let new = unsafe { Box::from_raw(self.new as *mut u64) };
        Ok(Some(Comm(*new)))
    }
}

/// The error text of the loader, or of the system.
fn text_of(error: &libloading::Error) -> String {
    use std::error::Error;
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

pub(super) fn wanted(from: RecvFrom) -> (Option<c_int>, Option<c_int>) {
    (from.source.map(int), from.tag)
}

pub(super) fn envelope(seen: Seen) -> Envelope {
    Envelope { source: natural(seen.source), tag: seen.tag, len: natural(seen.len) as usize }
}

pub(super) fn int(number: u32) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}

/// A number of the library that is never negative.
fn natural(number: c_int) -> u32 {
    u32::try_from(number).unwrap_or(0)
}
