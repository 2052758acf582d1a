package mpjdev;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;
import mpjdev.core.Segments;
import mpjdev.core.Types;
import mpjdev.core.View;

/**
 * A buffer that messages are received into and read from, section by section, in order.
 *
 * <p>Each call of a read method takes exactly one whole section: type and number of elements must be those of the
 * section, its shape need not be that of the writer. A call that fails leaves position and destination as they were. Both
 * byte orders are understood. A receive starts at the first section again.
 *
 * <p>Offsets, counts, extents and strides are in elements. No method blocks. One thread at a time may use a buffer; two at
 * once are noticed ({@link IllegalStateException}), not ordered.
 *
 * <p>All read methods throw {@link TypeMismatchException} and {@link SectionSizeMismatchException},
 * {@link BufferReadException} after the last section and for a damaged message,
 * {@link ArrayIndexOutOfBoundsException} when elements or indices are outside their array,
 * {@link IllegalArgumentException} for negative extents or more than 2<sup>31</sup>-1 elements,
 * {@link NullPointerException} for a null array, and {@link IllegalStateException} when the buffer is closed or a
 * receive into it is pending.
 */
public class ReadBuffer extends Buffer {
    /**
     * An empty buffer.
     *
     * @param capacity octets of primary payload that fit, 0 to {@link #MAX_CAPACITY}; rounded up to a multiple of 8
     */
    public ReadBuffer(int capacity) {
        super(Native.newReader(capacity));
    }

    /** Goes back to the first section. */
    public void reset() {
        flags = Native.RESET;
    }

    /**
     * Takes a copy of a logical message, as {@link WriteBuffer#toByteArray} gives it. Reading starts at its first section.
     *
     * @param octets headers, primary payload, secondary payload
     * @throws BufferReadException when the message is damaged or does not fit; then the buffer is as it was
     */
    public void load(byte[] octets) throws BufferReadException {
        try {
            Native.load(handle(), octets, octets.length);
            contentReplaced();
        } catch (NativeFailure f) {
            throw Errors.read(f);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Type of the next section, which is not read.
     *
     * @return the type, or null after the last section
     * @throws BufferReadException when the message is damaged here
     */
    public Type nextType() throws BufferReadException {
        long next = peek();
        return next < 0 ? null : Type.ofCode((int) (next >> 32));
    }

    /**
     * Number of elements of the next section, which is not read.
     *
     * @return the number, or -1 after the last section
     * @throws BufferReadException when the message is damaged here
     */
    public int nextCount() throws BufferReadException {
        return (int) peek();
    }

    private long peek() throws BufferReadException {
        try {
            return Native.peek(handle(), flags);
        } catch (NativeFailure f) {
            throw Errors.read(f);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Number of sections of the whole message, read or not.
     *
     * @return the number; 0 for an empty buffer
     * @throws BufferReadException when the message is damaged
     */
    public int sectionCount() throws BufferReadException {
        try {
            return Native.sectionCount(handle(), flags);
        } catch (NativeFailure f) {
            throw Errors.read(f);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Reads one section into a direct byte buffer, whose position and limit do not matter.
     *
     * @param dest a direct buffer; its byte order is that which the elements get
     * @param type type of the elements, not {@link Type#OBJECT}
     * @param dstOff octets from the start of the buffer to the first element
     * @param numEls number of elements
     * @throws BufferReadException as for every read
     * @throws IllegalArgumentException when the buffer is not direct, or the type is not primitive
     * @throws ReadOnlyBufferException when the buffer is read-only
     */
    public void read(ByteBuffer dest, Type type, int dstOff, int numEls) throws BufferReadException {
        if (dest.isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
        try {
            int f = flags | orderFlag(dest);
            if (dest.isDirect() && type != Type.OBJECT && numEls >= 0 && Segments.isShared(dest)) {
                readShared(dest, type, dstOff, numEls);
                return;
            }
            Native.readDirect(handle(), dest, dstOff, type.code(), numEls, f);
            flags = 0;
        } catch (NativeFailure f) {
            throw Errors.read(f);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Copies in Java, and moves past the section only then: the memory may be freed meanwhile. */
    private void readShared(ByteBuffer dest, Type type, int dstOff, int numEls) {
        ByteBuffer to = elementRange(dest, type, dstOff, numEls);
        ByteBuffer section = View.read(handle(), type.code(), numEls, flags | Native.STAGED);
        flags = 0;
        Segments.copy(section, to, type.size());
        if (type == Type.BOOLEAN) {
            for (int at = dstOff; at < dstOff + numEls; at++) {
                dest.put(at, (byte) (dest.get(at) == 0 ? 0 : 1));
            }
        }
        View.read(handle(), type.code(), numEls, 0);
    }

    /**
     * Reads one section in place, in the memory that the message has arrived in: nothing is copied.
     *
     * <p>The view shows the section until this buffer is used for another message or is closed; then it shows whatever the
     * memory is used for next. A rank that is another process may change what it has sent, by mistake or on purpose.
     *
     * @param type type of the elements, not {@link Type#OBJECT}
     * @param numEls number of elements
     * @return a direct, read-only buffer of the section's octets, in the byte order of the message, which buffers that are
     *     derived from it do not take over; a boolean is an octet, and every one but 0 is true
     * @throws BufferReadException as for every read
     * @throws IllegalArgumentException when the type is not primitive
     */
    public ByteBuffer view(Type type, int numEls) throws BufferReadException {
        try {
            ByteBuffer octets = View.read(handle(), type.code(), numEls, flags);
            flags = 0;
            return octets;
        } catch (NativeFailure f) {
            throw Errors.read(f);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    // ---- What all types share: the array comes with its own length and type code

    private void take(Object array, int length, int type, int off, int count) throws BufferReadException {
        try {
            Native.read(handle(), array, length, type, off, count, flags);
            flags = 0;
        } catch (NativeFailure f) {
            throw Errors.read(f);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private void takeScattered(Object array, int length, int type, int count, int offs, int[] indexes) throws BufferReadException {
        try {
            Native.scatter(handle(), array, length, type, 0, count, offs, indexes, indexes.length, flags);
            flags = 0;
        } catch (NativeFailure f) {
            throw Errors.read(f);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private void takePatch(Object array, int length, int type, int off, int rank, int exts, int strs, int[] indexes) throws BufferReadException {
        try {
            Native.strScatter(handle(), array, length, type, off, rank, exts, strs, indexes, indexes.length, flags);
            flags = 0;
        } catch (NativeFailure f) {
            throw Errors.read(f);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Reads one section into the elements {@code dest[dstOff]} to {@code dest[dstOff + numEls - 1]}.
     *
     * @param dest array that the elements are copied to
     * @param dstOff first element
     * @param numEls number of elements
     * @throws BufferReadException when the next section is another one
     */
    public void read(byte[] dest, int dstOff, int numEls) throws BufferReadException {
        take(dest, dest.length, Types.BYTE, dstOff, numEls);
    }

    /**
     * Reads one section into the elements {@code dest[indexes[offs + k]]}, k from 0 to numEls - 1.
     *
     * @param dest array that the elements are copied to
     * @param numEls number of elements
     * @param offs where in {@code indexes} the indices begin
     * @param indexes element numbers
     * @throws BufferReadException when the next section is another one
     */
    public void scatter(byte[] dest, int numEls, int offs, int[] indexes) throws BufferReadException {
        takeScattered(dest, dest.length, Types.BYTE, numEls, offs, indexes);
    }

    /**
     * Reads one section into a strided patch: the elements {@code dest[dstOff + sum of i[d] * indexes[strs + d]]},
     * i[d] from 0 to {@code indexes[exts + d] - 1}, the last dimension varying fastest.
     *
     * @param dest array that the elements are copied to
     * @param dstOff element where all i are zero
     * @param rank number of dimensions; 0 is one element
     * @param exts where in {@code indexes} the extents begin
     * @param strs where in {@code indexes} the strides begin; strides may be negative
     * @param indexes extents and strides
     * @throws BufferReadException when the next section is another one
     */
    public void strScatter(byte[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferReadException {
        takePatch(dest, dest.length, Types.BYTE, dstOff, rank, exts, strs, indexes);
    }

    /**
     * Reads one section into the elements {@code dest[dstOff]} to {@code dest[dstOff + numEls - 1]}.
     *
     * @param dest array that the elements are copied to
     * @param dstOff first element
     * @param numEls number of elements
     * @throws BufferReadException when the next section is another one
     */
    public void read(char[] dest, int dstOff, int numEls) throws BufferReadException {
        take(dest, dest.length, Types.CHAR, dstOff, numEls);
    }

    /**
     * Reads one section into the elements {@code dest[indexes[offs + k]]}, k from 0 to numEls - 1.
     *
     * @param dest array that the elements are copied to
     * @param numEls number of elements
     * @param offs where in {@code indexes} the indices begin
     * @param indexes element numbers
     * @throws BufferReadException when the next section is another one
     */
    public void scatter(char[] dest, int numEls, int offs, int[] indexes) throws BufferReadException {
        takeScattered(dest, dest.length, Types.CHAR, numEls, offs, indexes);
    }

    /**
     * Reads one section into a strided patch: the elements {@code dest[dstOff + sum of i[d] * indexes[strs + d]]},
     * i[d] from 0 to {@code indexes[exts + d] - 1}, the last dimension varying fastest.
     *
     * @param dest array that the elements are copied to
     * @param dstOff element where all i are zero
     * @param rank number of dimensions; 0 is one element
     * @param exts where in {@code indexes} the extents begin
     * @param strs where in {@code indexes} the strides begin; strides may be negative
     * @param indexes extents and strides
     * @throws BufferReadException when the next section is another one
     */
    public void strScatter(char[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferReadException {
        takePatch(dest, dest.length, Types.CHAR, dstOff, rank, exts, strs, indexes);
    }

    /**
     * Reads one section into the elements {@code dest[dstOff]} to {@code dest[dstOff + numEls - 1]}.
     *
     * @param dest array that the elements are copied to
     * @param dstOff first element
     * @param numEls number of elements
     * @throws BufferReadException when the next section is another one
     */
    public void read(short[] dest, int dstOff, int numEls) throws BufferReadException {
        take(dest, dest.length, Types.SHORT, dstOff, numEls);
    }

    /**
     * Reads one section into the elements {@code dest[indexes[offs + k]]}, k from 0 to numEls - 1.
     *
     * @param dest array that the elements are copied to
     * @param numEls number of elements
     * @param offs where in {@code indexes} the indices begin
     * @param indexes element numbers
     * @throws BufferReadException when the next section is another one
     */
    public void scatter(short[] dest, int numEls, int offs, int[] indexes) throws BufferReadException {
        takeScattered(dest, dest.length, Types.SHORT, numEls, offs, indexes);
    }

    /**
     * Reads one section into a strided patch: the elements {@code dest[dstOff + sum of i[d] * indexes[strs + d]]},
     * i[d] from 0 to {@code indexes[exts + d] - 1}, the last dimension varying fastest.
     *
     * @param dest array that the elements are copied to
     * @param dstOff element where all i are zero
     * @param rank number of dimensions; 0 is one element
     * @param exts where in {@code indexes} the extents begin
     * @param strs where in {@code indexes} the strides begin; strides may be negative
     * @param indexes extents and strides
     * @throws BufferReadException when the next section is another one
     */
    public void strScatter(short[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferReadException {
        takePatch(dest, dest.length, Types.SHORT, dstOff, rank, exts, strs, indexes);
    }

    /**
     * Reads one section into the elements {@code dest[dstOff]} to {@code dest[dstOff + numEls - 1]}.
     *
     * @param dest array that the elements are copied to
     * @param dstOff first element
     * @param numEls number of elements
     * @throws BufferReadException when the next section is another one
     */
    public void read(boolean[] dest, int dstOff, int numEls) throws BufferReadException {
        take(dest, dest.length, Types.BOOLEAN, dstOff, numEls);
    }

    /**
     * Reads one section into the elements {@code dest[indexes[offs + k]]}, k from 0 to numEls - 1.
     *
     * @param dest array that the elements are copied to
     * @param numEls number of elements
     * @param offs where in {@code indexes} the indices begin
     * @param indexes element numbers
     * @throws BufferReadException when the next section is another one
     */
    public void scatter(boolean[] dest, int numEls, int offs, int[] indexes) throws BufferReadException {
        takeScattered(dest, dest.length, Types.BOOLEAN, numEls, offs, indexes);
    }

    /**
     * Reads one section into a strided patch: the elements {@code dest[dstOff + sum of i[d] * indexes[strs + d]]},
     * i[d] from 0 to {@code indexes[exts + d] - 1}, the last dimension varying fastest.
     *
     * @param dest array that the elements are copied to
     * @param dstOff element where all i are zero
     * @param rank number of dimensions; 0 is one element
     * @param exts where in {@code indexes} the extents begin
     * @param strs where in {@code indexes} the strides begin; strides may be negative
     * @param indexes extents and strides
     * @throws BufferReadException when the next section is another one
     */
    public void strScatter(boolean[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferReadException {
        takePatch(dest, dest.length, Types.BOOLEAN, dstOff, rank, exts, strs, indexes);
    }

    /**
     * Reads one section into the elements {@code dest[dstOff]} to {@code dest[dstOff + numEls - 1]}.
     *
     * @param dest array that the elements are copied to
     * @param dstOff first element
     * @param numEls number of elements
     * @throws BufferReadException when the next section is another one
     */
    public void read(int[] dest, int dstOff, int numEls) throws BufferReadException {
        take(dest, dest.length, Types.INT, dstOff, numEls);
    }

    /**
     * Reads one section into the elements {@code dest[indexes[offs + k]]}, k from 0 to numEls - 1.
     *
     * @param dest array that the elements are copied to
     * @param numEls number of elements
     * @param offs where in {@code indexes} the indices begin
     * @param indexes element numbers
     * @throws BufferReadException when the next section is another one
     */
    public void scatter(int[] dest, int numEls, int offs, int[] indexes) throws BufferReadException {
        // An array that is scattered into itself: its indices are those from before the call.
        int[] before = dest == indexes ? indexes.clone() : indexes;
        takeScattered(dest, dest.length, Types.INT, numEls, offs, before);
    }

    /**
     * Reads one section into a strided patch: the elements {@code dest[dstOff + sum of i[d] * indexes[strs + d]]},
     * i[d] from 0 to {@code indexes[exts + d] - 1}, the last dimension varying fastest.
     *
     * @param dest array that the elements are copied to
     * @param dstOff element where all i are zero
     * @param rank number of dimensions; 0 is one element
     * @param exts where in {@code indexes} the extents begin
     * @param strs where in {@code indexes} the strides begin; strides may be negative
     * @param indexes extents and strides
     * @throws BufferReadException when the next section is another one
     */
    public void strScatter(int[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferReadException {
        takePatch(dest, dest.length, Types.INT, dstOff, rank, exts, strs, indexes);
    }

    /**
     * Reads one section into the elements {@code dest[dstOff]} to {@code dest[dstOff + numEls - 1]}.
     *
     * @param dest array that the elements are copied to
     * @param dstOff first element
     * @param numEls number of elements
     * @throws BufferReadException when the next section is another one
     */
    public void read(long[] dest, int dstOff, int numEls) throws BufferReadException {
        take(dest, dest.length, Types.LONG, dstOff, numEls);
    }

    /**
     * Reads one section into the elements {@code dest[indexes[offs + k]]}, k from 0 to numEls - 1.
     *
     * @param dest array that the elements are copied to
     * @param numEls number of elements
     * @param offs where in {@code indexes} the indices begin
     * @param indexes element numbers
     * @throws BufferReadException when the next section is another one
     */
    public void scatter(long[] dest, int numEls, int offs, int[] indexes) throws BufferReadException {
        takeScattered(dest, dest.length, Types.LONG, numEls, offs, indexes);
    }

    /**
     * Reads one section into a strided patch: the elements {@code dest[dstOff + sum of i[d] * indexes[strs + d]]},
     * i[d] from 0 to {@code indexes[exts + d] - 1}, the last dimension varying fastest.
     *
     * @param dest array that the elements are copied to
     * @param dstOff element where all i are zero
     * @param rank number of dimensions; 0 is one element
     * @param exts where in {@code indexes} the extents begin
     * @param strs where in {@code indexes} the strides begin; strides may be negative
     * @param indexes extents and strides
     * @throws BufferReadException when the next section is another one
     */
    public void strScatter(long[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferReadException {
        takePatch(dest, dest.length, Types.LONG, dstOff, rank, exts, strs, indexes);
    }

    /**
     * Reads one section into the elements {@code dest[dstOff]} to {@code dest[dstOff + numEls - 1]}.
     *
     * @param dest array that the elements are copied to
     * @param dstOff first element
     * @param numEls number of elements
     * @throws BufferReadException when the next section is another one
     */
    public void read(float[] dest, int dstOff, int numEls) throws BufferReadException {
        take(dest, dest.length, Types.FLOAT, dstOff, numEls);
    }

    /**
     * Reads one section into the elements {@code dest[indexes[offs + k]]}, k from 0 to numEls - 1.
     *
     * @param dest array that the elements are copied to
     * @param numEls number of elements
     * @param offs where in {@code indexes} the indices begin
     * @param indexes element numbers
     * @throws BufferReadException when the next section is another one
     */
    public void scatter(float[] dest, int numEls, int offs, int[] indexes) throws BufferReadException {
        takeScattered(dest, dest.length, Types.FLOAT, numEls, offs, indexes);
    }

    /**
     * Reads one section into a strided patch: the elements {@code dest[dstOff + sum of i[d] * indexes[strs + d]]},
     * i[d] from 0 to {@code indexes[exts + d] - 1}, the last dimension varying fastest.
     *
     * @param dest array that the elements are copied to
     * @param dstOff element where all i are zero
     * @param rank number of dimensions; 0 is one element
     * @param exts where in {@code indexes} the extents begin
     * @param strs where in {@code indexes} the strides begin; strides may be negative
     * @param indexes extents and strides
     * @throws BufferReadException when the next section is another one
     */
    public void strScatter(float[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferReadException {
        takePatch(dest, dest.length, Types.FLOAT, dstOff, rank, exts, strs, indexes);
    }

    /**
     * Reads one section into the elements {@code dest[dstOff]} to {@code dest[dstOff + numEls - 1]}.
     *
     * @param dest array that the elements are copied to
     * @param dstOff first element
     * @param numEls number of elements
     * @throws BufferReadException when the next section is another one
     */
    public void read(double[] dest, int dstOff, int numEls) throws BufferReadException {
        take(dest, dest.length, Types.DOUBLE, dstOff, numEls);
    }

    /**
     * Reads one section into the elements {@code dest[indexes[offs + k]]}, k from 0 to numEls - 1.
     *
     * @param dest array that the elements are copied to
     * @param numEls number of elements
     * @param offs where in {@code indexes} the indices begin
     * @param indexes element numbers
     * @throws BufferReadException when the next section is another one
     */
    public void scatter(double[] dest, int numEls, int offs, int[] indexes) throws BufferReadException {
        takeScattered(dest, dest.length, Types.DOUBLE, numEls, offs, indexes);
    }

    /**
     * Reads one section into a strided patch: the elements {@code dest[dstOff + sum of i[d] * indexes[strs + d]]},
     * i[d] from 0 to {@code indexes[exts + d] - 1}, the last dimension varying fastest.
     *
     * @param dest array that the elements are copied to
     * @param dstOff element where all i are zero
     * @param rank number of dimensions; 0 is one element
     * @param exts where in {@code indexes} the extents begin
     * @param strs where in {@code indexes} the strides begin; strides may be negative
     * @param indexes extents and strides
     * @throws BufferReadException when the next section is another one
     */
    public void strScatter(double[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferReadException {
        takePatch(dest, dest.length, Types.DOUBLE, dstOff, rank, exts, strs, indexes);
    }
}
