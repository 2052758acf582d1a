package mpjdev;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import mpjdev.core.BounceBuffer;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;
import mpjdev.core.Segments;
import mpjdev.core.Types;
import mpjdev.core.View;

/**
 * A buffer for writing a message, section by section.
 *
 * <p>Each call of a write method adds one section: {@link #SECTION_OVERHEAD} octets, the elements without
 * gaps, and padding up to a multiple of 8. A call that fails adds nothing. A send captures the message: the
 * program may clear, write, send or close the buffer as soon as the send returns. A write after a send
 * continues the message.
 *
 * <p>Offsets, counts, extents and strides are in elements. No method blocks. One thread at a time may use a
 * buffer. Two threads at once get an {@link IllegalStateException}; the buffer does not order them.
 *
 * <p>All write methods throw {@link BufferOverflowException} if the section does not fit,
 * {@link ArrayIndexOutOfBoundsException} if elements or indices are outside their array,
 * {@link IllegalArgumentException} for negative extents or more than 2<sup>31</sup>-1 elements,
 * {@link NullPointerException} for a null array, {@link IllegalStateException} if the buffer is closed or in
 * use, and {@link OutOfMemoryError} at the limit on message memory.
 *
 * <p>The methods have an overload for each primitive type. Those for {@code byte} arrays document all of
 * them.
 */
public class WriteBuffer extends Buffer {
    /**
     * Makes an empty buffer in this machine's byte order.
     *
     * @param capacity octets available to the primary payload, 0 to {@link #MAX_CAPACITY}; rounded up to a
     *     multiple of 8
     */
    public WriteBuffer(int capacity) {
        this(capacity, ByteOrder.nativeOrder());
    }

    /**
     * Makes an empty buffer.
     *
     * @param capacity octets available to the primary payload, 0 to {@link #MAX_CAPACITY}; rounded up to a
     *     multiple of 8
     * @param order byte order of the messages; every reader accepts both
     */
    public WriteBuffer(int capacity, ByteOrder order) {
        super(newWriter(capacity, order));
    }

    /** Empties the buffer. */
    public void clear() {
        flags = Native.CLEAR;
    }

    /**
     * Returns a copy of the logical message: headers, primary payload, secondary payload.
     *
     * @return 16 octets of headers and the octets of both payloads
     * @throws OutOfMemoryError if the message does not fit an array
     */
    public byte[] toByteArray() {
        try {
            long length = Native.logicalLength(handle(), flags);
            flags = 0;
            if (length > Integer.MAX_VALUE - 8) {
                throw new OutOfMemoryError("the message has " + length + " octets, a Java array holds fewer");
            }
            byte[] octets = new byte[(int) length];
            Native.copyLogical(handle(), octets, octets.length, 0);
            return octets;
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Returns the number of sections written so far.
     *
     * @return the number
     */
    public int sectionCount() {
        try {
            return Native.sectionCount(handle(), flags);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Writes one section of elements of a direct byte buffer. Position and limit of the buffer have no
     * effect.
     *
     * @param source a direct buffer; its byte order is that of the elements in it
     * @param type type of the elements, not {@link Type#OBJECT}
     * @param srcOff octets from the start of the buffer to the first element
     * @param numEls number of elements
     * @throws IllegalArgumentException if the buffer is not direct, the type is not primitive, or the buffer
     *     is a view of this message
     */
    public void write(ByteBuffer source, Type type, int srcOff, int numEls) {
        try {
            int f = flags | orderFlag(source);
            if (source.isDirect() && type != Type.OBJECT && numEls >= 0 && Segments.isShared(source)) {
                writeShared(source, type, srcOff, numEls);
                return;
            }
            Native.writeDirect(handle(), source, srcOff, type.code(), numEls, f);
            flags = 0;
        } catch (NativeFailure f) {
            throw Errors.write(f);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Copies in Java and adds the section only after the copy, because another thread may free the memory.
     */
    private void writeShared(ByteBuffer source, Type type, int srcOff, int numEls) {
        ByteBuffer from = elementRange(source, type, srcOff, numEls);
        ByteBuffer section = View.write(handle(), type.code(), numEls, flags | Native.STAGED);
        flags = 0;
        Segments.copy(from, section, type.size());
        View.write(handle(), type.code(), numEls, 0);
    }

    /**
     * Writes one section in place: the caller fills the memory that the message is sent from, and nothing is
     * copied. The elements are undefined until the caller puts them.
     *
     * <p>The caller may put elements until the message is sent. Receivers may or may not see later changes.
     * After a {@link #clear} the buffer may use the same memory for its next message, so each message needs
     * its own views. A view that is used too late, even after {@link #close}, damages only messages of this
     * buffer. Its memory is released when the view is unreachable. A buffer keeps the memory of up to four
     * messages with views that receivers still use. A program that has more of them in flight sends from
     * several buffers.
     *
     * @param type type of the elements, not {@link Type#OBJECT}
     * @param numEls number of elements
     * @return a direct buffer of the section's octets in the byte order of the message; buffers derived from
     *     it do not inherit that order; a boolean is an octet, 0 or 1
     * @throws IllegalArgumentException if the type is not primitive
     */
    public ByteBuffer view(Type type, int numEls) {
        try {
            ByteBuffer octets = View.write(handle(), type.code(), numEls, flags);
            flags = 0;
            return octets;
        } catch (NativeFailure f) {
            throw Errors.write(f);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    // ---- The native calls of all types: an array is passed with its length and type code

    private void put(Object array, int length, int type, int off, int count) {
        try {
            BounceBuffer bounce = BounceBuffer.of(type, length, off, count);
            if (bounce == null) {
                Native.write(handle(), array, length, type, off, count, flags);
            } else {
                bounce.put(array, type, off, count);
                Native.writeBounced(handle(), bounce.address, count, type, flags);
            }
            flags = 0;
        } catch (NativeFailure f) {
            throw Errors.write(f);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private void putGathered(Object array, int length, int type, int count, int offs, int[] indexes) {
        try {
            Native.gather(handle(), array, length, type, 0, count, offs, indexes, indexes.length, flags);
            flags = 0;
        } catch (NativeFailure f) {
            throw Errors.write(f);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private void putPatch(Object array, int length, int type, int off, int rank, int exts, int strs, int[] indexes) {
        try {
            Native.strGather(handle(), array, length, type, off, rank, exts, strs, indexes, indexes.length, flags);
            flags = 0;
        } catch (NativeFailure f) {
            throw Errors.write(f);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Writes one section of the elements {@code source[srcOff]} to {@code source[srcOff + numEls - 1]}.
     *
     * @param source array to copy from
     * @param srcOff index of the first element
     * @param numEls number of elements
     */
    public void write(byte[] source, int srcOff, int numEls) {
        put(source, source.length, Types.BYTE, srcOff, numEls);
    }

    /**
     * Writes one section of the elements {@code source[indexes[offs + k]]}, k from 0 to {@code numEls - 1}.
     *
     * @param source array to copy from
     * @param numEls number of elements
     * @param offs position of the first index in {@code indexes}
     * @param indexes indices of the elements in {@code source}
     */
    public void gather(byte[] source, int numEls, int offs, int[] indexes) {
        putGathered(source, source.length, Types.BYTE, numEls, offs, indexes);
    }

    /**
     * Writes one section of a strided patch: the elements
     * {@code source[srcOff + sum of i[d] * indexes[strs + d]]}, d from 0 to {@code rank - 1}, i[d] from 0 to
     * {@code indexes[exts + d] - 1}. The last dimension varies fastest.
     *
     * @param source array to copy from
     * @param srcOff index of the element with all i[d] zero
     * @param rank number of dimensions; 0 means one element
     * @param exts position of the first extent in {@code indexes}
     * @param strs position of the first stride in {@code indexes}; strides may be negative
     * @param indexes extents and strides
     */
    public void strGather(byte[] source, int srcOff, int rank, int exts, int strs, int[] indexes) {
        putPatch(source, source.length, Types.BYTE, srcOff, rank, exts, strs, indexes);
    }

    /** Writes one section of {@code char} elements: see {@link #write(byte[], int, int)}. */
    public void write(char[] source, int srcOff, int numEls) {
        put(source, source.length, Types.CHAR, srcOff, numEls);
    }

    /** Gathers one section of {@code char} elements: see {@link #gather(byte[], int, int, int[])}. */
    public void gather(char[] source, int numEls, int offs, int[] indexes) {
        putGathered(source, source.length, Types.CHAR, numEls, offs, indexes);
    }

    /** Writes a {@code char} patch: see {@link #strGather(byte[], int, int, int, int, int[])}. */
    public void strGather(char[] source, int srcOff, int rank, int exts, int strs, int[] indexes) {
        putPatch(source, source.length, Types.CHAR, srcOff, rank, exts, strs, indexes);
    }

    /** Writes one section of {@code short} elements: see {@link #write(byte[], int, int)}. */
    public void write(short[] source, int srcOff, int numEls) {
        put(source, source.length, Types.SHORT, srcOff, numEls);
    }

    /** Gathers one section of {@code short} elements: see {@link #gather(byte[], int, int, int[])}. */
    public void gather(short[] source, int numEls, int offs, int[] indexes) {
        putGathered(source, source.length, Types.SHORT, numEls, offs, indexes);
    }

    /** Writes a {@code short} patch: see {@link #strGather(byte[], int, int, int, int, int[])}. */
    public void strGather(short[] source, int srcOff, int rank, int exts, int strs, int[] indexes) {
        putPatch(source, source.length, Types.SHORT, srcOff, rank, exts, strs, indexes);
    }

    /** Writes one section of {@code boolean} elements: see {@link #write(byte[], int, int)}. */
    public void write(boolean[] source, int srcOff, int numEls) {
        put(source, source.length, Types.BOOLEAN, srcOff, numEls);
    }

    /** Gathers one section of {@code boolean} elements: see {@link #gather(byte[], int, int, int[])}. */
    public void gather(boolean[] source, int numEls, int offs, int[] indexes) {
        putGathered(source, source.length, Types.BOOLEAN, numEls, offs, indexes);
    }

    /** Writes a {@code boolean} patch: see {@link #strGather(byte[], int, int, int, int, int[])}. */
    public void strGather(boolean[] source, int srcOff, int rank, int exts, int strs, int[] indexes) {
        putPatch(source, source.length, Types.BOOLEAN, srcOff, rank, exts, strs, indexes);
    }

    /** Writes one section of {@code int} elements: see {@link #write(byte[], int, int)}. */
    public void write(int[] source, int srcOff, int numEls) {
        put(source, source.length, Types.INT, srcOff, numEls);
    }

    /** Gathers one section of {@code int} elements: see {@link #gather(byte[], int, int, int[])}. */
    public void gather(int[] source, int numEls, int offs, int[] indexes) {
        putGathered(source, source.length, Types.INT, numEls, offs, indexes);
    }

    /** Writes an {@code int} patch: see {@link #strGather(byte[], int, int, int, int, int[])}. */
    public void strGather(int[] source, int srcOff, int rank, int exts, int strs, int[] indexes) {
        putPatch(source, source.length, Types.INT, srcOff, rank, exts, strs, indexes);
    }

    /** Writes one section of {@code long} elements: see {@link #write(byte[], int, int)}. */
    public void write(long[] source, int srcOff, int numEls) {
        put(source, source.length, Types.LONG, srcOff, numEls);
    }

    /** Gathers one section of {@code long} elements: see {@link #gather(byte[], int, int, int[])}. */
    public void gather(long[] source, int numEls, int offs, int[] indexes) {
        putGathered(source, source.length, Types.LONG, numEls, offs, indexes);
    }

    /** Writes a {@code long} patch: see {@link #strGather(byte[], int, int, int, int, int[])}. */
    public void strGather(long[] source, int srcOff, int rank, int exts, int strs, int[] indexes) {
        putPatch(source, source.length, Types.LONG, srcOff, rank, exts, strs, indexes);
    }

    /** Writes one section of {@code float} elements: see {@link #write(byte[], int, int)}. */
    public void write(float[] source, int srcOff, int numEls) {
        put(source, source.length, Types.FLOAT, srcOff, numEls);
    }

    /** Gathers one section of {@code float} elements: see {@link #gather(byte[], int, int, int[])}. */
    public void gather(float[] source, int numEls, int offs, int[] indexes) {
        putGathered(source, source.length, Types.FLOAT, numEls, offs, indexes);
    }

    /** Writes a {@code float} patch: see {@link #strGather(byte[], int, int, int, int, int[])}. */
    public void strGather(float[] source, int srcOff, int rank, int exts, int strs, int[] indexes) {
        putPatch(source, source.length, Types.FLOAT, srcOff, rank, exts, strs, indexes);
    }

    /** Writes one section of {@code double} elements: see {@link #write(byte[], int, int)}. */
    public void write(double[] source, int srcOff, int numEls) {
        put(source, source.length, Types.DOUBLE, srcOff, numEls);
    }

    /** Gathers one section of {@code double} elements: see {@link #gather(byte[], int, int, int[])}. */
    public void gather(double[] source, int numEls, int offs, int[] indexes) {
        putGathered(source, source.length, Types.DOUBLE, numEls, offs, indexes);
    }

    /** Writes a {@code double} patch: see {@link #strGather(byte[], int, int, int, int, int[])}. */
    public void strGather(double[] source, int srcOff, int rank, int exts, int strs, int[] indexes) {
        putPatch(source, source.length, Types.DOUBLE, srcOff, rank, exts, strs, indexes);
    }
}
