//! The boundary to Java: exported shells, one panic boundary, and the only place that throws.
//!
//! A shell converts the raw arguments to types that its body can use without unsafe code. It calls the body
//! inside the panic boundary, and throws the body's failure. `natives!` writes the shells together with a
//! table of their Java signatures; a JUnit test compares that table with the methods that
//! `mpjdev.core.Native` declares.
//!
//! All methods use this path, not only the hot ones: one mechanism, 8 ns instead of the jni crate's 43.
//! Exceptions and upcalls use the raw functions as well ([`throw_named`] has the reason); the crate's typed
//! calls convert texts.

mod upcalls;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

use jni::EnvUnowned;
use jni::objects::JString;
use jni::strings::{JNIStr, JNIString};
use jni::sys::{self, jclass, jint, jlong, jobject, jstring};

use mpjdev_buffer::Place;

use crate::array::{Array, Direct, IntArray};
use crate::error::{Failure, Fault, JavaClass};

/// Raised together with `Native.ABI` whenever a signature changes.
const ABI: i32 = 5;

/// The calling thread's Java environment, for the length of one call.
#[derive(Debug)]
pub(crate) struct Env {
    raw: *mut sys::JNIEnv,
    /// The exception of an upcall; null for none.
    thrown: sys::jthrowable,
}

impl Env {
    #[inline(always)]
    fn new(raw: *mut sys::JNIEnv) -> Env {
        Env { raw, thrown: std::ptr::null_mut() }
    }

    /// The raw environment, for the array copies.
    #[inline(always)]
    pub(crate) fn raw(&self) -> *mut sys::JNIEnv {
        self.raw
    }
}

/// The `mpjdev.core.NativeStatus` argument of a call, for details of a message beyond the return value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NativeStatus(jobject);

/// The field `detail` of `mpjdev.core.NativeStatus`; found when the library is loaded.
static DETAIL: AtomicPtr<sys::_jfieldID> = AtomicPtr::new(std::ptr::null_mut());

impl NativeStatus {
    /// Sets the field; does nothing for a null argument.
    #[inline(always)]
    pub(crate) fn set(self, env: &mut Env, detail: i64) {
        let field = DETAIL.load(Ordering::Acquire);
        if !self.0.is_null() && !field.is_null() {
            // SAFETY: `Native` passes an object of the class that the field was looked up in.
            unsafe { ((**env.raw).v1_1.SetLongField)(env.raw, self.0, field, detail) }
        }
    }
}

/// Looks up the fields that later calls need.
fn find_fields(env: &mut Env) -> Result<(), Failure> {
    // SAFETY: the environment is the calling thread's; the names are those of the class beside `Native`.
    let field = unsafe {
        let functions = &(**env.raw).v1_1;
        let class = (functions.FindClass)(env.raw, c"mpjdev/core/NativeStatus".as_ptr());
        if class.is_null() {
            return Err(Fault::Pending.into());
        }
        let field = (functions.GetFieldID)(env.raw, class, c"detail".as_ptr(), c"J".as_ptr());
        (functions.DeleteLocalRef)(env.raw, class);
        field
    };
    if field.is_null() {
        return Err(Fault::Pending.into());
    }
    DETAIL.store(field, Ordering::Release);
    Ok(())
}

/// A text argument.
fn text(env: &mut Env, raw: jstring) -> Result<String, Failure> {
    if raw.is_null() {
        return Err(Fault::Null { name: "text" }.into());
    }
    // SAFETY: the environment is the calling thread's; `raw` is a string of this call.
    let mut unowned = unsafe { EnvUnowned::from_raw(env.raw) };
    let read = unowned.with_env_no_catch(|env| -> jni::errors::Result<String> {
        // SAFETY: as above.
        let string = unsafe { JString::from_raw(env, raw) };
        string.try_to_string(env)
    });
    match read.into_outcome() {
        jni::Outcome::Ok(text) => Ok(text),
        _ => Err(Fault::Pending.into()),
    }
}

/// The result of a body, as the raw value that Java takes.
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

/// A reference for Java that is null by default.
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
        let mut unowned = unsafe { EnvUnowned::from_raw(env.raw) };
        let made =
            unowned.with_env(|env| -> jni::errors::Result<jstring> { Ok(env.new_string(self)?.into_raw()) });
        match made.into_outcome() {
            jni::Outcome::Ok(text) => Text(text),
            _ => Text::default(),
        }
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

impl Answer for DirectView {
    type Raw = DirectView;
    fn raw(self, _: &Env) -> DirectView {
        self
    }
}

impl Env {
    /// Makes a direct buffer of a memory range, which the caller keeps as long as the buffer is reachable.
    ///
    /// # Errors
    /// Java has no memory.
    pub(crate) fn direct_view(&mut self, place: &Place<'_>) -> Result<DirectView, Failure> {
        // SAFETY: the environment is the calling thread's. The range is good, and stays so as the caller
        // promises; relaxed atomics and Java's own accesses to it may race, as with a peer that changes its
        // messages.
        let made = unsafe {
            ((**self.raw).v1_4.NewDirectByteBuffer)(self.raw, place.as_ptr().cast(), place.len() as jlong)
        };
        if made.is_null() { Err(Fault::Pending.into()) } else { Ok(DirectView(made)) }
    }
}

/// Runs a body; a failure or a panic becomes the pending Java exception.
#[inline(always)]
fn guard<R: Answer>(env: *mut sys::JNIEnv, body: impl FnOnce(&mut Env) -> Result<R, Failure>) -> R::Raw {
    let mut env = Env::new(env);
    match catch_unwind(AssertUnwindSafe(|| body(&mut env).map(|r| r.raw(&env)))) {
        Ok(Ok(raw)) => raw,
        Ok(Err(failure)) => raise(&env, &failure),
        Err(panic) => raise_panic(&env, &*panic),
    }
}

#[cold]
#[inline(never)]
fn raise<R: Default>(env: &Env, failure: &Failure) -> R {
    // A wait that was given up because of an exception of an upcall: that exception is the reason. Any other
    // failure has its own.
    if failure.is_interruption() && env.throw_again() {
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
    (ints) => {
        "[II"
    };
    (bytes) => {
        "[BI"
    };
    (longs) => {
        "[JI"
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
/// two.
macro_rules! shell {
    // All arguments are handled: emit.
    (@ $symbol:ident $body:path, $ret:ty, [$($raw:ident: $rawty:ty,)*] [$($name:ident = $value:expr,)*] []) => {
        // SAFETY: the JVM looks up this name; nothing else in this library has it.
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
    (@ $symbol:ident $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident/$b:ident: longs, $($rest:tt)*]) => {
        shell! { @ $symbol $body, $ret, [$($r)* $a: jobject, $b: jint,]
            [$($c)* $a = (|_: &mut Env| array($a, $b, 5)),] [$($rest)*] }
    };
    (@ $symbol:ident $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident: status, $($rest:tt)*]) => {
        shell! { @ $symbol $body, $ret, [$($r)* $a: jobject,]
            [$($c)* $a = (|_: &mut Env| Ok::<_, Failure>(NativeStatus($a))),] [$($rest)*] }
    };
    (@ $symbol:ident $body:path, $ret:ty, [$($r:tt)*] [$($c:tt)*] [$a:ident: string, $($rest:tt)*]) => {
        shell! { @ $symbol $body, $ret, [$($r)* $a: jstring,]
            [$($c)* $a = (|env: &mut Env| text(env, $a)),] [$($rest)*] }
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
    (view) => {
        DirectView
    };
}

macro_rules! natives {
    ($( $name:literal $symbol:ident = $body:path, ($($arg:ident $(/ $more:ident)*: $kind:ident),*) -> $ret:ident; )*) => {
        $( shell! { @ $symbol $body, rust_type!($ret), [] [] [$($arg $(/ $more)*: $kind,)*] } )*

        /// `name(signature)result` of every native method, one per line.
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
    "writeView" Java_mpjdev_core_Native_writeView = crate::view::write,
        (handle: long, element: int, count: int, out/length: longs, flags: int) -> view;
    "readView" Java_mpjdev_core_Native_readView = crate::view::read,
        (handle: long, element: int, count: int, out/length: longs, flags: int) -> view;
    "freeView" Java_mpjdev_core_Native_freeView = crate::view::free, (view: long) -> void;
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
    "firstSection" Java_mpjdev_core_Native_firstSection = crate::buffer::first_section, (handle: long) -> long;
    "patchCount" Java_mpjdev_core_Native_patchCount = crate::buffer::patch_count,
        (length: int, off: int, rank: int, exts: int, strs: int, indexes/ints: ints) -> int;
    "patchElements" Java_mpjdev_core_Native_patchElements = crate::buffer::patch_elements,
        (length: int, off: int, rank: int, exts: int, strs: int, indexes/ints: ints, elements/room: ints) -> void;
    "openRequests" Java_mpjdev_core_Native_openRequests = open_requests, () -> int;
    "worldOfOne" Java_mpjdev_core_Native_worldOfOne = crate::comm::world_of_one, () -> long;
    "processWorld" Java_mpjdev_core_Native_processWorld = crate::comm::process_world, () -> long;
    "localJob" Java_mpjdev_core_Native_localJob = crate::comm::local_job, (worlds/length: longs, message_oriented: bool) -> void;
    "rank" Java_mpjdev_core_Native_rank = crate::comm::rank, (comm: long) -> int;
    "size" Java_mpjdev_core_Native_size = crate::comm::size, (comm: long) -> int;
    "freeComm" Java_mpjdev_core_Native_freeComm = crate::comm::free, (comm: long) -> void;
    "finish" Java_mpjdev_core_Native_finish = crate::comm::finish, (comm: long) -> void;
    "usesMpi" Java_mpjdev_core_Native_usesMpi = crate::comm::uses_mpi, () -> bool;
    "endProcess" Java_mpjdev_core_Native_endProcess = crate::comm::end_process, (why: string) -> void;
    "abort" Java_mpjdev_core_Native_abort = crate::comm::abort, (comm: long, why: string) -> void;
    "send" Java_mpjdev_core_Native_send = crate::comm::send, (comm: long, buffer: long, dest: int, tag: int, synchronous: bool, flags: int) -> void;
    "isend" Java_mpjdev_core_Native_isend = crate::comm::isend, (comm: long, buffer: long, dest: int, tag: int, synchronous: bool, flags: int) -> long;
    "recv" Java_mpjdev_core_Native_recv = crate::comm::recv, (comm: long, buffer: long, source: int, tag: int, out: status) -> long;
    "recvFrom" Java_mpjdev_core_Native_recvFrom = crate::comm::recv_from, (comm: long, buffer: long, source: int, tag: int) -> long;
    "irecv" Java_mpjdev_core_Native_irecv = crate::comm::irecv, (comm: long, buffer: long, source: int, tag: int) -> long;
    "probe" Java_mpjdev_core_Native_probe = crate::comm::probe, (comm: long, source: int, tag: int, out: status) -> long;
    "iprobe" Java_mpjdev_core_Native_iprobe = crate::comm::iprobe, (comm: long, source: int, tag: int, out: status) -> long;
    "await" Java_mpjdev_core_Native_await = crate::comm::wait, (request: long, nanos: long, out: status) -> long;
    "test" Java_mpjdev_core_Native_test = crate::comm::test, (request: long, out: status) -> long;
    "awaitAny" Java_mpjdev_core_Native_awaitAny = crate::comm::wait_any, (requests/length: longs, count: int, nanos: long) -> int;
    "cancel" Java_mpjdev_core_Native_cancel = crate::comm::cancel, (request: long) -> bool;
    "freeRequest" Java_mpjdev_core_Native_freeRequest = crate::comm::free_request, (request: long) -> void;
    "startBarrier" Java_mpjdev_core_Native_startBarrier = crate::comm::start_barrier, (comm: long) -> long;
    "startDup" Java_mpjdev_core_Native_startDup = crate::comm::start_dup, (comm: long) -> long;
    "startCreate" Java_mpjdev_core_Native_startCreate = crate::comm::start_create, (comm: long, ids/length: ints) -> long;
    "startSplit" Java_mpjdev_core_Native_startSplit = crate::comm::start_split, (comm: long, color: int, key: int) -> long;
    "advance" Java_mpjdev_core_Native_advance = crate::comm::advance, (operation: long, blocking: bool) -> long;
    "freeOperation" Java_mpjdev_core_Native_freeOperation = crate::comm::free_operation, (operation: long) -> void;
    "markCounts" Java_mpjdev_core_Native_markCounts = crate::stats::mark, () -> void;
    "counts" Java_mpjdev_core_Native_counts = crate::stats::since_mark, () -> text;
    "printStats" Java_mpjdev_core_Native_printStats = crate::stats::print, () -> void;
    "failureNames" Java_mpjdev_core_Native_failureNames = failure_names, () -> text;
    "constants" Java_mpjdev_core_Native_constants = constants, () -> text;
    "panic" Java_mpjdev_core_Native_panic = panic, (handle: long, text: string) -> void;
    "write" Java_mpjdev_core_Native_write = crate::buffer::write,
        (handle: long, array/length/element: array, off: int, count: int, flags: int) -> void;
    "read" Java_mpjdev_core_Native_read = crate::buffer::read,
        (handle: long, array/length/element: array, off: int, count: int, flags: int) -> void;
}

fn abi(env: &mut Env) -> Result<i32, Failure> {
    quiet_panics();
    mpjdev_logging::start("library");
    find_fields(env)?;
    upcalls::find_vm(env);
    crate::handle::pool().set_reclaim(upcalls::reclaim);
    crate::handle::pool().set_make_room(upcalls::make_room);
    Ok(ABI)
}

fn table(_: &mut Env) -> Result<String, Failure> {
    Ok(TABLE.to_owned())
}

fn failure_names(_: &mut Env) -> Result<String, Failure> {
    Ok(crate::error::code::NAMES.join("\n"))
}

/// `NAME=value` of every number that both sides must agree on, one per line.
fn constants(_: &mut Env) -> Result<String, Failure> {
    let all = crate::buffer::CONSTANTS.iter().chain(&crate::comm::CONSTANTS);
    Ok(all.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("\n"))
}

/// Panics during the use of a buffer, so that a test can check the buffer afterwards.
fn panic(_: &mut Env, handle: i64, text: String) -> Result<(), Failure> {
    crate::handle::with_any_buffer(handle, |_| panic!("{text}"))
}

fn open_buffers(_: &mut Env) -> Result<i32, Failure> {
    Ok(crate::handle::open_buffers() as i32)
}

fn used_memory(_: &mut Env) -> Result<i64, Failure> {
    Ok(crate::handle::pool().used() as i64)
}

/// Sets the limit on message memory. At the limit, the pool asks Java to collect garbage before it fails.
fn set_memory_limit(_: &mut Env, limit: i64) -> Result<(), Failure> {
    crate::handle::pool().set_limit(u64::try_from(limit).unwrap_or(0));
    Ok(())
}

fn open_requests(_: &mut Env) -> Result<i32, Failure> {
    Ok(crate::handle::open_requests() as i32)
}
