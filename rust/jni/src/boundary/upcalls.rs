//! Upcalls from native code to Java: the check whether a wait continues, the function of a reduction, and the
//! reclaim of memory.
//!
//! An upcall may throw: it needs more stack than the native call had, and heap. Its exception is taken off
//! the thread at once, since no JNI function may be called while one is pending. [`guard`](super::guard)
//! throws it again at the end when the native call has ended because of it.

use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

use jni::sys;

use super::env::Env;
use super::value::{Argument, RawCombiner};
use crate::error::{Failure, Fault};

/// The result of an upcall.
enum Answer {
    Yes,
    No,
    /// Its exception.
    Threw(sys::jthrowable),
}

impl Env {
    /// Whether a wait continues: the calling thread was not interrupted, and no upcall has thrown. The
    /// interrupt flag stays.
    pub(crate) fn may_wait(&mut self) -> bool {
        if !self.thrown.is_null() {
            return false;
        }
        match self.upcall(c"mpjdev/core/Native", c"isInterrupted") {
            Answer::No => true,
            Answer::Yes => false,
            Answer::Threw(exception) => {
                self.thrown = exception;
                false
            }
        }
    }

    /// Calls a static method of a class beside `Native`. No exception is pending afterwards.
    ///
    /// It uses the raw functions, for the reason in [`throw_named`](super::throw_named). The reference to the
    /// class is released, since a wait calls this repeatedly.
    fn upcall(&mut self, class: &CStr, method: &CStr) -> Answer {
        // SAFETY: the environment is the calling thread's; no function but `ExceptionOccurred` is called
        // while an exception is pending; the method is static, has no arguments and returns a boolean.
        unsafe {
            let functions = &**self.raw;
            if let Some(exception) = self.take_pending() {
                return Answer::Threw(exception);
            }
            let class = (functions.v1_1.FindClass)(self.raw, class.as_ptr());
            let mut answer = false;
            if !class.is_null() {
                let id =
                    (functions.v1_1.GetStaticMethodID)(self.raw, class, method.as_ptr(), c"()Z".as_ptr());
                answer = !id.is_null()
                    && (functions.v1_1.CallStaticBooleanMethodA)(self.raw, class, id, std::ptr::null());
            }
            let thrown = self.take_pending();
            (functions.v1_1.DeleteLocalRef)(self.raw, class);
            match thrown {
                Some(exception) => Answer::Threw(exception),
                None if answer => Answer::Yes,
                None => Answer::No,
            }
        }
    }

    /// Lets a combiner combine the vectors in its arrays; false if it has thrown.
    pub(crate) fn combine(&mut self, combiner: &mut Combiner) -> bool {
        // SAFETY: the environment is the calling thread's; the object is one of `mpjdev.core.Combiner`, whose
        // method has no arguments and no result. After a call that may have thrown, the exception is taken
        // before any other function is called.
        let thrown = unsafe {
            let functions = &**self.raw;
            let class = (functions.v1_1.GetObjectClass)(self.raw, combiner.object);
            let id = (functions.v1_1.GetMethodID)(self.raw, class, c"combine".as_ptr(), c"()V".as_ptr());
            if !id.is_null() {
                (functions.v1_1.CallVoidMethodA)(self.raw, combiner.object, id, std::ptr::null());
            }
            let thrown = self.take_pending();
            (functions.v1_1.DeleteLocalRef)(self.raw, class);
            thrown
        };
        let is_combined = thrown.is_none();
        combiner.thrown = thrown.or(combiner.thrown);
        is_combined
    }

    /// Makes the exception of a combiner the reason of the call's failure.
    pub(crate) fn adopt_exception(&mut self, combiner: &Combiner) {
        if let Some(thrown) = combiner.thrown {
            self.thrown = thrown;
        }
    }

    /// Takes the pending exception off the thread.
    pub(super) fn take_pending(&mut self) -> Option<sys::jthrowable> {
        // SAFETY: the environment is the calling thread's; both functions may be called while an exception is
        // pending.
        unsafe {
            let functions = &(**self.raw).v1_1;
            let exception = (functions.ExceptionOccurred)(self.raw);
            if exception.is_null() {
                return None;
            }
            (functions.ExceptionClear)(self.raw);
            Some(exception)
        }
    }

    /// Throws the exception of an upcall; false when there is none.
    pub(super) fn throw_again(&self) -> bool {
        // SAFETY: the environment is the calling thread's, and the reference one of this call.
        !self.thrown.is_null() && unsafe { ((**self.raw).v1_1.Throw)(self.raw, self.thrown) == sys::JNI_OK }
    }
}

/// An object of `mpjdev.core.Combiner`: the function of a reduction in Java.
#[derive(Debug)]
pub(crate) struct Combiner {
    object: sys::jobject,
    /// Its exception. The call continues to wait, since the other ranks need its messages.
    thrown: Option<sys::jthrowable>,
}

impl Argument<RawCombiner> for Combiner {
    unsafe fn from_raw(_: &mut Env, raw: RawCombiner) -> Result<Combiner, Failure> {
        if raw.0.is_null() {
            return Err(Fault::Null { name: "combiner" }.into());
        }
        Ok(Combiner { object: raw.0, thrown: None })
    }
}

/// The JVM, set when the library is loaded.
static VM: AtomicPtr<sys::JavaVM> = AtomicPtr::new(std::ptr::null_mut());

/// Stores the JVM for [`reclaim`].
pub(super) fn find_vm(env: &mut Env) {
    let mut vm = std::ptr::null_mut();
    // SAFETY: the environment is the calling thread's.
    if unsafe { ((**env.raw).v1_1.GetJavaVM)(env.raw, &raw mut vm) } == sys::JNI_OK {
        VM.store(vm, Ordering::Release);
    }
}

/// Asks Java to collect garbage, whose buffers then release their memory, and waits a little. If Java throws,
/// nothing was reclaimed: the refusal that follows states how much memory there is.
pub(crate) fn reclaim() {
    ask(c"reclaimMemory");
}

/// Asks Java to collect garbage for descriptors: unreachable files and sockets are closed.
pub(crate) fn make_room() {
    ask(c"reclaimDescriptors");
}

fn ask(method: &CStr) {
    let vm = VM.load(Ordering::Acquire);
    if vm.is_null() {
        return;
    }
    let mut raw = std::ptr::null_mut();
    // SAFETY: the JVM that has loaded this library; it does not end before it.
    let found = unsafe { ((**vm).v1_2.GetEnv)(vm, &raw mut raw, sys::JNI_VERSION_1_8) };
    // A thread that is not Java's cannot make an upcall.
    if found == sys::JNI_OK {
        // SAFETY: the JVM has just named it the environment of this thread.
        let mut env = unsafe { Env::new(raw.cast()) };
        if let Answer::Threw(exception) = env.upcall(c"mpjdev/core/Upcalls", method) {
            // SAFETY: the environment is the calling thread's, and the reference one of this call.
            unsafe { ((**env.raw).v1_1.DeleteLocalRef)(env.raw, exception) };
        }
    }
}
