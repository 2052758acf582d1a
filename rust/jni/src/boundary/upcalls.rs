//! Calls from native code up to Java: whether a wait goes on, and how memory is reclaimed.
//!
//! An upcall may throw: it needs more stack than the native call had, and heap. Its exception is taken off the thread at
//! once, since no JNI function may be called while one is pending; [`guard`](super::guard) throws it again at the end when
//! the native call gave up because of it.

use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

use jni::sys;

use super::Env;

/// What an upcall has answered.
enum Answer {
    Yes,
    No,
    /// It could not answer: its exception.
    Threw(sys::jthrowable),
}

impl Env {
    /// Whether a wait goes on: the calling thread has not been interrupted, and no upcall has thrown. The interrupt flag stays.
    pub(crate) fn may_wait(&mut self) -> bool {
        if !self.thrown.is_null() {
            return false;
        }
        match self.upcall(c"isInterrupted") {
            Answer::No => true,
            Answer::Yes => false,
            Answer::Threw(exception) => {
                self.thrown = exception;
                false
            }
        }
    }

    /// Asks a method of `mpjdev.core.Upcalls`. No exception is pending afterwards.
    ///
    /// By the raw functions, for the reason that [`throw_named`](super::throw_named) has. The reference to the class is given
    /// back, since a wait asks again and again.
    fn upcall(&mut self, method: &CStr) -> Answer {
        // SAFETY: the environment is the calling thread's; no function but `ExceptionOccurred` is called while an exception is
        // pending; the method is static, takes nothing and gives a boolean.
        unsafe {
            let functions = &**self.raw;
            if let Some(exception) = self.take_pending() {
                return Answer::Threw(exception);
            }
            let class = (functions.v1_1.FindClass)(self.raw, c"mpjdev/core/Upcalls".as_ptr());
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

    /// Takes the pending exception off the thread.
    fn take_pending(&mut self) -> Option<sys::jthrowable> {
        // SAFETY: the environment is the calling thread's; both functions may be called while an exception is pending.
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

    /// Throws what an upcall has thrown; false when none has.
    pub(super) fn throw_again(&self) -> bool {
        // SAFETY: the environment is the calling thread's, and the reference one of this call.
        !self.thrown.is_null() && unsafe { ((**self.raw).v1_1.Throw)(self.raw, self.thrown) == sys::JNI_OK }
    }
}

/// The JVM, from when the library is loaded.
static VM: AtomicPtr<sys::JavaVM> = AtomicPtr::new(std::ptr::null_mut());

/// Notes the JVM for [`reclaim`].
pub(super) fn find_vm(env: &mut Env) {
    let mut vm = std::ptr::null_mut();
    // SAFETY: the environment is the calling thread's.
    if unsafe { ((**env.raw).v1_1.GetJavaVM)(env.raw, &raw mut vm) } == sys::JNI_OK {
        VM.store(vm, Ordering::Release);
    }
}

/// Asks Java to collect garbage, whose buffers then give their memory back, and waits a little. When Java throws instead,
/// nothing was reclaimed: what is refused then says how much memory there is.
pub(super) fn reclaim() {
    ask(c"reclaimMemory");
}

/// The same for descriptors: files and sockets that are garbage are closed.
pub(super) fn make_room() {
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
    // A thread that is not Java's has nobody to ask.
    if found == sys::JNI_OK {
        let mut env = Env::new(raw.cast());
        if let Answer::Threw(exception) = env.upcall(method) {
            // SAFETY: the environment is the calling thread's, and the reference one of this call.
            unsafe { ((**env.raw).v1_1.DeleteLocalRef)(env.raw, exception) };
        }
    }
}
