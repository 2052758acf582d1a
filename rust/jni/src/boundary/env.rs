//! The Java environment of one call, and the Java objects of `mpjdev.core` that calls fill or return.

use std::sync::atomic::{AtomicPtr, Ordering};

use jni::sys::{self, jlong, jobject};
use mpjdev_buffer::Octets;

use crate::error::{Failure, Fault};

/// The calling thread's Java environment, for the length of one call.
#[derive(Debug)]
pub(crate) struct Env {
    pub(super) raw: *mut sys::JNIEnv,
    /// The exception of an upcall; null for none.
    pub(super) thrown: sys::jthrowable,
}

impl Env {
    /// Wraps the first argument of a native method.
    ///
    /// # Safety
    /// `raw` is the environment of the calling thread, for as long as the result lives.
    #[inline(always)]
    pub(crate) unsafe fn new(raw: *mut sys::JNIEnv) -> Env {
        Env { raw, thrown: std::ptr::null_mut() }
    }

    /// The raw environment, for the array copies.
    #[inline(always)]
    pub(crate) fn raw(&self) -> *mut sys::JNIEnv {
        self.raw
    }

    /// Makes a direct buffer of a memory range, which the caller keeps as long as the buffer is reachable.
    ///
    /// # Errors
    /// Java has no memory.
    pub(crate) fn direct_view(&mut self, place: &Octets<'_>) -> Result<DirectView, Failure> {
        // SAFETY: the environment is the calling thread's. The range is good, and stays so as the caller
        // promises; relaxed atomics and Java's own accesses to it may race, as with a peer that changes its
        // messages.
        let made = unsafe {
            ((**self.raw).v1_4.NewDirectByteBuffer)(self.raw, place.as_ptr().cast(), place.len() as jlong)
        };
        if made.is_null() { Err(Fault::Pending.into()) } else { Ok(DirectView(made)) }
    }
}

/// A direct buffer of octets of message memory, in Java's default byte order.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct DirectView(jobject);

impl Default for DirectView {
    fn default() -> Self {
        DirectView(std::ptr::null_mut())
    }
}

/// The `mpjdev.core.NativeStatus` argument of a call, for details of a message beyond the return value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NativeStatus(jobject);

/// The field `detail` of `mpjdev.core.NativeStatus`; null until a call fills one. A rank that joins and ends
/// need not load the class.
static DETAIL: AtomicPtr<sys::_jfieldID> = AtomicPtr::new(std::ptr::null_mut());

impl NativeStatus {
    /// Wraps the argument of a native method.
    ///
    /// # Safety
    /// `raw` is null or an object of the class, and is reachable as long as the result lives.
    #[inline(always)]
    pub(super) unsafe fn new(raw: jobject) -> NativeStatus {
        NativeStatus(raw)
    }

    /// Sets the field; does nothing for a null argument.
    #[inline(always)]
    pub(crate) fn set(self, env: &mut Env, detail: i64) {
        if self.0.is_null() {
            return;
        }
        let mut field = DETAIL.load(Ordering::Acquire);
        if field.is_null() {
            field = find_detail(env);
        }
        if !field.is_null() {
            // SAFETY: `Native` passes an object of the class that the field was looked up in.
            unsafe { ((**env.raw).v1_1.SetLongField)(env.raw, self.0, field, detail) }
        }
    }
}

/// Looks up the field. Null with a pending exception if the classes of `mpjdev.core` are of another version.
#[cold]
#[inline(never)]
fn find_detail(env: &mut Env) -> sys::jfieldID {
    // SAFETY: the environment is the calling thread's; the names are those of the class beside `Native`.
    let field = unsafe {
        let functions = &(**env.raw).v1_1;
        let class = (functions.FindClass)(env.raw, c"mpjdev/core/NativeStatus".as_ptr());
        if class.is_null() {
            return std::ptr::null_mut();
        }
        let field = (functions.GetFieldID)(env.raw, class, c"detail".as_ptr(), c"J".as_ptr());
        (functions.DeleteLocalRef)(env.raw, class);
        field
    };
    DETAIL.store(field, Ordering::Release);
    field
}
