//! The native methods of `mpjdev.tools.BaselineNative`: a [`Channel`] from Java.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use jni::sys::{JNI_ABORT, JNIEnv, jclass, jdoubleArray, jint, jlong, jobject};

use crate::channel::Channel;

/// Limit of the elements of a region function; a critical pair copies more.
const REGION_MAX: usize = 128;
/// Limit of the elements of one critical pair: 256 KiB.
const CHUNK: usize = 32 << 10;

/// Runs the body of a native method. A panic becomes a Java error.
#[inline(always)]
fn guard<R: Default>(env: *mut JNIEnv, body: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        throw(env);
        R::default()
    })
}

#[cold]
fn throw(env: *mut JNIEnv) {
    // SAFETY: the environment is the JVM's, and no exception is pending where Rust panics.
    unsafe {
        let class = ((**env).v1_1.FindClass)(env, c"java/lang/Error".as_ptr());
        ((**env).v1_1.ThrowNew)(
            env,
            class,
            c"the baseline panicked; standard error has the message".as_ptr(),
        );
    }
}

/// The channel of an address.
unsafe fn channel<'a>(address: jlong) -> &'a mut Channel {
    // SAFETY: the caller has it from `open`, and one thread uses it.
    unsafe { &mut *(address as *mut Channel) }
}

/// A rank over two direct buffers of the same length.
///
/// # Safety
/// Called by the JVM. The buffers outlive the rank.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_mpjdev_tools_BaselineNative_open(
    env: *mut JNIEnv,
    _: jclass,
    own: jobject,
    peer: jobject,
) -> jlong {
    guard(env, || {
        // SAFETY: the buffers are the JVM's.
        let (own, peer, len) = unsafe {
            let address = |buffer| ((**env).v1_4.GetDirectBufferAddress)(env, buffer).cast::<u8>();
            (address(own), address(peer), ((**env).v1_4.GetDirectBufferCapacity)(env, own))
        };
        // SAFETY: as the caller promises.
        let channel = unsafe { Channel::new(own, peer, len as usize) };
        Box::into_raw(Box::new(channel)) as jlong
    })
}

/// Ends a rank.
///
/// # Safety
/// Called by the JVM with what `open` gave, once.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_mpjdev_tools_BaselineNative_close(
    env: *mut JNIEnv,
    _: jclass,
    rank: jlong,
) {
    // SAFETY: as the caller promises.
    guard(env, || drop(unsafe { Box::from_raw(rank as *mut Channel) }));
}

/// A new buffer for sections of `capacity` octets.
///
/// # Safety
/// Called by the JVM with what `open` gave.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_mpjdev_tools_BaselineNative_newBuffer(
    env: *mut JNIEnv,
    _: jclass,
    rank: jlong,
    capacity: jint,
) -> jlong {
    // SAFETY: as the caller promises.
    guard(env, || unsafe { channel(rank) }.new_buffer(capacity as usize) as jlong)
}

/// Frees a buffer.
///
/// # Safety
/// Called by the JVM with what `open` gave.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_mpjdev_tools_BaselineNative_freeBuffer(
    env: *mut JNIEnv,
    _: jclass,
    rank: jlong,
    buffer: jlong,
) {
    // SAFETY: as the caller promises.
    guard(env, || unsafe { channel(rank) }.free_buffer(buffer as u64));
}

/// Empties a buffer and writes a section of `count` elements.
///
/// # Safety
/// Called by the JVM with what `open` gave. The array has `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_mpjdev_tools_BaselineNative_write(
    env: *mut JNIEnv,
    _: jclass,
    rank: jlong,
    buffer: jlong,
    array: jdoubleArray,
    count: jint,
) {
    guard(env, || {
        // SAFETY: as the caller promises.
        unsafe { channel(rank) }.with(buffer as u64, |channel, buffer| {
            let to = channel.begin(buffer, count as usize).cast::<f64>();
            // SAFETY: the section has room for as many elements as the array has.
            unsafe { copy_out(env, array, count as usize, to) }
        });
    });
}

/// Reads a section of `count` elements.
///
/// # Safety
/// Called by the JVM with what `open` gave. The array has `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_mpjdev_tools_BaselineNative_read(
    env: *mut JNIEnv,
    _: jclass,
    rank: jlong,
    buffer: jlong,
    array: jdoubleArray,
    count: jint,
) {
    guard(env, || {
        // SAFETY: as the caller promises.
        unsafe { channel(rank) }.with(buffer as u64, |_, buffer| {
            let from = Channel::next(buffer, count as usize).cast::<f64>();
            // SAFETY: the section has as many elements as the array.
            unsafe { copy_in(env, array, count as usize, from) }
        });
    });
}

/// Sends the message of a buffer.
///
/// # Safety
/// Called by the JVM with what `open` gave.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_mpjdev_tools_BaselineNative_send(
    env: *mut JNIEnv,
    _: jclass,
    rank: jlong,
    buffer: jlong,
    tag: jint,
) {
    // SAFETY: as the caller promises.
    guard(env, || unsafe { channel(rank) }.with(buffer as u64, |channel, buffer| channel.send(buffer, tag)));
}

/// Waits for a message. Returns the octets of its sections.
///
/// # Safety
/// Called by the JVM with what `open` gave.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_mpjdev_tools_BaselineNative_recv(
    env: *mut JNIEnv,
    _: jclass,
    rank: jlong,
    buffer: jlong,
    tag: jint,
) -> jlong {
    // SAFETY: as the caller promises.
    let len =
        |rank| unsafe { channel(rank) }.with(buffer as u64, |channel, buffer| channel.recv(buffer, tag));
    guard(env, || len(rank) as jlong)
}

unsafe fn copy_out(env: *mut JNIEnv, array: jdoubleArray, count: usize, to: *mut f64) {
    // SAFETY: as the caller promises; the array is released as it was got.
    unsafe {
        if count <= REGION_MAX {
            return ((**env).v1_1.GetDoubleArrayRegion)(env, array, 0, count as jint, to);
        }
        for first in (0..count).step_by(CHUNK) {
            let held = ((**env).v1_2.GetPrimitiveArrayCritical)(env, array, null_mut());
            let len = CHUNK.min(count - first);
            to.add(first).copy_from_nonoverlapping(held.cast::<f64>().add(first), len);
            ((**env).v1_2.ReleasePrimitiveArrayCritical)(env, array, held, JNI_ABORT);
        }
    }
}

unsafe fn copy_in(env: *mut JNIEnv, array: jdoubleArray, count: usize, from: *const f64) {
    // SAFETY: as the caller promises; the array is released as it was got.
    unsafe {
        if count <= REGION_MAX {
            return ((**env).v1_1.SetDoubleArrayRegion)(env, array, 0, count as jint, from);
        }
        for first in (0..count).step_by(CHUNK) {
            let held = ((**env).v1_2.GetPrimitiveArrayCritical)(env, array, null_mut());
            let len = CHUNK.min(count - first);
            from.add(first).copy_to_nonoverlapping(held.cast::<f64>().add(first), len);
            ((**env).v1_2.ReleasePrimitiveArrayCritical)(env, array, held, 0);
        }
    }
}
