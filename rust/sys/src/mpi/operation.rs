//! Pending sends and receives, with the memory that belongs to them.

use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::AtomicU64;

use super::binding::{envelope, int, wanted};
use super::{Comm, Envelope, Matched, Mode, Mpi, MpiError, RecvFrom, Request};

/// A pending send or receive. Its owner is kept until the library has completed the operation; the owner of a
/// forgotten operation is leaked.
#[derive(Debug)]
pub struct Operation<T: AsRef<[AtomicU64]>> {
    mpi: &'static Mpi,
    request: Request,
    owner: ManuallyDrop<Box<T>>,
    is_done: bool,
    is_receive: bool,
    /// A cancellation was attempted.
    may_be_cancelled: bool,
}

/// Destination of a message.
#[derive(Clone, Copy, Debug)]
pub struct To {
    /// The receiver, numbered in the communicator.
    pub dest: u32,
    /// The tag.
    pub tag: i32,
    /// The communicator.
    pub comm: Comm,
    /// The completion mode of the send.
    pub mode: Mode,
}

impl To {
    /// # Safety
    /// The memory stays valid and unchanged until the operation completes.
    unsafe fn isend(self, mpi: &Mpi, memory: *mut u8, len: c_int) -> Result<u64, MpiError> {
        let is_synchronous = self.mode == Mode::Synchronous;
        // SAFETY: as promised.
        unsafe {
            mpi.calls().isend(memory.cast(), len, int(self.dest), self.tag, self.comm.0, is_synchronous)
        }
    }
}

/// A send whose memory is borrowed: the drop waits for it.
struct BorrowingSend {
    mpi: &'static Mpi,
    request: u64,
}

impl Drop for BorrowingSend {
    fn drop(&mut self) {
        while let Ok(None) = self.mpi.calls().test_some(self.request, false) {
            std::thread::yield_now();
        }
    }
}

/// Result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is complete; of a receive, with the received message.
    Done(Envelope),
    /// It was cancelled before it completed.
    Cancelled,
}

/// Words of memory, the library's while it uses them. A thread that changes them meanwhile corrupts only
/// their contents.
fn octets_of<T: AsRef<[AtomicU64]>>(owner: &T, len: usize) -> (*mut u8, c_int) {
    let words = owner.as_ref();
    assert!(len <= size_of_val(words), "{len} octets, there is memory for {}", size_of_val(words));
    let len = c_int::try_from(len).expect("a message is shorter than 2 GiB");
    (words.as_ptr().cast_mut().cast(), len)
}

impl<T: AsRef<[AtomicU64]> + 'static> Operation<T> {
    fn begin(
        mpi: &'static Mpi,
        owner: Box<T>,
        len: usize,
        is_receive: bool,
        call: impl FnOnce(*mut u8, c_int) -> Result<u64, MpiError>,
    ) -> Result<Self, MpiError> {
        let (memory, len) = octets_of(&*owner, len);
        let request = Request(call(memory, len)?);
        let owner = ManuallyDrop::new(owner);
        Ok(Operation { mpi, request, owner, is_done: false, is_receive, may_be_cancelled: false })
    }

    /// Starts to send the first `len` octets of its memory. Does not block.
    ///
    /// # Errors
    /// The library's.
    ///
    /// # Panics
    /// There are fewer octets.
    pub fn send(mpi: &'static Mpi, owner: T, len: usize, to: To) -> Result<Self, MpiError> {
        Operation::begin(mpi, Box::new(owner), len, false, |memory, len| {
            // SAFETY: the owner, which no other code can move or change, stays until the operation completes.
            unsafe { to.isend(mpi, memory, len) }
        })
    }

    /// Sends the first `len` octets of a memory. `None` if the library completes the send at once, as it
    /// mostly does with few octets. Otherwise `owner` returns an owner of the same memory, which is kept.
    /// Does not block, unless that owner has another memory: then until the library has completed the send.
    ///
    /// # Errors
    /// The library's.
    ///
    /// # Panics
    /// There are fewer octets.
    #[inline]
    pub fn send_at_once(
        mpi: &'static Mpi,
        memory: &[AtomicU64],
        len: usize,
        to: To,
        owner: impl FnOnce() -> T,
    ) -> Result<Option<Self>, MpiError> {
        let (start, count) = octets_of(&memory, len);
        // SAFETY: the memory is the caller's until this returns, and it returns when the library has
        // completed the send, or when the owner is kept.
        let request = unsafe { to.isend(mpi, start, count) }?;
        let borrowing = BorrowingSend { mpi, request };
        match mpi.calls().test_some(request, false) {
            Ok(None) => {}
            tested => {
                std::mem::forget(borrowing);
                return tested.map(|_| None);
            }
        }
        let owner = Box::new(owner());
        if !ptr::eq(octets_of(&*owner, len).0, start) {
            return Ok(None);
        }
        std::mem::forget(borrowing);
        let owner = ManuallyDrop::new(owner);
        let request = Request(request);
        Ok(Some(Operation {
            mpi,
            request,
            owner,
            is_done: false,
            is_receive: false,
            may_be_cancelled: false,
        }))
    }

    /// Starts to receive up to `len` octets into its memory. Does not block.
    ///
    /// # Errors
    /// The library's.
    ///
    /// # Panics
    /// There are fewer octets.
    pub fn receive(
        mpi: &'static Mpi,
        owner: Box<T>,
        len: usize,
        from: RecvFrom,
        comm: Comm,
    ) -> Result<Self, MpiError> {
        Operation::begin(mpi, owner, len, true, |memory, len| {
            // SAFETY: as above; words that other threads may access meanwhile are atomic.
            unsafe { mpi.calls().irecv(memory.cast(), len, wanted(from), comm.0) }
        })
    }

    /// Starts to receive a message that was taken, of up to `len` octets. Does not block.
    ///
    /// # Errors
    /// The library's.
    ///
    /// # Panics
    /// There are fewer octets.
    pub fn receive_matched(
        mpi: &'static Mpi,
        owner: Box<T>,
        len: usize,
        matched: Matched,
    ) -> Result<Self, MpiError> {
        Operation::begin(mpi, owner, len, true, |memory, len| {
            // SAFETY: as above.
            unsafe { mpi.calls().imrecv(memory.cast(), len, matched.0) }
        })
    }

    /// The result of the operation, once it is complete. It must not be tested again after that. Of a send
    /// the envelope is empty. Does not block, and drives the library's progress.
    ///
    /// # Errors
    /// That of the operation, which is then complete.
    ///
    /// # Panics
    /// It was complete before.
    pub fn test(&mut self) -> Result<Option<Outcome>, MpiError> {
        assert!(!self.is_done, "a completed operation is tested");
        let tested = match self.may_be_cancelled {
            false => self.mpi.calls().test_some(self.request.0, self.is_receive),
            true => self.mpi.calls().test(self.request.0),
        };
        self.is_done = !matches!(tested, Ok(None));
        Ok(tested?.map(|seen| match seen.is_cancelled {
            true => Outcome::Cancelled,
            false => Outcome::Done(envelope(seen)),
        }))
    }

    /// Cancels the operation if possible. [`test`](Self::test) returns whether it was.
    ///
    /// # Errors
    /// The library's.
    pub fn cancel(&mut self) -> Result<(), MpiError> {
        self.may_be_cancelled = true;
        self.mpi.calls().cancel(self.request.0)
    }

    /// Tests until the operation is complete, and returns the owner of the memory. For short messages that
    /// have arrived.
    ///
    /// # Errors
    /// The library's.
    pub fn finish(mut self) -> Result<Box<T>, MpiError> {
        loop {
            if self.test()?.is_some() {
                // SAFETY: it is taken once, the library has completed the operation, and the remaining fields
                // have nothing to drop.
                let owner = unsafe { ManuallyDrop::take(&mut self.owner) };
                std::mem::forget(self);
                return Ok(owner);
            }
            std::thread::yield_now();
        }
    }

    /// The owner of the memory, which the library may be using.
    pub fn owner(&self) -> &T {
        &self.owner
    }

    /// The owner of the memory, of a complete operation.
    ///
    /// # Errors
    /// It is not complete, and continues.
    pub fn into_owner(self) -> Result<T, Self> {
        self.into_box().map(|owner| *owner)
    }

    /// The same in its box.
    ///
    /// # Errors
    /// It is not complete, and continues.
    #[inline]
    pub fn into_box(mut self) -> Result<Box<T>, Self> {
        if !self.is_done {
            return Err(self);
        }
        // SAFETY: it is taken once, and the remaining fields have nothing to drop.
        let owner = unsafe { ManuallyDrop::take(&mut self.owner) };
        std::mem::forget(self);
        Ok(owner)
    }
}

impl<T: AsRef<[AtomicU64]>> Drop for Operation<T> {
    fn drop(&mut self) {
        if self.is_done {
            // SAFETY: it is dropped once, and the library has completed the operation.
            unsafe { ManuallyDrop::drop(&mut self.owner) };
        }
    }
}
