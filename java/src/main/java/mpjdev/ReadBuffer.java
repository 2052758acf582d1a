package mpjdev;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import mpjdev.core.BounceBuffer;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;
import mpjdev.core.Segments;
import mpjdev.core.Types;
import mpjdev.core.View;

/**
 * A buffer for receiving messages and reading them, section by section, in order.
 *
 * <p>Each call of a read method reads exactly one whole section. Type and number of elements must be those of
 * the section; the shape may differ from that of the writer. A call that fails changes neither position nor
 * destination. The buffer reads both byte orders. A receive returns to the first section.
 *
 * <p>Offsets, counts, extents and strides are in elements. No method blocks. One thread at a time may use a
 * buffer. Two threads at once get an {@link IllegalStateException}; the buffer does not order them.
 *
 * <p>All read methods throw {@link TypeMismatchException} and {@link SectionSizeMismatchException} if the
 * next section differs, {@link BufferReadException} after the last section and for a damaged message,
 * {@link ArrayIndexOutOfBoundsException} if elements or indices are outside their array,
 * {@link IllegalArgumentException} for negative extents or more than 2<sup>31</sup>-1 elements,
 * {@link NullPointerException} for a null array, and {@link IllegalStateException} if the buffer is closed,
 * in use, or the target of a pending receive.
 *
 * <p>The methods have an overload for each primitive type. Those for {@code byte} arrays document all of
 * them.
 */
public class ReadBuffer extends Buffer {
    /**
     * Makes an empty buffer.
     *
     * @param capacity octets of primary payload that fit, 0 to {@link #MAX_CAPACITY}; rounded up to a
     *     multiple of 8
     */
    public ReadBuffer(int capacity) {
        super(Native.newReader(capacity));
    }

    /** Returns to the first section. */
    public void reset() {
        flags = Native.RESET;
    }

    /**
     * Copies a logical message, as {@link WriteBuffer#toByteArray} returns it, into this buffer. The next
     * read reads its first section.
     *
     * @param octets headers, primary payload, secondary payload
     * @throws BufferReadException if the message is damaged or does not fit; the buffer is unchanged then
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
     * Returns the type of the next section and does not read it.
     *
     * @return the type, or null after the last section
     * @throws BufferReadException if the header of the section is damaged
     */
    public Type nextType() throws BufferReadException {
        long next = peek();
        return next < 0 ? null : Type.ofCode((int) (next >> 32));
    }

    /**
     * Returns the number of elements of the next section and does not read it.
     *
     * @return the number, or -1 after the last section
     * @throws BufferReadException if the header of the section is damaged
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
     * Returns the number of sections of the whole message, read or not.
     *
     * @return the number; 0 for an empty buffer
     * @throws BufferReadException if the message is damaged
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
     * Reads one section into a direct byte buffer. Position and limit of the buffer have no effect.
     *
     * @param dest a direct buffer; the elements get its byte order
     * @param type type of the elements, not {@link Type#OBJECT}
     * @param dstOff octets from the start of the buffer to the first element
     * @param numEls number of elements
     * @throws BufferReadException as for every read
     * @throws IllegalArgumentException if the buffer is not direct, the type is not primitive, or the buffer
     *     is a view of this message
     * @throws ReadOnlyBufferException if the buffer is read-only
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

    /**
     * Copies in Java and moves past the section only after the copy, because another thread may free the
     * memory.
     */
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
     * Reads one section in place, in the memory of the received message. Nothing is copied.
     *
     * <p>The view shows the section until this buffer is used for another message or is closed. Then it shows
     * the next contents of the memory. A sender in another process can change a message that it has sent, by
     * mistake or on purpose.
     *
     * @param type type of the elements, not {@link Type#OBJECT}
     * @param numEls number of elements
     * @return a direct, read-only buffer of the section's octets in the byte order of the message; buffers
     *     derived from it do not inherit that order; a boolean is an octet, and every value except 0 is true
     * @throws BufferReadException as for every read
     * @throws IllegalArgumentException if the type is not primitive
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

    // ---- The native calls of all types: an array is passed with its length and type code

    private void take(Object array, int length, int type, int off, int count) throws BufferReadException {
        try {
            BounceBuffer bounce = BounceBuffer.of(type, length, off, count);
            if (bounce == null) {
                Native.read(handle(), array, length, type, off, count, flags);
            } else {
                Native.readBounced(handle(), bounce.address, count, type, flags);
                bounce.get(array, type, off, count);
            }
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
     * @param dest array to copy to
     * @param dstOff index of the first element
     * @param numEls number of elements
     * @throws BufferReadException if the next section has another type or size, is damaged or does not exist
     */
    public void read(byte[] dest, int dstOff, int numEls) throws BufferReadException {
        take(dest, dest.length, Types.BYTE, dstOff, numEls);
    }

    /**
     * Reads one section into the elements {@code dest[indexes[offs + k]]}, k from 0 to {@code numEls - 1}.
     *
     * @param dest array to copy to
     * @param numEls number of elements
     * @param offs position of the first index in {@code indexes}
     * @param indexes indices of the elements in {@code dest}
     * @throws BufferReadException if the next section has another type or size, is damaged or does not exist
     */
    public void scatter(byte[] dest, int numEls, int offs, int[] indexes) throws BufferReadException {
        takeScattered(dest, dest.length, Types.BYTE, numEls, offs, indexes);
    }

    /**
     * Reads one section into a strided patch: the elements
     * {@code dest[dstOff + sum of i[d] * indexes[strs + d]]}, d from 0 to {@code rank - 1}, i[d] from 0 to
     * {@code indexes[exts + d] - 1}. The last dimension varies fastest.
     *
     * @param dest array to copy to
     * @param dstOff index of the element with all i[d] zero
     * @param rank number of dimensions; 0 means one element
     * @param exts position of the first extent in {@code indexes}
     * @param strs position of the first stride in {@code indexes}; strides may be negative
     * @param indexes extents and strides
     * @throws BufferReadException if the next section has another type or size, is damaged or does not exist
     */
    public void strScatter(byte[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferReadException {
        takePatch(dest, dest.length, Types.BYTE, dstOff, rank, exts, strs, indexes);
    }

    /** Reads one section of {@code char} elements: see {@link #read(byte[], int, int)}. */
    public void read(char[] dest, int dstOff, int numEls) throws BufferReadException {
        take(dest, dest.length, Types.CHAR, dstOff, numEls);
    }

    /** Scatters one section of {@code char} elements: see {@link #scatter(byte[], int, int, int[])}. */
    public void scatter(char[] dest, int numEls, int offs, int[] indexes) throws BufferReadException {
        takeScattered(dest, dest.length, Types.CHAR, numEls, offs, indexes);
    }

    /** Reads a {@code char} patch: see {@link #strScatter(byte[], int, int, int, int, int[])}. */
    public void strScatter(char[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferReadException {
        takePatch(dest, dest.length, Types.CHAR, dstOff, rank, exts, strs, indexes);
    }

    /** Reads one section of {@code short} elements: see {@link #read(byte[], int, int)}. */
    public void read(short[] dest, int dstOff, int numEls) throws BufferReadException {
        take(dest, dest.length, Types.SHORT, dstOff, numEls);
    }

    /** Scatters one section of {@code short} elements: see {@link #scatter(byte[], int, int, int[])}. */
    public void scatter(short[] dest, int numEls, int offs, int[] indexes) throws BufferReadException {
        takeScattered(dest, dest.length, Types.SHORT, numEls, offs, indexes);
    }

    /** Reads a {@code short} patch: see {@link #strScatter(byte[], int, int, int, int, int[])}. */
    public void strScatter(short[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferReadException {
        takePatch(dest, dest.length, Types.SHORT, dstOff, rank, exts, strs, indexes);
    }

    /** Reads one section of {@code boolean} elements: see {@link #read(byte[], int, int)}. */
    public void read(boolean[] dest, int dstOff, int numEls) throws BufferReadException {
        take(dest, dest.length, Types.BOOLEAN, dstOff, numEls);
    }

    /** Scatters one section of {@code boolean} elements: see {@link #scatter(byte[], int, int, int[])}. */
    public void scatter(boolean[] dest, int numEls, int offs, int[] indexes) throws BufferReadException {
        takeScattered(dest, dest.length, Types.BOOLEAN, numEls, offs, indexes);
    }

    /** Reads a {@code boolean} patch: see {@link #strScatter(byte[], int, int, int, int, int[])}. */
    public void strScatter(boolean[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferReadException {
        takePatch(dest, dest.length, Types.BOOLEAN, dstOff, rank, exts, strs, indexes);
    }

    /** Reads one section of {@code int} elements: see {@link #read(byte[], int, int)}. */
    public void read(int[] dest, int dstOff, int numEls) throws BufferReadException {
        take(dest, dest.length, Types.INT, dstOff, numEls);
    }

    /** Scatters one section of {@code int} elements: see {@link #scatter(byte[], int, int, int[])}. */
    public void scatter(int[] dest, int numEls, int offs, int[] indexes) throws BufferReadException {
        // An array that is scattered into itself uses the indices from before the call.
        int[] before = dest == indexes ? indexes.clone() : indexes;
        takeScattered(dest, dest.length, Types.INT, numEls, offs, before);
    }

    /** Reads an {@code int} patch: see {@link #strScatter(byte[], int, int, int, int, int[])}. */
    public void strScatter(int[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferReadException {
        takePatch(dest, dest.length, Types.INT, dstOff, rank, exts, strs, indexes);
    }

    /** Reads one section of {@code long} elements: see {@link #read(byte[], int, int)}. */
    public void read(long[] dest, int dstOff, int numEls) throws BufferReadException {
        take(dest, dest.length, Types.LONG, dstOff, numEls);
    }

    /** Scatters one section of {@code long} elements: see {@link #scatter(byte[], int, int, int[])}. */
    public void scatter(long[] dest, int numEls, int offs, int[] indexes) throws BufferReadException {
        takeScattered(dest, dest.length, Types.LONG, numEls, offs, indexes);
    }

    /** Reads a {@code long} patch: see {@link #strScatter(byte[], int, int, int, int, int[])}. */
    public void strScatter(long[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferReadException {
        takePatch(dest, dest.length, Types.LONG, dstOff, rank, exts, strs, indexes);
    }

    /** Reads one section of {@code float} elements: see {@link #read(byte[], int, int)}. */
    public void read(float[] dest, int dstOff, int numEls) throws BufferReadException {
        take(dest, dest.length, Types.FLOAT, dstOff, numEls);
    }

    /** Scatters one section of {@code float} elements: see {@link #scatter(byte[], int, int, int[])}. */
    public void scatter(float[] dest, int numEls, int offs, int[] indexes) throws BufferReadException {
        takeScattered(dest, dest.length, Types.FLOAT, numEls, offs, indexes);
    }

    /** Reads a {@code float} patch: see {@link #strScatter(byte[], int, int, int, int, int[])}. */
    public void strScatter(float[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferReadException {
        takePatch(dest, dest.length, Types.FLOAT, dstOff, rank, exts, strs, indexes);
    }

    /** Reads one section of {@code double} elements: see {@link #read(byte[], int, int)}. */
    public void read(double[] dest, int dstOff, int numEls) throws BufferReadException {
        take(dest, dest.length, Types.DOUBLE, dstOff, numEls);
    }

    /** Scatters one section of {@code double} elements: see {@link #scatter(byte[], int, int, int[])}. */
    public void scatter(double[] dest, int numEls, int offs, int[] indexes) throws BufferReadException {
        takeScattered(dest, dest.length, Types.DOUBLE, numEls, offs, indexes);
    }

    /** Reads a {@code double} patch: see {@link #strScatter(byte[], int, int, int, int, int[])}. */
    public void strScatter(double[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferReadException {
        takePatch(dest, dest.length, Types.DOUBLE, dstOff, rank, exts, strs, indexes);
    }
}
