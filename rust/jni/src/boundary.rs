//! The boundary to Java: the macro of the exported shells, one panic boundary, the only place that throws.
//!
//! A shell converts the raw arguments to types that its body can use without unsafe code. It calls the body
//! inside the panic boundary, and throws the body's failure. `natives!` writes the shells together with a
//! table of their Java signatures; a JUnit test compares that table with the methods that
//! `mpjdev.core.Native` declares.
//!
//! All methods use this path, not only the hot ones, because a call takes less time than through the jni
//! crate (decision 0004). Exceptions and upcalls use the raw functions as well ([`throw_named`] has the
//! reason); the crate's typed calls convert texts.

mod env;
mod objects;
mod upcalls;
mod value;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use jni::strings::{JNIStr, JNIString};

use crate::error::{Failure, JavaClass};

pub(crate) use env::{DirectView, Env, NativeStatus};
pub(crate) use objects::ObjectArray;
pub(crate) use upcalls::{Combiner, make_room, reclaim};
pub(crate) use value::{
    Answer, Argument, RawArray, RawBounced, RawCombiner, RawDirect, RawInts, RawObjects, RawStatus, RawText,
};

/// Prepares the boundary when Java loads the library.
pub(crate) fn load(env: &mut Env) {
    quiet_panics();
    upcalls::find_vm(env);
}

/// Runs a body; a failure or a panic becomes the pending Java exception.
#[inline(always)]
pub(crate) fn guard<R: Answer>(mut env: Env, body: impl FnOnce(&mut Env) -> Result<R, Failure>) -> R::Raw {
    match catch_unwind(AssertUnwindSafe(|| body(&mut env).map(|r| r.raw(&env)))) {
        Ok(Ok(raw)) => raw,
        Ok(Err(failure)) => raise(&env, &failure),
        Err(panic) => raise_panic(&env, &*panic),
    }
}

#[cold]
#[inline(never)]
fn raise<R: Default>(env: &Env, failure: &Failure) -> R {
    // If the call has ended because of an exception of an upcall, that exception is the reason. Any other
    // failure has its own.
    if failure.is_of_upcall() && env.throw_again() {
        return R::default();
    }
    throw(env, failure.java_class(), &failure.to_string());
    R::default()
}

/// Raises a panic, which is a bug of this library, as an `Error` with its text. Java continues.
#[cold]
#[inline(never)]
fn raise_panic<R: Default>(env: &Env, panic: &(dyn Any + Send)) -> R {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a text");
    throw_named(env, jni::jni_str!("mpjdev/core/NativePanic"), &format!("internal error: {text}"));
    R::default()
}

fn throw(env: &Env, class: JavaClass, text: &str) {
    let name = match class {
        JavaClass::ArrayIndex => jni::jni_str!("java/lang/ArrayIndexOutOfBoundsException"),
        JavaClass::IllegalArgument => jni::jni_str!("java/lang/IllegalArgumentException"),
        JavaClass::IllegalState => jni::jni_str!("java/lang/IllegalStateException"),
        JavaClass::NullPointer => jni::jni_str!("java/lang/NullPointerException"),
        JavaClass::OutOfMemory => jni::jni_str!("java/lang/OutOfMemoryError"),
        JavaClass::UnsupportedOperation => jni::jni_str!("java/lang/UnsupportedOperationException"),
        // `NativeFailure(String)` parses the code: without a constructor call, an exception can carry a text
        // only.
        JavaClass::Coded(code, rank) => {
            let coded = format!("{code} {rank} {text}");
            return throw_named(env, jni::jni_str!("mpjdev/core/NativeFailure"), &coded);
        }
    };
    throw_named(env, name, text);
}

/// Stores the exception of a failure in an array of objects; null if Java has no memory for it.
#[cold]
pub(crate) fn put_exception(env: &mut Env, objects: &ObjectArray, at: usize, failure: &Failure) {
    throw(env, failure.java_class(), &failure.to_string());
    let exception = env.take_pending().unwrap_or(std::ptr::null_mut());
    objects.store(env, at, exception);
    // SAFETY: the reference is one of this call, and is not used any more.
    unsafe { ((**env.raw).v1_1.DeleteLocalRef)(env.raw, exception) }
}

/// Throws by the raw functions. `FindClass` uses the loader of `Native`. The jni crate would use the thread's
/// context loader first, which may know another class of that name; the crate recurses without end if that
/// loader throws.
fn throw_named(env: &Env, class: &'static JNIStr, text: &str) {
    let text = JNIString::from(text);
    // SAFETY: the environment is the calling thread's, for the length of this call; both texts end in a zero.
    // No function but `ExceptionCheck` is called while an exception is pending: a class that is not found
    // leaves its own.
    unsafe {
        let functions = &(**env.raw).v1_2;
        if (functions.ExceptionCheck)(env.raw) {
            return;
        }
        let class = (functions.FindClass)(env.raw, class.as_ptr());
        if !class.is_null() {
            (functions.ThrowNew)(env.raw, class, text.as_ptr());
        }
    }
}

/// Keeps the panic hook from printing: the text travels in the Java `Error`.
fn quiet_panics() {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            // Threads of the engine have no Java frame that could show the text.
            if std::thread::current().name().is_some_and(|name| name.starts_with("mpjdev")) {
                before(info);
            }
        }));
    });
}

/// The Java signature of one argument.
macro_rules! signature {
    (array) => {
        "Ljava/lang/Object;II"
    };
    (bounced) => {
        "JII"
    };
    (ints) => {
        "[II"
    };
    (bytes) => {
        "[BI"
    };
    (longs) => {
        "[JI"
    };
    (objects) => {
        "[Ljava/lang/Object;I"
    };
    (direct) => {
        "Ljava/nio/ByteBuffer;"
    };
    (view) => {
        "Ljava/nio/ByteBuffer;"
    };
    (status) => {
        "Lmpjdev/core/NativeStatus;"
    };
    (combiner) => {
        "Lmpjdev/core/Combiner;"
    };
    (string) => {
        "Ljava/lang/String;"
    };
    (int) => {
        "I"
    };
    (long) => {
        "J"
    };
    (bool) => {
        "Z"
    };
    (text) => {
        "Ljava/lang/String;"
    };
    (void) => {
        "V"
    };
}

/// Writes one exported shell. A Java array is three raw arguments (array, length, type), int and byte arrays
/// two. The body's parameter decides which type a raw argument is converted to.
macro_rules! shell {
    // All arguments are handled: emit.
    (@ $symbol:ident $call:tt $body:path, $ret:ty, [$($raw:ident: $rawty:ty,)*] [$($name:ident = $value:expr,)*] []) => {
        // SAFETY: the JVM looks up this name; nothing else in this library has it.
        #[allow(unsafe_code, reason = "written by the boundary's macro")]
        #[unsafe(no_mangle)]
        extern "system" fn $symbol(
            env: *mut ::jni::sys::JNIEnv, _: ::jni::sys::jclass, $($raw: $rawty),*
        ) -> <$ret as $crate::boundary::Answer>::Raw {
            // SAFETY: the JVM passes the environment of the calling thread.
            let env = unsafe { $crate::boundary::Env::new(env) };
            $crate::boundary::counted!($call $crate::boundary::guard(env, #[inline(always)] |env| {
                // SAFETY: Java calls this method through `Native` alone, which passes an array's own length
                // and element type, and keeps objects reachable during the call.
                $(let $name = unsafe { $crate::boundary::Argument::from_raw(env, $value)? };)*
                $body(env, $($name),*)
            }))
        }
    };
    (@ $symbol:ident $call:tt $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident/$b:ident/$t:ident: array, $($rest:tt)*]) => {
        $crate::boundary::shell! { @ $symbol $call $body, $ret,
            [$($r)* $a: ::jni::sys::jobject, $b: ::jni::sys::jint, $t: ::jni::sys::jint,]
            [$($c)* $a = $crate::boundary::RawArray($a, $b, $t),] [$($rest)*] }
    };
    (@ $symbol:ident $call:tt $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident/$b:ident/$t:ident: bounced, $($rest:tt)*]) => {
        $crate::boundary::shell! { @ $symbol $call $body, $ret,
            [$($r)* $a: ::jni::sys::jlong, $b: ::jni::sys::jint, $t: ::jni::sys::jint,]
            [$($c)* $a = $crate::boundary::RawBounced($a, $b, $t),] [$($rest)*] }
    };
    (@ $symbol:ident $call:tt $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident/$b:ident: bytes, $($rest:tt)*]) => {
        $crate::boundary::shell! { @ $symbol $call $body, $ret, [$($r)* $a: ::jni::sys::jobject, $b: ::jni::sys::jint,]
            [$($c)* $a = $crate::boundary::RawArray($a, $b, 0),] [$($rest)*] }
    };
    (@ $symbol:ident $call:tt $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident/$b:ident: longs, $($rest:tt)*]) => {
        $crate::boundary::shell! { @ $symbol $call $body, $ret, [$($r)* $a: ::jni::sys::jobject, $b: ::jni::sys::jint,]
            [$($c)* $a = $crate::boundary::RawArray($a, $b, 5),] [$($rest)*] }
    };
    (@ $symbol:ident $call:tt $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident/$b:ident: ints, $($rest:tt)*]) => {
        $crate::boundary::shell! { @ $symbol $call $body, $ret, [$($r)* $a: ::jni::sys::jobject, $b: ::jni::sys::jint,]
            [$($c)* $a = $crate::boundary::RawInts($a, $b),] [$($rest)*] }
    };
    (@ $symbol:ident $call:tt $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident/$b:ident: objects, $($rest:tt)*]) => {
        $crate::boundary::shell! { @ $symbol $call $body, $ret, [$($r)* $a: ::jni::sys::jobject, $b: ::jni::sys::jint,]
            [$($c)* $a = $crate::boundary::RawObjects($a, $b),] [$($rest)*] }
    };
    (@ $symbol:ident $call:tt $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident: status, $($rest:tt)*]) => {
        $crate::boundary::shell! { @ $symbol $call $body, $ret, [$($r)* $a: ::jni::sys::jobject,]
            [$($c)* $a = $crate::boundary::RawStatus($a),] [$($rest)*] }
    };
    (@ $symbol:ident $call:tt $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident: combiner, $($rest:tt)*]) => {
        $crate::boundary::shell! { @ $symbol $call $body, $ret, [$($r)* $a: ::jni::sys::jobject,]
            [$($c)* $a = $crate::boundary::RawCombiner($a),] [$($rest)*] }
    };
    (@ $symbol:ident $call:tt $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident: string, $($rest:tt)*]) => {
        $crate::boundary::shell! { @ $symbol $call $body, $ret, [$($r)* $a: ::jni::sys::jstring,]
            [$($c)* $a = $crate::boundary::RawText($a),] [$($rest)*] }
    };
    (@ $symbol:ident $call:tt $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident: direct, $($rest:tt)*]) => {
        $crate::boundary::shell! { @ $symbol $call $body, $ret, [$($r)* $a: ::jni::sys::jobject,]
            [$($c)* $a = $crate::boundary::RawDirect($a),] [$($rest)*] }
    };
    (@ $symbol:ident $call:tt $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident: $kind:ident, $($rest:tt)*]) => {
        $crate::boundary::shell! { @ $symbol $call $body, $ret, [$($r)* $a: $crate::boundary::rust_type!($kind),]
            [$($c)* $a = $a,] [$($rest)*] }
    };
}

/// Runs a method as a call of the profile, if it is one.
macro_rules! counted {
    ([] $method:expr) => {
        $method
    };
    ([$call:expr] $method:expr) => {{
        let span = ::mpjdev_profile::Span::begin($call);
        let raw = $method;
        span.end();
        raw
    }};
}

/// The Rust type of a number or a result.
macro_rules! rust_type {
    (void) => {
        ()
    };
    (int) => {
        i32
    };
    (long) => {
        i64
    };
    (bool) => {
        bool
    };
    (text) => {
        String
    };
    (view) => {
        $crate::boundary::DirectView
    };
}

/// Writes the shells of the native methods, and `TABLE` of their signatures. A method that is a call of a
/// program says which one after `as`, in terms of its raw arguments.
macro_rules! natives {
    ($( $name:literal $symbol:ident = $body:path $(as $call:expr)?, ($($arg:ident $(/ $more:ident)*: $kind:ident),*) -> $ret:ident; )*) => {
        $(
            $crate::boundary::shell! {
                @ $symbol [$($call)?] $body, $crate::boundary::rust_type!($ret), [] [] [$($arg $(/ $more)*: $kind,)*]
            }
        )*

        /// `name(signature)result` of every native method, one per line.
        const TABLE: &str = concat!($(
            $name, "(", $($crate::boundary::signature!($kind),)* ")", $crate::boundary::signature!($ret), "\n"
        ),*);
    };
}

pub(crate) use {counted, natives, rust_type, shell, signature};
