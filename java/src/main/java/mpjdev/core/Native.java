package mpjdev.core;

import java.nio.ByteBuffer;

/**
 * The whole native surface, in one class, so that the library is loaded exactly once. Internal.
 *
 * <p>Conventions: a {@code handle} is what one of the {@code new} methods gave; a stale one gives an
 * {@link IllegalStateException}. An array argument is followed by its own length and, where the type is open, by its own
 * type code ({@link Types}): callers must pass exactly those, since native code believes them. Offsets and counts are
 * checked by native code, in elements. {@code flags} are {@link #CLEAR} and {@link #RESET}, carried out before the call does
 * anything else. Methods throw {@link Failure} for what a face has its own exceptions for.
 */
public final class Native {
    /** Flag: empty the buffer first. */
    public static final int CLEAR = 1;
    /** Flag: back to the first section first. */
    public static final int RESET = 2;

    /** Flag: the byte order of the direct buffer argument is not this machine's. */
    public static final int FOREIGN = 4;

    /** Raised together with the native side's number whenever a signature changes. */
    static final int ABI = 1;

    static {
        NativeLoader.load();
        int abi = abi();
        if (abi != ABI) {
            throw new UnsatisfiedLinkError("the native library has ABI " + abi + ", this jar needs " + ABI
                    + ": both must be of one version of mpjdev");
        }
        Memory.applyLimit();
    }

    private Native() {}

    static native int abi();

    static native String table();

    static native String failureNames();

    /** @param capacity octets of primary payload
     * @param order 0 big-endian, 1 little-endian
     * @return the handle of an empty buffer for writing */
    public static native long newWriter(int capacity, int order);

    /** @param capacity octets of primary payload
     * @return the handle of an empty buffer for reading */
    public static native long newReader(int capacity);

    /** Closes a buffer; a second time does nothing.
     * @param handle a buffer */
    public static native void close(long handle);

    public static native int capacity(long handle);

    public static native void ensureCapacity(long handle, int capacity);

    public static native void restoreCapacity(long handle);

    public static native long sectionCapacity(int element, int count);

    public static native void write(long handle, Object array, int length, int element, int off, int count, int flags);

    public static native void read(long handle, Object array, int length, int element, int off, int count, int flags);

    public static native void gather(long handle, Object array, int length, int element, int base, int count, int offs,
            int[] indexes, int ints, int flags);

    public static native void scatter(long handle, Object array, int length, int element, int base, int count, int offs,
            int[] indexes, int ints, int flags);

    public static native void strGather(long handle, Object array, int length, int element, int off, int rank, int exts,
            int strs, int[] indexes, int ints, int flags);

    public static native void strScatter(long handle, Object array, int length, int element, int off, int rank, int exts,
            int strs, int[] indexes, int ints, int flags);

    public static native void writeDirect(long handle, ByteBuffer source, long off, int element, int count, int flags);

    public static native void readDirect(long handle, ByteBuffer dest, long off, int element, int count, int flags);

    /** Whether an object section fits.
     * @param handle a buffer for writing
     * @param flags flags
     * @return octets of secondary payload so far */
    public static native long beginObjects(long handle, int flags);

    public static native void writeObjects(long handle, int count, int flags);

    public static native void readObjects(long handle, int count, int flags);

    public static native void checkObjects(long handle, int count, int flags);

    public static native void appendSecondary(long handle, byte[] chunk, int length, int off, int count);

    public static native void truncateSecondary(long handle, long len);

    public static native int readSecondary(long handle, long at, byte[] chunk, int length, int off, int count);

    public static native long secondaryLength(long handle, int flags);

    public static native long logicalLength(long handle, int flags);

    public static native void copyLogical(long handle, byte[] dest, int length, int flags);

    public static native void load(long handle, byte[] source, int length);

    /** Looks at the next section.
     * @param handle a buffer for reading
     * @param flags flags
     * @return type code &lt;&lt; 32 | count, or -1 after the last section */
    public static native long peek(long handle, int flags);

    public static native int sectionCount(long handle, int flags);

    /** Counts buffers that are not closed: for leak checks.
     * @return the number */
    public static native int openBuffers();

    /** Counts message memory in use: for leak checks.
     * @return octets */
    public static native long usedMemory();

    static native void setMemoryLimit(long limit);
}
