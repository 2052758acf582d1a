//! Arguments and results of native methods: from the raw values that Java passes, and back.

use jni::EnvUnowned;
use jni::objects::JString;
use jni::sys::{jint, jlong, jobject, jstring};

use super::env::{DirectView, Env, NativeStatus};
use crate::error::{Failure, Fault};

/// An argument as the body of a native method takes it.
pub(crate) trait Argument<Raw>: Sized {
    /// Converts the raw argument.
    ///
    /// # Safety
    /// `raw` is what `mpjdev.core.Native` passes for an argument of this kind, and what it refers to is
    /// reachable as long as the result lives.
    ///
    /// # Errors
    /// Null where an object is required, or an object that the call cannot use.
    unsafe fn from_raw(env: &mut Env, raw: Raw) -> Result<Self, Failure>;
}

/// A primitive array with its own length and the code of its own element type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawArray(pub(crate) jobject, pub(crate) jint, pub(crate) jint);

/// Elements in the bounce buffer of the calling thread: its address, their number and the code of their type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawBounced(pub(crate) jlong, pub(crate) jint, pub(crate) jint);

/// An int array with its own length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawInts(pub(crate) jobject, pub(crate) jint);

/// An array of objects with its own length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawObjects(pub(crate) jobject, pub(crate) jint);

/// A direct buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawDirect(pub(crate) jobject);

/// An object of `mpjdev.core.NativeStatus`, or null.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawStatus(pub(crate) jobject);

/// An object of `mpjdev.core.Combiner`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawCombiner(pub(crate) jobject);

/// A text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawText(pub(crate) jstring);

macro_rules! number {
    ($($number:ty),*) => { $(
        impl Argument<$number> for $number {
            #[inline(always)]
            unsafe fn from_raw(_: &mut Env, raw: $number) -> Result<$number, Failure> {
                Ok(raw)
            }
        }
    )* };
}

number! { i32, i64, bool }

impl Argument<RawStatus> for NativeStatus {
    #[inline(always)]
    unsafe fn from_raw(_: &mut Env, raw: RawStatus) -> Result<NativeStatus, Failure> {
        // SAFETY: passed on.
        Ok(unsafe { NativeStatus::new(raw.0) })
    }
}

impl Argument<RawText> for String {
    unsafe fn from_raw(env: &mut Env, raw: RawText) -> Result<String, Failure> {
        if raw.0.is_null() {
            return Err(Fault::Null { name: "text" }.into());
        }
        // SAFETY: the environment is the calling thread's; `raw` is a string of this call.
        let mut unowned = unsafe { EnvUnowned::from_raw(env.raw) };
        let read = unowned.with_env_no_catch(|env| -> jni::errors::Result<String> {
            // SAFETY: as above.
            let string = unsafe { JString::from_raw(env, raw.0) };
            string.try_to_string(env)
        });
        match read.into_outcome() {
            jni::Outcome::Ok(text) => Ok(text),
            _ => Err(Fault::Pending.into()),
        }
    }
}

/// The result of a body, as the raw value that Java takes.
pub(crate) trait Answer {
    type Raw: Default;
    fn raw(self, env: &Env) -> Self::Raw;
}

macro_rules! answer {
    ($($rust:ty => $raw:ty),*) => { $(
        impl Answer for $rust {
            type Raw = $raw;
            #[inline(always)]
            fn raw(self, _: &Env) -> $raw {
                self
            }
        }
    )* };
}

answer! { () => (), i32 => jint, i64 => jlong, bool => bool, DirectView => DirectView }

/// A reference for Java that is null by default.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Text(jstring);

impl Default for Text {
    fn default() -> Self {
        Text(std::ptr::null_mut())
    }
}

impl Answer for String {
    type Raw = Text;
    fn raw(self, env: &Env) -> Text {
        // SAFETY: the environment is the calling thread's, for the length of this call.
        let mut unowned = unsafe { EnvUnowned::from_raw(env.raw) };
        let made =
            unowned.with_env(|env| -> jni::errors::Result<jstring> { Ok(env.new_string(self)?.into_raw()) });
        match made.into_outcome() {
            jni::Outcome::Ok(text) => Text(text),
            _ => Text::default(),
        }
    }
}
