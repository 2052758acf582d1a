//! Functions of the C interface that are used, looked up once, and calls of them with words for handles.

use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::ptr;

use libloading::os::unix::Library;

use super::abi::{Abi, Handle, Objects, thread_level};
use super::{Class, MpiError, ThreadLevel, Unusable};

/// Octets of an error text, enough for any implementation.
const ERROR_STRING_MAX: usize = 8192;

macro_rules! functions {
    ($($field:ident: $name:literal ($($arg:ty),*);)*) => {
        /// Addresses of the library's functions, with the types of this family.
        pub(super) struct Functions<A: Abi> {
            objects: Objects<A::Handle>,
            $($field: unsafe extern "C" fn($($arg),*) -> c_int,)*
        }

        impl<A: Abi> Functions<A> {
            /// # Errors
            /// A function or object is missing.
            pub(super) fn resolve(library: &Library) -> Result<Self, libloading::Error> {
                Ok(Functions {
                    objects: A::objects(library)?,
                    $($field: {
                        // SAFETY: this is the function's type in the standard, with this family's types for
                        // handles.
                        *unsafe { library.get(concat!($name, "\0").as_bytes()) }?
                    },)*
                })
            }
        }
    };
}

functions! {
    initialized: "MPI_Initialized" (*mut c_int);
    finalized: "MPI_Finalized" (*mut c_int);
    init_thread: "MPI_Init_thread" (*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    query_thread: "MPI_Query_thread" (*mut c_int);
    finalize: "MPI_Finalize" ();
    abort: "MPI_Abort" (A::Handle, c_int);
    error_string: "MPI_Error_string" (c_int, *mut c_char, *mut c_int);
    error_class: "MPI_Error_class" (c_int, *mut c_int);
    comm_rank: "MPI_Comm_rank" (A::Handle, *mut c_int);
    comm_size: "MPI_Comm_size" (A::Handle, *mut c_int);
    comm_idup: "MPI_Comm_idup" (A::Handle, *mut A::Handle, *mut A::Handle);
    comm_free: "MPI_Comm_free" (*mut A::Handle);
    comm_set_errhandler: "MPI_Comm_set_errhandler" (A::Handle, A::Handle);
    comm_get_attr: "MPI_Comm_get_attr" (A::Handle, c_int, *mut c_void, *mut c_int);
    comm_group: "MPI_Comm_group" (A::Handle, *mut A::Handle);
    group_incl: "MPI_Group_incl" (A::Handle, c_int, *const c_int, *mut A::Handle);
    group_free: "MPI_Group_free" (*mut A::Handle);
    comm_create_group: "MPI_Comm_create_group" (A::Handle, A::Handle, c_int, *mut A::Handle);
    isend: "MPI_Isend" (*const c_void, c_int, A::Handle, c_int, c_int, A::Handle, *mut A::Handle);
    issend: "MPI_Issend" (*const c_void, c_int, A::Handle, c_int, c_int, A::Handle, *mut A::Handle);
    irecv: "MPI_Irecv" (*mut c_void, c_int, A::Handle, c_int, c_int, A::Handle, *mut A::Handle);
    ibarrier: "MPI_Ibarrier" (A::Handle, *mut A::Handle);
    test: "MPI_Test" (*mut A::Handle, *mut c_int, *mut A::Status);
    get_count: "MPI_Get_count" (*const A::Status, A::Handle, *mut c_int);
    test_cancelled: "MPI_Test_cancelled" (*const A::Status, *mut c_int);
    cancel: "MPI_Cancel" (*mut A::Handle);
    iprobe: "MPI_Iprobe" (c_int, c_int, A::Handle, *mut c_int, *mut A::Status);
    improbe: "MPI_Improbe" (c_int, c_int, A::Handle, *mut c_int, *mut A::Handle, *mut A::Status);
    imrecv: "MPI_Imrecv" (*mut c_void, c_int, A::Handle, *mut A::Handle, *mut A::Handle);
}

impl<A: Abi> fmt::Debug for Functions<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Functions of {}", A::FAMILY)
    }
}

/// Result of a test or a probe, as numbers of the interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) source: c_int,
    pub(super) tag: c_int,
    pub(super) len: c_int,
    pub(super) is_cancelled: bool,
}

/// The functions with words for handles, so that callers need not know the family. `None` for a source or tag
/// is any.
pub(super) trait Calls: fmt::Debug + Send + Sync {
    fn world(&self) -> u64;
    fn is_initialized(&self) -> Result<bool, MpiError>;
    fn is_finalized(&self) -> Result<bool, MpiError>;
    fn init(&self) -> Result<ThreadLevel, MpiError>;
    fn thread_level(&self) -> Result<ThreadLevel, MpiError>;
    fn finalize(&self) -> Result<(), MpiError>;
    fn abort(&self, comm: u64, code: c_int) -> Result<(), MpiError>;
    fn rank(&self, comm: u64) -> Result<c_int, MpiError>;
    fn size(&self, comm: u64) -> Result<c_int, MpiError>;
    fn tag_max(&self, comm: u64) -> Result<Option<c_int>, MpiError>;
    fn return_errors(&self, comm: u64) -> Result<(), MpiError>;
    /// Begins a duplication; the word becomes the new handle when the request completes.
    ///
    /// # Safety
    /// The word stays valid, at the same address, until then.
    unsafe fn idup(&self, comm: u64, new: *mut u64) -> Result<u64, MpiError>;
    fn create_group(&self, comm: u64, ranks: &[c_int], tag: c_int) -> Result<u64, MpiError>;
    fn free(&self, comm: u64) -> Result<(), MpiError>;
    /// # Safety
    /// The memory stays valid and unchanged until the operation completes.
    unsafe fn isend(
        &self,
        memory: *const c_void,
        len: c_int,
        dest: c_int,
        tag: c_int,
        comm: u64,
        is_synchronous: bool,
    ) -> Result<u64, MpiError>;
    /// # Safety
    /// The memory stays valid until the operation completes, and no other code accesses it.
    unsafe fn irecv(
        &self,
        memory: *mut c_void,
        len: c_int,
        from: (Option<c_int>, Option<c_int>),
        comm: u64,
    ) -> Result<u64, MpiError>;
    /// # Safety
    /// As for `irecv`.
    unsafe fn imrecv(&self, memory: *mut c_void, len: c_int, message: u64) -> Result<u64, MpiError>;
    fn ibarrier(&self, comm: u64) -> Result<u64, MpiError>;
    /// The request no longer exists when it completes, with or without an error.
    fn test(&self, request: u64) -> Result<Option<Seen>, MpiError>;
    /// As `test`, of a send, or of a receive that was never cancelled: fields that are not requested are
    /// zero.
    fn test_some(&self, request: u64, is_receive: bool) -> Result<Option<Seen>, MpiError>;
    fn cancel(&self, request: u64) -> Result<(), MpiError>;
    fn iprobe(&self, from: (Option<c_int>, Option<c_int>), comm: u64) -> Result<Option<Seen>, MpiError>;
    fn improbe(
        &self,
        from: (Option<c_int>, Option<c_int>),
        comm: u64,
    ) -> Result<Option<(u64, Seen)>, MpiError>;
}

impl<A: Abi> Functions<A> {
    /// The result for a return code.
    #[inline]
    fn done(&self, function: &'static str, code: c_int) -> Result<(), MpiError> {
        // MPI_SUCCESS is 0 in every MPI (MPI 4.1, 9.4).
        if code == 0 { Ok(()) } else { Err(self.error(function, code)) }
    }

    #[cold]
    fn error(&self, function: &'static str, code: c_int) -> MpiError {
        let mut octets = vec![0_u8; ERROR_STRING_MAX];
        let (mut len, mut class) = (0, 0);
        // SAFETY: there is room for the text of any implementation, and for two numbers.
        let said = unsafe { (self.error_string)(code, octets.as_mut_ptr().cast(), &raw mut len) };
        octets.truncate(if said == 0 { usize::try_from(len).unwrap_or(0) } else { 0 });
        let text = String::from_utf8_lossy(&octets).trim_end_matches('\0').trim().to_owned();
        // SAFETY: there is room for a number.
        let classified = unsafe { (self.error_class)(code, &raw mut class) };
        let is_truncated = classified == 0 && class == A::TRUNCATE;
        let class = if is_truncated { Class::Truncated } else { Class::Other };
        MpiError { function, code, class, text }
    }

    fn flag(
        &self,
        name: &'static str,
        call: unsafe extern "C" fn(*mut c_int) -> c_int,
    ) -> Result<bool, MpiError> {
        let mut flag = 0;
        // SAFETY: there is room for a number.
        self.done(name, unsafe { call(&raw mut flag) })?;
        Ok(flag != 0)
    }

    fn seen(&self, status: &A::Status) -> Result<Seen, MpiError> {
        let (mut len, mut is_cancelled) = (0, 0);
        let status = &raw const *status;
        // SAFETY: the status is of this family and was filled in by its library; there is room for two
        // numbers.
        unsafe {
            self.done("MPI_Get_count", (self.get_count)(status, self.objects.byte, &raw mut len))?;
            self.done("MPI_Test_cancelled", (self.test_cancelled)(status, &raw mut is_cancelled))?;
            let status = &*status;
            Ok(Seen { source: A::source(status), tag: A::tag(status), len, is_cancelled: is_cancelled != 0 })
        }
    }

    fn wanted(from: (Option<c_int>, Option<c_int>)) -> (c_int, c_int) {
        (from.0.unwrap_or(A::ANY_SOURCE), from.1.unwrap_or(A::ANY_TAG))
    }

    fn object(word: u64) -> A::Handle {
        A::Handle::from_word(word)
    }
}

impl<A: Abi> Calls for Functions<A> {
    fn world(&self) -> u64 {
        self.objects.world.word()
    }

    fn is_initialized(&self) -> Result<bool, MpiError> {
        self.flag("MPI_Initialized", self.initialized)
    }

    fn is_finalized(&self) -> Result<bool, MpiError> {
        self.flag("MPI_Finalized", self.finalized)
    }

    fn init(&self) -> Result<ThreadLevel, MpiError> {
        let mut granted = 0;
        // SAFETY: no arguments are allowed (MPI 4.1, 11.2.1); there is room for a number.
        let code = unsafe {
            (self.init_thread)(ptr::null_mut(), ptr::null_mut(), A::THREAD_LEVELS[3], &raw mut granted)
        };
        self.done("MPI_Init_thread", code)?;
        Ok(thread_level::<A>(granted))
    }

    fn thread_level(&self) -> Result<ThreadLevel, MpiError> {
        let mut granted = 0;
        // SAFETY: there is room for a number.
        self.done("MPI_Query_thread", unsafe { (self.query_thread)(&raw mut granted) })?;
        Ok(thread_level::<A>(granted))
    }

    fn finalize(&self) -> Result<(), MpiError> {
        // SAFETY: it takes nothing; a call at the wrong time is an error that it returns or names.
        self.done("MPI_Finalize", unsafe { (self.finalize)() })
    }

    fn abort(&self, comm: u64, code: c_int) -> Result<(), MpiError> {
        // SAFETY: it takes numbers only.
        self.done("MPI_Abort", unsafe { (self.abort)(Self::object(comm), code) })
    }

    fn rank(&self, comm: u64) -> Result<c_int, MpiError> {
        let mut rank = 0;
        // SAFETY: there is room for a number.
        self.done("MPI_Comm_rank", unsafe { (self.comm_rank)(Self::object(comm), &raw mut rank) })?;
        Ok(rank)
    }

    fn size(&self, comm: u64) -> Result<c_int, MpiError> {
        let mut size = 0;
        // SAFETY: there is room for a number.
        self.done("MPI_Comm_size", unsafe { (self.comm_size)(Self::object(comm), &raw mut size) })?;
        Ok(size)
    }

    fn tag_max(&self, comm: u64) -> Result<Option<c_int>, MpiError> {
        let (mut value, mut flag): (*const c_int, c_int) = (ptr::null(), 0);
        let at = (&raw mut value).cast();
        // SAFETY: there is room for a pointer and a number.
        let code = unsafe { (self.comm_get_attr)(Self::object(comm), A::TAG_UB, at, &raw mut flag) };
        self.done("MPI_Comm_get_attr", code)?;
        // SAFETY: the attribute points to an int of the library that is never freed (MPI 4.1, 9.1.2).
        Ok((flag != 0 && !value.is_null()).then(|| unsafe { *value }))
    }

    fn return_errors(&self, comm: u64) -> Result<(), MpiError> {
        let handler = self.objects.errors_return;
        // SAFETY: it takes handles only.
        self.done("MPI_Comm_set_errhandler", unsafe {
            (self.comm_set_errhandler)(Self::object(comm), handler)
        })
    }

    unsafe fn idup(&self, comm: u64, new: *mut u64) -> Result<u64, MpiError> {
        // A handle of 32 bits is the first half of a little-endian word.
        const { assert!(cfg!(target_endian = "little")) };
        let mut request = self.objects.request_null;
        // SAFETY: there is room for a handle in the caller's word, which stays valid, and for another one.
        let code = unsafe { (self.comm_idup)(Self::object(comm), new.cast(), &raw mut request) };
        self.done("MPI_Comm_idup", code)?;
        Ok(request.word())
    }

    fn create_group(&self, comm: u64, ranks: &[c_int], tag: c_int) -> Result<u64, MpiError> {
        let comm = Self::object(comm);
        let (mut all, mut part, mut new) = (self.objects.world, self.objects.world, self.objects.world);
        let count = c_int::try_from(ranks.len()).unwrap_or(c_int::MAX);
        // SAFETY: there is room for three handles, and for `count` ranks; both groups are the library's own
        // until they are freed.
        unsafe {
            self.done("MPI_Comm_group", (self.comm_group)(comm, &raw mut all))?;
            let included = (self.group_incl)(all, count, ranks.as_ptr(), &raw mut part);
            let result = self.done("MPI_Group_incl", included).and_then(|()| {
                let code = (self.comm_create_group)(comm, part, tag, &raw mut new);
                let result = self.done("MPI_Comm_create_group", code);
                result.and(self.done("MPI_Group_free", (self.group_free)(&raw mut part)))
            });
            result.and(self.done("MPI_Group_free", (self.group_free)(&raw mut all)))?;
        }
        Ok(new.word())
    }

    fn free(&self, comm: u64) -> Result<(), MpiError> {
        let mut comm = Self::object(comm);
        // SAFETY: the library overwrites the handle.
        self.done("MPI_Comm_free", unsafe { (self.comm_free)(&raw mut comm) })
    }

    #[inline]
    unsafe fn isend(
        &self,
        memory: *const c_void,
        len: c_int,
        dest: c_int,
        tag: c_int,
        comm: u64,
        is_synchronous: bool,
    ) -> Result<u64, MpiError> {
        let (name, call) =
            if is_synchronous { ("MPI_Issend", self.issend) } else { ("MPI_Isend", self.isend) };
        let (mut request, comm) = (self.objects.request_null, Self::object(comm));
        // SAFETY: the caller keeps the memory; there is room for a handle.
        let code = unsafe { call(memory, len, self.objects.byte, dest, tag, comm, &raw mut request) };
        self.done(name, code)?;
        Ok(request.word())
    }

    #[inline]
    unsafe fn irecv(
        &self,
        memory: *mut c_void,
        len: c_int,
        from: (Option<c_int>, Option<c_int>),
        comm: u64,
    ) -> Result<u64, MpiError> {
        let (source, tag) = Self::wanted(from);
        let (mut request, comm) = (self.objects.request_null, Self::object(comm));
        // SAFETY: the caller keeps the memory; there is room for a handle.
        let code =
            unsafe { (self.irecv)(memory, len, self.objects.byte, source, tag, comm, &raw mut request) };
        self.done("MPI_Irecv", code)?;
        Ok(request.word())
    }

    unsafe fn imrecv(&self, memory: *mut c_void, len: c_int, message: u64) -> Result<u64, MpiError> {
        let (mut request, mut message) = (self.objects.request_null, Self::object(message));
        let byte = self.objects.byte;
        // SAFETY: the caller keeps the memory; there is room for two handles.
        let code = unsafe { (self.imrecv)(memory, len, byte, &raw mut message, &raw mut request) };
        self.done("MPI_Imrecv", code)?;
        Ok(request.word())
    }

    fn ibarrier(&self, comm: u64) -> Result<u64, MpiError> {
        let mut request = self.objects.request_null;
        // SAFETY: there is room for a handle.
        let code = unsafe { (self.ibarrier)(Self::object(comm), &raw mut request) };
        self.done("MPI_Ibarrier", code)?;
        Ok(request.word())
    }

    #[inline]
    fn test(&self, request: u64) -> Result<Option<Seen>, MpiError> {
        let (mut request, mut flag, mut status) = (Self::object(request), 0, A::Status::default());
        // SAFETY: there is room for a handle, a number and this family's status.
        let code = unsafe { (self.test)(&raw mut request, &raw mut flag, &raw mut status) };
        self.done("MPI_Test", code)?;
        if flag == 0 { Ok(None) } else { self.seen(&status).map(Some) }
    }

    #[inline]
    fn test_some(&self, request: u64, is_receive: bool) -> Result<Option<Seen>, MpiError> {
        let (mut request, mut flag, mut status) = (Self::object(request), 0, A::Status::default());
        // SAFETY: there is room for a handle, a number and this family's status.
        let code = unsafe { (self.test)(&raw mut request, &raw mut flag, &raw mut status) };
        self.done("MPI_Test", code)?;
        if flag == 0 {
            return Ok(None);
        }
        let mut seen = Seen::default();
        if is_receive {
            let status = &raw const status;
            // SAFETY: the status is of this family and was filled in by its library; there is room for a
            // number.
            let code = unsafe { (self.get_count)(status, self.objects.byte, &raw mut seen.len) };
            self.done("MPI_Get_count", code)?;
            // SAFETY: as above.
            let status = unsafe { &*status };
            (seen.source, seen.tag) = (A::source(status), A::tag(status));
        }
        Ok(Some(seen))
    }

    fn cancel(&self, request: u64) -> Result<(), MpiError> {
        let mut request = Self::object(request);
        // SAFETY: the library may overwrite the handle, which stays valid until it is tested.
        self.done("MPI_Cancel", unsafe { (self.cancel)(&raw mut request) })
    }

    fn iprobe(&self, from: (Option<c_int>, Option<c_int>), comm: u64) -> Result<Option<Seen>, MpiError> {
        let (source, tag) = Self::wanted(from);
        let (mut flag, mut status) = (0, A::Status::default());
        // SAFETY: there is room for a number and this family's status.
        let code = unsafe { (self.iprobe)(source, tag, Self::object(comm), &raw mut flag, &raw mut status) };
        self.done("MPI_Iprobe", code)?;
        if flag == 0 { Ok(None) } else { self.seen(&status).map(Some) }
    }

    fn improbe(
        &self,
        from: (Option<c_int>, Option<c_int>),
        comm: u64,
    ) -> Result<Option<(u64, Seen)>, MpiError> {
        let (source, tag) = Self::wanted(from);
        let (mut flag, mut status, mut message) = (0, A::Status::default(), self.objects.message_null);
        let comm = Self::object(comm);
        // SAFETY: there is room for a number, a handle and this family's status.
        let code =
            unsafe { (self.improbe)(source, tag, comm, &raw mut flag, &raw mut message, &raw mut status) };
        self.done("MPI_Improbe", code)?;
        if flag == 0 {
            return Ok(None);
        }
        Ok(Some((message.word(), self.seen(&status)?)))
    }
}

/// The version text of a library (`MPI_Get_library_version`, which is the same in all families).
///
/// # Errors
/// It lacks the function, or the function fails.
pub(super) fn version(library: &Library) -> Result<String, Unusable> {
    type Version = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
    // SAFETY: this is the function's type in every MPI from 3.0 on.
    let version = unsafe { library.get::<Version>(b"MPI_Get_library_version\0") };
    let version = version.map_err(|_| Unusable::NoMpi)?;
    let (mut octets, mut len) = (vec![0_u8; 2 * ERROR_STRING_MAX], 0);
    // SAFETY: there is room for the longest text of any family (8192 octets), and for a number.
    let code = unsafe { version(octets.as_mut_ptr().cast(), &raw mut len) };
    if code != 0 {
        return Err(Unusable::Version { code });
    }
    octets.truncate(usize::try_from(len).unwrap_or(0));
    Ok(String::from_utf8_lossy(&octets).trim_end_matches('\0').trim().to_owned())
}
