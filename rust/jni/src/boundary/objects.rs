//! An array of objects that a call takes arrays from, and stores exceptions in.

use jni::sys::{jobject, jsize};

use super::env::Env;
use super::value::{Argument, RawObjects};
use crate::error::{Failure, Fault};

/// An `Object[]` argument.
#[derive(Debug)]
pub(crate) struct ObjectArray {
    raw: jobject,
    len: usize,
}

impl Argument<RawObjects> for ObjectArray {
    /// Fails for null.
    #[inline(always)]
    unsafe fn from_raw(_: &mut Env, RawObjects(raw, length): RawObjects) -> Result<ObjectArray, Failure> {
        if raw.is_null() || length < 0 {
            return Err(Fault::Null { name: "array of objects" }.into());
        }
        Ok(ObjectArray { raw, len: length as usize })
    }
}

impl ObjectArray {
    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Uses the array of `length` elements at index `at`; `None` if there is none, or one of another length.
    ///
    /// # Panics
    /// The index is outside.
    #[inline(always)]
    pub(crate) fn with_array<R>(
        &self,
        env: &mut Env,
        at: usize,
        length: usize,
        f: impl FnOnce(&mut Env, jobject) -> R,
    ) -> Option<R> {
        assert!(at < self.len);
        // SAFETY: the environment is the calling thread's, and the index inside the array.
        let element = unsafe { ((**env.raw).v1_1.GetObjectArrayElement)(env.raw, self.raw, at as jsize) };
        if element.is_null() {
            return None;
        }
        // SAFETY: `Native` passes arrays of primitive types in these places.
        let found = unsafe { ((**env.raw).v1_1.GetArrayLength)(env.raw, element) };
        let result = (found as usize == length).then(|| f(env, element));
        // SAFETY: the reference is one of this call, and is not used any more.
        unsafe { ((**env.raw).v1_1.DeleteLocalRef)(env.raw, element) };
        result
    }

    /// Stores an object at index `at`.
    ///
    /// # Panics
    /// The index is outside.
    pub(super) fn store(&self, env: &mut Env, at: usize, object: jobject) {
        assert!(at < self.len);
        // SAFETY: no exception is pending; the index is inside the array, which takes any object.
        unsafe { ((**env.raw).v1_1.SetObjectArrayElement)(env.raw, self.raw, at as jsize, object) }
    }
}
