//! Baselines of the benchmarks: lower bounds of a native call that copies an array, and, in [`channel`], of a
//! message between two processes.
//!
//! For each primitive type there are four functions of `mpjdev.bench.Baseline`: from the array to an address
//! and back, by the region function of the type and by a critical pair around a `memcpy`. They have no checks
//! and are for measurements only.

pub mod channel;
pub mod natives;

use std::ptr::{copy_nonoverlapping, null_mut};

use jni::sys::{JNI_ABORT, JNIEnv, jclass, jint, jlong, jobject};

/// Address of the memory of a direct buffer.
///
/// # Safety
/// Called by the JVM with a direct buffer.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_mpjdev_bench_Baseline_address(
    env: *mut JNIEnv,
    _: jclass,
    buffer: jobject,
) -> jlong {
    // SAFETY: the environment and the buffer are the JVM's.
    unsafe { ((**env).v1_4.GetDirectBufferAddress)(env, buffer) as jlong }
}

/// Copies memory outside the Java heap.
///
/// # Safety
/// Called by the JVM with addresses that are valid for `octets` octets.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_mpjdev_bench_Baseline_copy(
    _: *mut JNIEnv,
    _: jclass,
    from: jlong,
    to: jlong,
    octets: jlong,
) {
    // SAFETY: as the caller promises.
    unsafe { copy_nonoverlapping(from as *const u8, to as *mut u8, octets as usize) }
}

/// Writes the four functions of a type.
macro_rules! baseline {
    ($element:ty, $get:ident, $set:ident,
     $region_out:ident, $region_in:ident, $critical_out:ident, $critical_in:ident) => {
        /// Array to address by the region function.
        ///
        /// # Safety
        /// Called by the JVM; the array has `count` elements, the address is good for them.
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $region_out(
            env: *mut JNIEnv,
            _: jclass,
            array: jobject,
            count: jint,
            address: jlong,
        ) {
            // SAFETY: as the caller promises.
            unsafe { ((**env).v1_1.$get)(env, array, 0, count, address as *mut $element) }
        }

        /// Address to array by the region function.
        ///
        /// # Safety
        /// Called by the JVM; the array has `count` elements, the address is good for them.
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $region_in(
            env: *mut JNIEnv,
            _: jclass,
            array: jobject,
            count: jint,
            address: jlong,
        ) {
            // SAFETY: as the caller promises.
            unsafe { ((**env).v1_1.$set)(env, array, 0, count, address as *const $element) }
        }

        /// Array to address by a critical pair, which delays the collector for any time.
        ///
        /// # Safety
        /// Called by the JVM; the array has `count` elements, the address is good for them.
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $critical_out(
            env: *mut JNIEnv,
            _: jclass,
            array: jobject,
            count: jint,
            address: jlong,
        ) {
            // SAFETY: as the caller promises; the array is released as it was got.
            unsafe {
                let held = ((**env).v1_2.GetPrimitiveArrayCritical)(env, array, null_mut());
                copy_nonoverlapping(held.cast::<$element>(), address as *mut $element, count as usize);
                ((**env).v1_2.ReleasePrimitiveArrayCritical)(env, array, held, JNI_ABORT);
            }
        }

        /// Address to array by a critical pair, which delays the collector for any time.
        ///
        /// # Safety
        /// Called by the JVM; the array has `count` elements, the address is good for them.
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $critical_in(
            env: *mut JNIEnv,
            _: jclass,
            array: jobject,
            count: jint,
            address: jlong,
        ) {
            // SAFETY: as the caller promises; the array is released as it was got.
            unsafe {
                let held = ((**env).v1_2.GetPrimitiveArrayCritical)(env, array, null_mut());
                copy_nonoverlapping(address as *const $element, held.cast::<$element>(), count as usize);
                ((**env).v1_2.ReleasePrimitiveArrayCritical)(env, array, held, 0);
            }
        }
    };
}

baseline! {
    jni::sys::jbyte, GetByteArrayRegion, SetByteArrayRegion,
    Java_mpjdev_bench_Baseline_regionOut___3BIJ,
    Java_mpjdev_bench_Baseline_regionIn___3BIJ,
    Java_mpjdev_bench_Baseline_criticalOut___3BIJ,
    Java_mpjdev_bench_Baseline_criticalIn___3BIJ
}

baseline! {
    jni::sys::jchar, GetCharArrayRegion, SetCharArrayRegion,
    Java_mpjdev_bench_Baseline_regionOut___3CIJ,
    Java_mpjdev_bench_Baseline_regionIn___3CIJ,
    Java_mpjdev_bench_Baseline_criticalOut___3CIJ,
    Java_mpjdev_bench_Baseline_criticalIn___3CIJ
}

baseline! {
    jni::sys::jshort, GetShortArrayRegion, SetShortArrayRegion,
    Java_mpjdev_bench_Baseline_regionOut___3SIJ,
    Java_mpjdev_bench_Baseline_regionIn___3SIJ,
    Java_mpjdev_bench_Baseline_criticalOut___3SIJ,
    Java_mpjdev_bench_Baseline_criticalIn___3SIJ
}

baseline! {
    jni::sys::jboolean, GetBooleanArrayRegion, SetBooleanArrayRegion,
    Java_mpjdev_bench_Baseline_regionOut___3ZIJ,
    Java_mpjdev_bench_Baseline_regionIn___3ZIJ,
    Java_mpjdev_bench_Baseline_criticalOut___3ZIJ,
    Java_mpjdev_bench_Baseline_criticalIn___3ZIJ
}

baseline! {
    jni::sys::jint, GetIntArrayRegion, SetIntArrayRegion,
    Java_mpjdev_bench_Baseline_regionOut___3IIJ,
    Java_mpjdev_bench_Baseline_regionIn___3IIJ,
    Java_mpjdev_bench_Baseline_criticalOut___3IIJ,
    Java_mpjdev_bench_Baseline_criticalIn___3IIJ
}

baseline! {
    jni::sys::jlong, GetLongArrayRegion, SetLongArrayRegion,
    Java_mpjdev_bench_Baseline_regionOut___3JIJ,
    Java_mpjdev_bench_Baseline_regionIn___3JIJ,
    Java_mpjdev_bench_Baseline_criticalOut___3JIJ,
    Java_mpjdev_bench_Baseline_criticalIn___3JIJ
}

baseline! {
    jni::sys::jfloat, GetFloatArrayRegion, SetFloatArrayRegion,
    Java_mpjdev_bench_Baseline_regionOut___3FIJ,
    Java_mpjdev_bench_Baseline_regionIn___3FIJ,
    Java_mpjdev_bench_Baseline_criticalOut___3FIJ,
    Java_mpjdev_bench_Baseline_criticalIn___3FIJ
}

baseline! {
    jni::sys::jdouble, GetDoubleArrayRegion, SetDoubleArrayRegion,
    Java_mpjdev_bench_Baseline_regionOut___3DIJ,
    Java_mpjdev_bench_Baseline_regionIn___3DIJ,
    Java_mpjdev_bench_Baseline_criticalOut___3DIJ,
    Java_mpjdev_bench_Baseline_criticalIn___3DIJ
}
