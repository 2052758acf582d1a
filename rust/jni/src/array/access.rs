//! Access to the Java heap: copies of a region, and critical holds of an array for the length of a loop.

use jni::sys::{self, JNI_ABORT, jobject};
use mpjdev_buffer::Type;

use crate::boundary::Env;
use crate::error::{Failure, Fault};

/// The access to an array while it is held.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Its elements are read.
    Read,
    /// Its elements are written.
    Write,
}

/// An array, and an index array if there is one, held critically: the collector waits until this is dropped.
pub(super) struct Critical<'a> {
    env: &'a mut Env,
    raw: jobject,
    index_raw: jobject,
    /// Address of the elements.
    pub(super) start: *mut u8,
    /// Address of the indices; null without an index array.
    pub(super) indices: *const i32,
    access: Access,
}

impl<'a> Critical<'a> {
    /// Holds an array, and an index array unless that is null.
    ///
    /// # Errors
    /// The JVM has no memory for a copy.
    #[inline(always)]
    pub(super) fn hold(
        env: &'a mut Env,
        raw: jobject,
        index_raw: jobject,
        access: Access,
    ) -> Result<Self, Failure> {
        let start = pin(env, raw);
        if start.is_null() {
            return Err(Fault::Pending.into());
        }
        let mut held =
            Critical { env, raw, index_raw: std::ptr::null_mut(), start, indices: std::ptr::null(), access };
        if !index_raw.is_null() {
            let indices = pin(held.env, index_raw);
            if indices.is_null() {
                return Err(Fault::Pending.into());
            }
            held.index_raw = index_raw;
            held.indices = indices.cast_const().cast();
        }
        Ok(held)
    }
}

/// The address of an array's elements; null when there is no memory for a copy.
#[inline(always)]
fn pin(env: &mut Env, raw: jobject) -> *mut u8 {
    // SAFETY: the environment is this thread's and the array is reachable. Until it is released there is no
    // JNI call but the pinning of a second array, which the specification allows.
    unsafe { ((**env.raw()).v1_2.GetPrimitiveArrayCritical)(env.raw(), raw, std::ptr::null_mut()).cast() }
}

/// Releases an array.
#[inline(always)]
fn unpin(env: &mut Env, raw: jobject, start: *mut u8, access: Access) {
    let mode = if access == Access::Read { JNI_ABORT } else { 0 };
    // SAFETY: the very address that was handed out.
    unsafe { ((**env.raw()).v1_2.ReleasePrimitiveArrayCritical)(env.raw(), raw, start.cast(), mode) }
}

impl Drop for Critical<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.index_raw.is_null() {
            unpin(self.env, self.index_raw, self.indices.cast_mut().cast(), Access::Read);
        }
        unpin(self.env, self.raw, self.start, self.access);
    }
}

macro_rules! regions {
    ($name:ident, $to:ident, ($($pointer:tt)*) $(, $type:ident => $function:ident)*) => {
        /// Copies a region by the function of the array's type.
        ///
        /// # Safety
        /// The region is inside the array, which is of this type, and the address is good for it.
        #[inline(always)]
        pub(super) unsafe fn $name(env: &mut Env, raw: jobject, element: Type, off: usize, count: usize, $to: $($pointer)* u8) {
            let env = env.raw();
            let (off, count) = (off as sys::jsize, count as sys::jsize);
            // SAFETY: passed on.
            unsafe {
                match element {
                    $(Type::$type => ((**env).v1_1.$function)(env, raw, off, count, $to.cast()),)*
                    Type::Object => unreachable!("object arrays are never copied"),
                }
            }
        }
    };
}

regions! { get_region, to, (*mut),
Byte => GetByteArrayRegion, Char => GetCharArrayRegion, Short => GetShortArrayRegion,
Boolean => GetBooleanArrayRegion, Int => GetIntArrayRegion, Long => GetLongArrayRegion,
Float => GetFloatArrayRegion, Double => GetDoubleArrayRegion }

regions! { set_region, from, (*const),
Byte => SetByteArrayRegion, Char => SetCharArrayRegion, Short => SetShortArrayRegion,
Boolean => SetBooleanArrayRegion, Int => SetIntArrayRegion, Long => SetLongArrayRegion,
Float => SetFloatArrayRegion, Double => SetDoubleArrayRegion }
