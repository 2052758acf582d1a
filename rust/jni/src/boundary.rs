//! The boundary to Java: exported shells, one panic boundary, and the only place that throws.
//!
//! A shell turns the raw arguments into types that its body can use without unsafe code, calls the body inside
//! the panic boundary, and throws what it fails with. `natives!` writes the shells together with a table of their
//! Java signatures; a JUnit test compares that table with the methods that `mpjdev.core.Native` declares.
//!
//! All methods go this way, not only the hot ones: one mechanism, 8 ns instead of the jni crate's 43, whose
//! typed calls serve the cold path that throws.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use jni::EnvUnowned;
use jni::strings::{JNIStr, JNIString};
use jni::sys::{self, jclass, jint, jlong, jobject, jstring};

use crate::array::{Array, Direct, IntArray};
use crate::error::{Failure, JavaClass};

/// Raised together with `Native.ABI` whenever a signature changes.
const ABI: i32 = 1;

/// The calling thread's Java environment, for the length of one call.
#[derive(Debug)]
pub(crate) struct Env(*mut sys::JNIEnv);

impl Env {
    /// The raw environment, for the array copies.
    #[inline(always)]
    pub(crate) fn raw(&self) -> *mut sys::JNIEnv {
        self.0
    }
}

/// What a body gives back, as the raw value that Java takes.
trait Answer {
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

answer! { () => (), i32 => jint, i64 => jlong, bool => bool }

/// A reference that Java may be given although it is null by default.
#[repr(transparent)]
struct Text(jstring);

impl Default for Text {
    fn default() -> Self {
        Text(std::ptr::null_mut())
    }
}

impl Answer for String {
    type Raw = Text;
    fn raw(self, env: &Env) -> Text {
        // SAFETY: the environment is the calling thread's, for the length of this call.
        let mut unowned = unsafe { EnvUnowned::from_raw(env.0) };
        let made =
            unowned.with_env(|env| -> jni::errors::Result<jstring> { Ok(env.new_string(self)?.into_raw()) });
        match made.into_outcome() {
            jni::Outcome::Ok(text) => Text(text),
            _ => Text::default(),
        }
    }
}

/// Runs a body; a failure or a panic becomes the pending Java exception.
#[inline(always)]
fn guard<R: Answer>(env: *mut sys::JNIEnv, body: impl FnOnce(&mut Env) -> Result<R, Failure>) -> R::Raw {
    let mut env = Env(env);
    match catch_unwind(AssertUnwindSafe(|| body(&mut env).map(|r| r.raw(&env)))) {
        Ok(Ok(raw)) => raw,
        Ok(Err(failure)) => raise(&env, &failure),
        Err(panic) => raise_panic(&env, &*panic),
    }
}

#[cold]
#[inline(never)]
fn raise<R: Default>(env: &Env, failure: &Failure) -> R {
    if let Some(class) = failure.java_class() {
        throw(env, class, &failure.to_string());
    }
    R::default()
}

/// A panic is a bug of ours: an `Error` with its text, and Java goes on.
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
        // `Failure(String)` takes the code apart; a text is all that can be thrown without a constructor call.
        JavaClass::Coded(code) => {
            let coded = format!("{code} {text}");
            return throw_named(env, jni::jni_str!("mpjdev/core/Failure"), &coded);
        }
    };
    throw_named(env, name, text);
}

fn throw_named(env: &Env, class: &'static JNIStr, text: &str) {
    // SAFETY: the environment is the calling thread's, for the length of this call.
    let mut unowned = unsafe { EnvUnowned::from_raw(env.0) };
    let outcome = unowned.with_env_no_catch(|env| -> jni::errors::Result<()> {
        if env.exception_check() {
            return Ok(());
        }
        env.throw_new(class, JNIString::from(text))
    });
    // Throwing answers "an exception is pending", which is what was wanted.
    let _ = outcome.into_outcome();
}

/// Keeps the panic hook from printing: the text travels in the Java `Error`.
fn quiet_panics() {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            // Threads of the engine have no Java frame that would show the text.
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
    (ints) => {
        "[II"
    };
    (bytes) => {
        "[BI"
    };
    (direct) => {
        "Ljava/nio/ByteBuffer;"
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

/// Writes one exported shell. A Java array is three raw arguments (array, length, type), int and byte arrays two.
macro_rules! shell {
    // All arguments are taken: emit.
    (@ $symbol:ident $body:path, $ret:ty, [$($raw:ident: $rawty:ty,)*] [$($name:ident = $value:expr,)*] []) => {
        // SAFETY: the name is what the JVM looks for; nothing else in this library has it.
        #[unsafe(no_mangle)]
        extern "system" fn $symbol(env: *mut sys::JNIEnv, _: jclass, $($raw: $rawty),*) -> <$ret as Answer>::Raw {
            guard(env, #[inline(always)] |env| {
                $(let $name = $value(env)?;)*
                $body(env, $($name),*)
            })
        }
    };
    (@ $symbol:ident $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident/$b:ident/$t:ident: array, $($rest:tt)*]) => {
        shell! { @ $symbol $body, $ret, [$($r)* $a: jobject, $b: jint, $t: jint,]
            [$($c)* $a = (|_: &mut Env| array($a, $b, $t)),] [$($rest)*] }
    };
    (@ $symbol:ident $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident/$b:ident: bytes, $($rest:tt)*]) => {
        shell! { @ $symbol $body, $ret, [$($r)* $a: jobject, $b: jint,]
            [$($c)* $a = (|_: &mut Env| array($a, $b, 0)),] [$($rest)*] }
    };
    (@ $symbol:ident $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident/$b:ident: ints, $($rest:tt)*]) => {
        shell! { @ $symbol $body, $ret, [$($r)* $a: jobject, $b: jint,]
            [$($c)* $a = (|_: &mut Env| ints($a, $b)),] [$($rest)*] }
    };
    (@ $symbol:ident $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident: direct, $($rest:tt)*]) => {
        shell! { @ $symbol $body, $ret, [$($r)* $a: jobject,]
            [$($c)* $a = (|env: &mut Env| direct(env, $a)),] [$($rest)*] }
    };
    (@ $symbol:ident $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident: $kind:ident, $($rest:tt)*]) => {
        shell! { @ $symbol $body, $ret, [$($r)* $a: rust_type!($kind),]
            [$($c)* $a = (|_: &mut Env| Ok::<_, Failure>($a)),] [$($rest)*] }
    };
}

/// An array argument.
#[inline(always)]
fn array(raw: jobject, length: jint, element: jint) -> Result<Array, Failure> {
    // SAFETY: `Native` is called with an array, its own length and its own element type.
    unsafe { Array::new(raw, length, element) }
}

/// An int array argument.
#[inline(always)]
fn ints(raw: jobject, length: jint) -> Result<IntArray, Failure> {
    // SAFETY: `Native` is called with an int array and its own length.
    unsafe { IntArray::new(raw, length) }
}

/// A direct buffer argument.
fn direct(env: &mut Env, raw: jobject) -> Result<Direct, Failure> {
    // SAFETY: `Native` is called with a buffer that is kept reachable during the call.
    unsafe { Direct::new(env, raw) }
}

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
}

macro_rules! natives {
    ($( $name:literal $symbol:ident = $body:path, ($($arg:ident $(/ $more:ident)*: $kind:ident),*) -> $ret:ident; )*) => {
        $( shell! { @ $symbol $body, rust_type!($ret), [] [] [$($arg $(/ $more)*: $kind,)*] } )*

        /// `name(signature)result` of every native method, one a line.
        const TABLE: &str = concat!($( $name, "(", $(signature!($kind),)* ")", signature!($ret), "\n" ),*);
    };
}

natives! {
    "abi" Java_mpjdev_core_Native_abi = abi, () -> int;
    "table" Java_mpjdev_core_Native_table = table, () -> text;
    "newWriter" Java_mpjdev_core_Native_newWriter = crate::buffer::new_writer, (capacity: int, order: int) -> long;
    "newReader" Java_mpjdev_core_Native_newReader = crate::buffer::new_reader, (capacity: int) -> long;
    "close" Java_mpjdev_core_Native_close = crate::buffer::close, (handle: long) -> void;
    "capacity" Java_mpjdev_core_Native_capacity = crate::buffer::capacity, (handle: long) -> int;
    "ensureCapacity" Java_mpjdev_core_Native_ensureCapacity = crate::buffer::ensure_capacity, (handle: long, capacity: int) -> void;
    "restoreCapacity" Java_mpjdev_core_Native_restoreCapacity = crate::buffer::restore_capacity, (handle: long) -> void;
    "sectionCapacity" Java_mpjdev_core_Native_sectionCapacity = crate::buffer::section_capacity, (element: int, count: int) -> long;
    "gather" Java_mpjdev_core_Native_gather = crate::buffer::gather,
        (handle: long, array/length/element: array, base: int, count: int, offs: int, indexes/ints: ints, flags: int) -> void;
    "scatter" Java_mpjdev_core_Native_scatter = crate::buffer::scatter,
        (handle: long, array/length/element: array, base: int, count: int, offs: int, indexes/ints: ints, flags: int) -> void;
    "strGather" Java_mpjdev_core_Native_strGather = crate::buffer::str_gather,
        (handle: long, array/length/element: array, off: int, rank: int, exts: int, strs: int, indexes/ints: ints, flags: int) -> void;
    "strScatter" Java_mpjdev_core_Native_strScatter = crate::buffer::str_scatter,
        (handle: long, array/length/element: array, off: int, rank: int, exts: int, strs: int, indexes/ints: ints, flags: int) -> void;
    "writeDirect" Java_mpjdev_core_Native_writeDirect = crate::buffer::write_direct,
        (handle: long, source: direct, off: long, element: int, count: int, flags: int) -> void;
    "readDirect" Java_mpjdev_core_Native_readDirect = crate::buffer::read_direct,
        (handle: long, dest: direct, off: long, element: int, count: int, flags: int) -> void;
    "beginObjects" Java_mpjdev_core_Native_beginObjects = crate::buffer::begin_objects, (handle: long, flags: int) -> long;
    "writeObjects" Java_mpjdev_core_Native_writeObjects = crate::buffer::write_objects, (handle: long, count: int, flags: int) -> void;
    "readObjects" Java_mpjdev_core_Native_readObjects = crate::buffer::read_objects, (handle: long, count: int, flags: int) -> void;
    "checkObjects" Java_mpjdev_core_Native_checkObjects = crate::buffer::check_objects, (handle: long, count: int, flags: int) -> void;
    "appendSecondary" Java_mpjdev_core_Native_appendSecondary = crate::buffer::append_secondary,
        (handle: long, chunk/length: bytes, off: int, count: int) -> void;
    "truncateSecondary" Java_mpjdev_core_Native_truncateSecondary = crate::buffer::truncate_secondary, (handle: long, len: long) -> void;
    "readSecondary" Java_mpjdev_core_Native_readSecondary = crate::buffer::read_secondary,
        (handle: long, at: long, chunk/length: bytes, off: int, count: int) -> int;
    "secondaryLength" Java_mpjdev_core_Native_secondaryLength = crate::buffer::secondary_len, (handle: long, flags: int) -> long;
    "logicalLength" Java_mpjdev_core_Native_logicalLength = crate::buffer::logical_len, (handle: long, flags: int) -> long;
    "copyLogical" Java_mpjdev_core_Native_copyLogical = crate::buffer::copy_logical, (handle: long, dest/length: bytes, flags: int) -> void;
    "load" Java_mpjdev_core_Native_load = crate::buffer::load, (handle: long, source/length: bytes) -> void;
    "peek" Java_mpjdev_core_Native_peek = crate::buffer::peek, (handle: long, flags: int) -> long;
    "sectionCount" Java_mpjdev_core_Native_sectionCount = crate::buffer::section_count, (handle: long, flags: int) -> int;
    "openBuffers" Java_mpjdev_core_Native_openBuffers = open_buffers, () -> int;
    "usedMemory" Java_mpjdev_core_Native_usedMemory = used_memory, () -> long;
    "setMemoryLimit" Java_mpjdev_core_Native_setMemoryLimit = set_memory_limit, (limit: long) -> void;
    "failureNames" Java_mpjdev_core_Native_failureNames = failure_names, () -> text;
    "write" Java_mpjdev_core_Native_write = crate::buffer::write,
        (handle: long, array/length/element: array, off: int, count: int, flags: int) -> void;
    "read" Java_mpjdev_core_Native_read = crate::buffer::read,
        (handle: long, array/length/element: array, off: int, count: int, flags: int) -> void;
}

fn abi(_: &mut Env) -> Result<i32, Failure> {
    quiet_panics();
    Ok(ABI)
}

fn table(_: &mut Env) -> Result<String, Failure> {
    Ok(TABLE.to_owned())
}

fn failure_names(_: &mut Env) -> Result<String, Failure> {
    Ok(crate::error::code::NAMES.join("\n"))
}

fn open_buffers(_: &mut Env) -> Result<i32, Failure> {
    Ok(crate::handle::open_buffers() as i32)
}

fn used_memory(_: &mut Env) -> Result<i64, Failure> {
    Ok(crate::handle::pool().used() as i64)
}

/// Sets the limit on message memory, and has the pool ask Java to collect garbage before it gives up.
fn set_memory_limit(_: &mut Env, limit: i64) -> Result<(), Failure> {
    crate::handle::pool().set_limit(u64::try_from(limit).unwrap_or(0));
    Ok(())
}
