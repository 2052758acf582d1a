package mpjdev.bench;

import java.nio.ByteBuffer;

/** Bare native copies between arrays and addresses, without checks and handles. */
final class Baseline {
    static {
        String file = System.getProperty("mpjdev.baseline.path");
        if (file == null) {
            throw new UnsatisfiedLinkError("-Dmpjdev.baseline.path=FILE must name the library of rust/bench");
        }
        System.load(file);
    }

    private Baseline() {}

    /** Returns the address of a direct buffer. */
    static native long address(ByteBuffer direct);

    /** Calls {@code memcpy} outside the heap. No collection waits for it. */
    static native void copy(long from, long to, long octets);

    static native void regionOut(byte[] array, int count, long address);

    static native void regionIn(byte[] array, int count, long address);

    static native void criticalOut(byte[] array, int count, long address);

    static native void criticalIn(byte[] array, int count, long address);

    static native void regionOut(char[] array, int count, long address);

    static native void regionIn(char[] array, int count, long address);

    static native void criticalOut(char[] array, int count, long address);

    static native void criticalIn(char[] array, int count, long address);

    static native void regionOut(short[] array, int count, long address);

    static native void regionIn(short[] array, int count, long address);

    static native void criticalOut(short[] array, int count, long address);

    static native void criticalIn(short[] array, int count, long address);

    static native void regionOut(boolean[] array, int count, long address);

    static native void regionIn(boolean[] array, int count, long address);

    static native void criticalOut(boolean[] array, int count, long address);

    static native void criticalIn(boolean[] array, int count, long address);

    static native void regionOut(int[] array, int count, long address);

    static native void regionIn(int[] array, int count, long address);

    static native void criticalOut(int[] array, int count, long address);

    static native void criticalIn(int[] array, int count, long address);

    static native void regionOut(long[] array, int count, long address);

    static native void regionIn(long[] array, int count, long address);

    static native void criticalOut(long[] array, int count, long address);

    static native void criticalIn(long[] array, int count, long address);

    static native void regionOut(float[] array, int count, long address);

    static native void regionIn(float[] array, int count, long address);

    static native void criticalOut(float[] array, int count, long address);

    static native void criticalIn(float[] array, int count, long address);

    static native void regionOut(double[] array, int count, long address);

    static native void regionIn(double[] array, int count, long address);

    static native void criticalOut(double[] array, int count, long address);

    static native void criticalIn(double[] array, int count, long address);
}
