package mpjdev;

import java.io.IOException;
import java.io.InvalidObjectException;
import java.io.ObjectOutputStream;
import java.lang.ref.Reference;
import java.nio.ByteOrder;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;
import mpjdev.core.ObjectStreams;
import mpjdev.core.SecondaryOutput;

/**
 * A buffer for writing sections of objects and of primitive types.
 *
 * <p>A section of objects takes {@link #SECTION_OVERHEAD} octets of capacity. The objects of all sections are
 * serialised into one stream in the secondary payload. So an object that is written twice into one message
 * arrives as one object. A write that fails adds nothing, for example if an object is not serialisable, or if
 * the graph is too deep for the thread's stack ({@link InvalidObjectException}). An object that was written
 * before a failure is serialised in full if it is written again after it.
 */
public class ObjectWriteBuffer extends WriteBuffer {
    /** The stream of the current message; null before the first section of objects and after a failed one. */
    private ObjectOutputStream stream;
    private SecondaryOutput sink;
    /** Set during a write: an object that writes into its own buffer would corrupt the message. */
    private boolean writing;

    /**
     * Makes an empty buffer in this machine's byte order.
     *
     * @param capacity octets available to the primary payload, 0 to {@link #MAX_CAPACITY}; rounded up to a
     *     multiple of 8
     */
    public ObjectWriteBuffer(int capacity) {
        super(capacity);
    }

    /**
     * Makes an empty buffer.
     *
     * @param capacity octets available to the primary payload, 0 to {@link #MAX_CAPACITY}; rounded up to a
     *     multiple of 8
     * @param order byte order of headers and primitive data; serialised objects do not depend on it
     */
    public ObjectWriteBuffer(int capacity, ByteOrder order) {
        super(capacity, order);
    }

    @Override
    public void clear() {
        super.clear();
        stream = null;
    }

    @Override
    void contentReplaced() {
        super.contentReplaced();
        stream = null;
    }

    /**
     * Does nothing, because every write completes the message. The original mpjdev needs it before each send.
     */
    public void flush() {}

    /**
     * Writes one section of the objects {@code source[srcOff]} to {@code source[srcOff + numEls - 1]}.
     *
     * @param source array of the objects; elements may be null
     * @param srcOff index of the first element
     * @param numEls number of elements
     * @throws IOException if an object cannot be serialised
     */
    public void write(Object[] source, int srcOff, int numEls) throws IOException {
        Elements.checkRange("source", srcOff, numEls, source.length);
        section(numEls, k -> source[srcOff + k]);
    }

    /**
     * Writes one section of the objects {@code source[indexes[offs + k]]}, k from 0 to {@code numEls - 1}.
     *
     * @param source array of the objects
     * @param numEls number of elements
     * @param offs position of the first index in {@code indexes}
     * @param indexes indices of the elements in {@code source}
     * @throws IOException if an object cannot be serialised
     */
    public void gather(Object[] source, int numEls, int offs, int[] indexes) throws IOException {
        int[] chosen = Elements.indices(source.length, numEls, offs, indexes);
        section(numEls, k -> source[chosen[k]]);
    }

    /**
     * Writes one section of a strided patch of objects: see
     * {@link #strGather(byte[], int, int, int, int, int[])}.
     *
     * @param source array of the objects
     * @param srcOff index of the element with all i[d] zero
     * @param rank number of dimensions; 0 means one element
     * @param exts position of the first extent in {@code indexes}
     * @param strs position of the first stride in {@code indexes}; strides may be negative
     * @param indexes extents and strides
     * @throws IOException if an object cannot be serialised
     */
    public void strGather(Object[] source, int srcOff, int rank, int exts, int strs, int[] indexes)
            throws IOException {
        int[] chosen = Elements.patch(source.length, srcOff, rank, exts, strs, indexes);
        section(chosen.length, k -> source[chosen[k]]);
    }

    private void section(int count, Elements.Source source) throws IOException {
        if (writing) {
            throw new IllegalStateException("an object writes into the buffer that it is being written into");
        }
        long before;
        try {
            before = Native.beginObjects(handle(), flags);
            flags = 0;
            writing = true;
        } catch (NativeFailure f) {
            throw Errors.write(f);
        } finally {
            Reference.reachabilityFence(this);
        }
        boolean written = false;
        try {
            serialise(count, source, before);
            Native.writeObjects(handle(), count, 0);
            written = true;
        } catch (NativeFailure f) {
            throw Errors.write(f);
        } catch (StackOverflowError e) {
            throw new InvalidObjectException("the graph is too deep for this thread's stack: a larger one is set by -Xss, or for"
                    + " a new thread by its constructor");
        } finally {
            writing = false;
            if (!written) {
                rollBack(before);
            }
            Reference.reachabilityFence(this);
        }
    }

    private void serialise(int count, Elements.Source source, long before) throws IOException {
        if (stream == null) {
            sink = new SecondaryOutput(handle());
            stream = ObjectStreams.writer(sink, before);
        }
        ObjectOutputStream begun = stream;
        for (int k = 0; k < count; k++) {
            begun.writeObject(source.get(k));
            if (stream != begun) {
                throw new IllegalStateException("an object empties the buffer that it is being written into");
            }
        }
        begun.flush();
    }

    /** Restores the payload from before a failed section. The next section begins a new stream. */
    private void rollBack(long before) {
        stream = null;
        if (sink != null) {
            sink.drop();
        }
        Native.truncateSecondary(handle(), before);
    }
}
