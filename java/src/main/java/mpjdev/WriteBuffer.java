package mpjdev;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;
import mpjdev.core.Segments;
import mpjdev.core.Types;
import mpjdev.core.View;

/**
 * A buffer that a message is written into, section by section.
 *
 * <p>Each call of a write method adds one section: {@link #SECTION_OVERHEAD} octets, the elements without gaps, and
 * padding up to a multiple of eight. A call that fails adds nothing. After a send the buffer may be cleared, written,
 * sent again or closed at once; writing on continues the message that was sent.
 *
 * <p>Offsets, counts, extents and strides are in elements. No method blocks. One thread at a time may use a buffer; two at
 * once are noticed ({@link IllegalStateException}), not ordered.
 *
 * <p>All write methods throw {@link BufferOverflowException} when the section does not fit,
 * {@link ArrayIndexOutOfBoundsException} when elements or indices are outside their array,
 * {@link IllegalArgumentException} for negative extents or more than 2<sup>31</sup>-1 elements,
 * {@link NullPointerException} for a null array, {@link IllegalStateException} when the buffer is closed, and
 * {@link OutOfMemoryError} when the limit on message memory is reached.
 */
public class WriteBuffer extends Buffer {
    /**
     * An empty buffer in this machine's byte order.
     *
     * @param capacity octets available to the primary payload, 0 to {@link #MAX_CAPACITY}; rounded up to a multiple of 8
     */
    public WriteBuffer(int capacity) {
        this(capacity, ByteOrder.nativeOrder());
    }

    /**
     * An empty buffer.
     *
     * @param capacity octets available to the primary payload, 0 to {@link #MAX_CAPACITY}; rounded up to a multiple of 8
     * @param order byte order of the messages written; every reader accepts both
     */
    public WriteBuffer(int capacity, ByteOrder order) {
        super(newWriter(capacity, order));
    }

    /** Empties the buffer. */
    public void clear() {
        flags = Native.CLEAR;
    }

    /**
     * The logical message as it would be sent: headers, primary payload, secondary payload.
     *
     * @return 16 + p + s octets
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
     * Number of sections written so far.
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
     * Writes one section of elements of a direct byte buffer, whose position and limit do not matter.
     *
     * @param source a direct buffer; its byte order is that of the elements in it
     * @param type type of the elements, not {@link Type#OBJECT}
     * @param srcOff octets from the start of the buffer to the first element
     * @param numEls number of elements
     * @throws IllegalArgumentException when the buffer is not direct, or the type is not primitive
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

    /** Copies in Java, and makes the section part of the message only then: the memory may be freed meanwhile. */
    private void writeShared(ByteBuffer source, Type type, int srcOff, int numEls) {
        ByteBuffer from = elementRange(source, type, srcOff, numEls);
        ByteBuffer section = View.write(handle(), type.code(), numEls, flags | Native.STAGED);
        flags = 0;
        Segments.copy(from, section, type.size());
        View.write(handle(), type.code(), numEls, 0);
    }

    /**
     * Writes one section whose elements the caller puts in place, in the memory that the message is sent from: nothing is
     * copied. The elements are undefined until they are put.
     *
     * <p>They may be put until the message is sent; what is put later, receivers may see or not. After a {@link #clear} the
     * buffer may use the same memory for its next message, so each message needs views of its own. A view that is used too
     * late, even after {@link #close}, spoils no messages but this buffer's. Its memory comes back when the view is
     * unreachable. A buffer keeps the memory of up to four messages with views that receivers have not done with; who
     * sends more at a time does so from several buffers.
     *
     * @param type type of the elements, not {@link Type#OBJECT}
     * @param numEls number of elements
     * @return a direct buffer of the section's octets, in the byte order of the message, which buffers that are derived from
     *     it do not take over; a boolean is an octet, 0 or 1
     * @throws IllegalArgumentException when the type is not primitive
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

    // ---- What all types share: the array comes with its own length and type code

    private void put(Object array, int length, int type, int off, int count) {
        try {
            Native.write(handle(), array, length, type, off, count, flags);
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
     * @param source array that the elements are copied from
     * @param srcOff first element
     * @param numEls number of elements
     */
    public void write(byte[] source, int srcOff, int numEls) {
        put(source, source.length, Types.BYTE, srcOff, numEls);
    }

    /**
     * Writes one section of the elements {@code source[indexes[offs + k]]}, k from 0 to numEls - 1.
     *
     * @param source array that the elements are copied from
     * @param numEls number of elements
     * @param offs where in {@code indexes} the indices begin
     * @param indexes element numbers
     */
    public void gather(byte[] source, int numEls, int offs, int[] indexes) {
        putGathered(source, source.length, Types.BYTE, numEls, offs, indexes);
    }

    /**
     * Writes one section of a strided patch: the elements {@code source[srcOff + sum of i[d] * indexes[strs + d]]},
     * i[d] from 0 to {@code indexes[exts + d] - 1}, the last dimension varying fastest.
     *
     * @param source array that the elements are copied from
     * @param srcOff element where all i are zero
     * @param rank number of dimensions; 0 is one element
     * @param exts where in {@code indexes} the extents begin
     * @param strs where in {@code indexes} the strides begin; strides may be negative
     * @param indexes extents and strides
     */
    public void strGather(byte[] source, int srcOff, int rank, int exts, int strs, int[] indexes) {
        putPatch(source, source.length, Types.BYTE, srcOff, rank, exts, strs, indexes);
    }

    /**
     * Writes one section of the elements {@code source[srcOff]} to {@code source[srcOff + numEls - 1]}.
     *
     * @param source array that the elements are copied from
     * @param srcOff first element
     * @param numEls number of elements
     */
    public void write(char[] source, int srcOff, int numEls) {
        put(source, source.length, Types.CHAR, srcOff, numEls);
    }

    /**
     * Writes one section of the elements {@code source[indexes[offs + k]]}, k from 0 to numEls - 1.
     *
     * @param source array that the elements are copied from
     * @param numEls number of elements
     * @param offs where in {@code indexes} the indices begin
     * @param indexes element numbers
     */
    public void gather(char[] source, int numEls, int offs, int[] indexes) {
        putGathered(source, source.length, Types.CHAR, numEls, offs, indexes);
    }

    /**
     * Writes one section of a strided patch: the elements {@code source[srcOff + sum of i[d] * indexes[strs + d]]},
     * i[d] from 0 to {@code indexes[exts + d] - 1}, the last dimension varying fastest.
     *
     * @param source array that the elements are copied from
     * @param srcOff element where all i are zero
     * @param rank number of dimensions; 0 is one element
     * @param exts where in {@code indexes} the extents begin
     * @param strs where in {@code indexes} the strides begin; strides may be negative
     * @param indexes extents and strides
     */
    public void strGather(char[] source, int srcOff, int rank, int exts, int strs, int[] indexes) {
        putPatch(source, source.length, Types.CHAR, srcOff, rank, exts, strs, indexes);
    }

    /**
     * Writes one section of the elements {@code source[srcOff]} to {@code source[srcOff + numEls - 1]}.
     *
     * @param source array that the elements are copied from
     * @param srcOff first element
     * @param numEls number of elements
     */
    public void write(short[] source, int srcOff, int numEls) {
        put(source, source.length, Types.SHORT, srcOff, numEls);
    }

    /**
     * Writes one section of the elements {@code source[indexes[offs + k]]}, k from 0 to numEls - 1.
     *
     * @param source array that the elements are copied from
     * @param numEls number of elements
     * @param offs where in {@code indexes} the indices begin
     * @param indexes element numbers
     */
    public void gather(short[] source, int numEls, int offs, int[] indexes) {
        putGathered(source, source.length, Types.SHORT, numEls, offs, indexes);
    }

    /**
     * Writes one section of a strided patch: the elements {@code source[srcOff + sum of i[d] * indexes[strs + d]]},
     * i[d] from 0 to {@code indexes[exts + d] - 1}, the last dimension varying fastest.
     *
     * @param source array that the elements are copied from
     * @param srcOff element where all i are zero
     * @param rank number of dimensions; 0 is one element
     * @param exts where in {@code indexes} the extents begin
     * @param strs where in {@code indexes} the strides begin; strides may be negative
     * @param indexes extents and strides
     */
    public void strGather(short[] source, int srcOff, int rank, int exts, int strs, int[] indexes) {
        putPatch(source, source.length, Types.SHORT, srcOff, rank, exts, strs, indexes);
    }

    /**
     * Writes one section of the elements {@code source[srcOff]} to {@code source[srcOff + numEls - 1]}.
     *
     * @param source array that the elements are copied from
     * @param srcOff first element
     * @param numEls number of elements
     */
    public void write(boolean[] source, int srcOff, int numEls) {
        put(source, source.length, Types.BOOLEAN, srcOff, numEls);
    }

    /**
     * Writes one section of the elements {@code source[indexes[offs + k]]}, k from 0 to numEls - 1.
     *
     * @param source array that the elements are copied from
     * @param numEls number of elements
     * @param offs where in {@code indexes} the indices begin
     * @param indexes element numbers
     */
    public void gather(boolean[] source, int numEls, int offs, int[] indexes) {
        putGathered(source, source.length, Types.BOOLEAN, numEls, offs, indexes);
    }

    /**
     * Writes one section of a strided patch: the elements {@code source[srcOff + sum of i[d] * indexes[strs + d]]},
     * i[d] from 0 to {@code indexes[exts + d] - 1}, the last dimension varying fastest.
     *
     * @param source array that the elements are copied from
     * @param srcOff element where all i are zero
     * @param rank number of dimensions; 0 is one element
     * @param exts where in {@code indexes} the extents begin
     * @param strs where in {@code indexes} the strides begin; strides may be negative
     * @param indexes extents and strides
     */
    public void strGather(boolean[] source, int srcOff, int rank, int exts, int strs, int[] indexes) {
        putPatch(source, source.length, Types.BOOLEAN, srcOff, rank, exts, strs, indexes);
    }

    /**
     * Writes one section of the elements {@code source[srcOff]} to {@code source[srcOff + numEls - 1]}.
     *
     * @param source array that the elements are copied from
     * @param srcOff first element
     * @param numEls number of elements
     */
    public void write(int[] source, int srcOff, int numEls) {
        put(source, source.length, Types.INT, srcOff, numEls);
    }

    /**
     * Writes one section of the elements {@code source[indexes[offs + k]]}, k from 0 to numEls - 1.
     *
     * @param source array that the elements are copied from
     * @param numEls number of elements
     * @param offs where in {@code indexes} the indices begin
     * @param indexes element numbers
     */
    public void gather(int[] source, int numEls, int offs, int[] indexes) {
        putGathered(source, source.length, Types.INT, numEls, offs, indexes);
    }

    /**
     * Writes one section of a strided patch: the elements {@code source[srcOff + sum of i[d] * indexes[strs + d]]},
     * i[d] from 0 to {@code indexes[exts + d] - 1}, the last dimension varying fastest.
     *
     * @param source array that the elements are copied from
     * @param srcOff element where all i are zero
     * @param rank number of dimensions; 0 is one element
     * @param exts where in {@code indexes} the extents begin
     * @param strs where in {@code indexes} the strides begin; strides may be negative
     * @param indexes extents and strides
     */
    public void strGather(int[] source, int srcOff, int rank, int exts, int strs, int[] indexes) {
        putPatch(source, source.length, Types.INT, srcOff, rank, exts, strs, indexes);
    }

    /**
     * Writes one section of the elements {@code source[srcOff]} to {@code source[srcOff + numEls - 1]}.
     *
     * @param source array that the elements are copied from
     * @param srcOff first element
     * @param numEls number of elements
     */
    public void write(long[] source, int srcOff, int numEls) {
        put(source, source.length, Types.LONG, srcOff, numEls);
    }

    /**
     * Writes one section of the elements {@code source[indexes[offs + k]]}, k from 0 to numEls - 1.
     *
     * @param source array that the elements are copied from
     * @param numEls number of elements
     * @param offs where in {@code indexes} the indices begin
     * @param indexes element numbers
     */
    public void gather(long[] source, int numEls, int offs, int[] indexes) {
        putGathered(source, source.length, Types.LONG, numEls, offs, indexes);
    }

    /**
     * Writes one section of a strided patch: the elements {@code source[srcOff + sum of i[d] * indexes[strs + d]]},
     * i[d] from 0 to {@code indexes[exts + d] - 1}, the last dimension varying fastest.
     *
     * @param source array that the elements are copied from
     * @param srcOff element where all i are zero
     * @param rank number of dimensions; 0 is one element
     * @param exts where in {@code indexes} the extents begin
     * @param strs where in {@code indexes} the strides begin; strides may be negative
     * @param indexes extents and strides
     */
    public void strGather(long[] source, int srcOff, int rank, int exts, int strs, int[] indexes) {
        putPatch(source, source.length, Types.LONG, srcOff, rank, exts, strs, indexes);
    }

    /**
     * Writes one section of the elements {@code source[srcOff]} to {@code source[srcOff + numEls - 1]}.
     *
     * @param source array that the elements are copied from
     * @param srcOff first element
     * @param numEls number of elements
     */
    public void write(float[] source, int srcOff, int numEls) {
        put(source, source.length, Types.FLOAT, srcOff, numEls);
    }

    /**
     * Writes one section of the elements {@code source[indexes[offs + k]]}, k from 0 to numEls - 1.
     *
     * @param source array that the elements are copied from
     * @param numEls number of elements
     * @param offs where in {@code indexes} the indices begin
     * @param indexes element numbers
     */
    public void gather(float[] source, int numEls, int offs, int[] indexes) {
        putGathered(source, source.length, Types.FLOAT, numEls, offs, indexes);
    }

    /**
     * Writes one section of a strided patch: the elements {@code source[srcOff + sum of i[d] * indexes[strs + d]]},
     * i[d] from 0 to {@code indexes[exts + d] - 1}, the last dimension varying fastest.
     *
     * @param source array that the elements are copied from
     * @param srcOff element where all i are zero
     * @param rank number of dimensions; 0 is one element
     * @param exts where in {@code indexes} the extents begin
     * @param strs where in {@code indexes} the strides begin; strides may be negative
     * @param indexes extents and strides
     */
    public void strGather(float[] source, int srcOff, int rank, int exts, int strs, int[] indexes) {
        putPatch(source, source.length, Types.FLOAT, srcOff, rank, exts, strs, indexes);
    }

    /**
     * Writes one section of the elements {@code source[srcOff]} to {@code source[srcOff + numEls - 1]}.
     *
     * @param source array that the elements are copied from
     * @param srcOff first element
     * @param numEls number of elements
     */
    public void write(double[] source, int srcOff, int numEls) {
        put(source, source.length, Types.DOUBLE, srcOff, numEls);
    }

    /**
     * Writes one section of the elements {@code source[indexes[offs + k]]}, k from 0 to numEls - 1.
     *
     * @param source array that the elements are copied from
     * @param numEls number of elements
     * @param offs where in {@code indexes} the indices begin
     * @param indexes element numbers
     */
    public void gather(double[] source, int numEls, int offs, int[] indexes) {
        putGathered(source, source.length, Types.DOUBLE, numEls, offs, indexes);
    }

    /**
     * Writes one section of a strided patch: the elements {@code source[srcOff + sum of i[d] * indexes[strs + d]]},
     * i[d] from 0 to {@code indexes[exts + d] - 1}, the last dimension varying fastest.
     *
     * @param source array that the elements are copied from
     * @param srcOff element where all i are zero
     * @param rank number of dimensions; 0 is one element
     * @param exts where in {@code indexes} the extents begin
     * @param strs where in {@code indexes} the strides begin; strides may be negative
     * @param indexes extents and strides
     */
    public void strGather(double[] source, int srcOff, int rank, int exts, int strs, int[] indexes) {
        putPatch(source, source.length, Types.DOUBLE, srcOff, rank, exts, strs, indexes);
    }
}
