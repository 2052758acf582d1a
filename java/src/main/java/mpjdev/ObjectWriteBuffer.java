package mpjdev;

import java.io.IOException;
import java.io.InvalidObjectException;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamConstants;
import java.io.OutputStream;
import java.lang.ref.Reference;
import java.nio.ByteOrder;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;
import mpjdev.core.SecondaryOutput;

/**
 * A buffer that sections of objects can be written into, beside those of primitive type.
 *
 * <p>A section of objects takes {@link #SECTION_OVERHEAD} octets of capacity. The objects are serialised into the secondary
 * payload, all sections of a message into one stream: an object that is written twice arrives once, as long as both writes
 * belong to one message. A write that fails, because an object cannot be serialised for example, or because the graph is too
 * deep for the thread's stack ({@link InvalidObjectException}), adds nothing; objects
 * written before it are then sent in full again when they are written again.
 */
public class ObjectWriteBuffer extends WriteBuffer {
    /** The stream of the message being written; null before the first section of objects, and after a failed one. */
    private ObjectOutputStream stream;
    private SecondaryOutput sink;
    /** An element that writes into the buffer it is being written into would tear the message. */
    private boolean writing;

    /**
     * An empty buffer in this machine's byte order.
     *
     * @param capacity octets available to the primary payload, 0 to {@link #MAX_CAPACITY}; rounded up to a multiple of 8
     */
    public ObjectWriteBuffer(int capacity) {
        super(capacity);
    }

    /**
     * An empty buffer.
     *
     * @param capacity octets available to the primary payload, 0 to {@link #MAX_CAPACITY}; rounded up to a multiple of 8
     * @param order byte order of headers and primitive data; the objects have their own
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

    /** Does nothing: every write leaves the message complete. The original needed it before each send. */
    public void flush() {}

    /**
     * Writes one section of the objects {@code source[srcOff]} to {@code source[srcOff + numEls - 1]}.
     *
     * @param source array of the objects, null among them
     * @param srcOff first element
     * @param numEls number of elements
     * @throws IOException when an object cannot be serialised
     */
    public void write(Object[] source, int srcOff, int numEls) throws IOException {
        Elements.checkRange("source", srcOff, numEls, source.length);
        section(numEls, k -> source[srcOff + k]);
    }

    /**
     * Writes one section of the objects {@code source[indexes[offs + k]]}, k from 0 to numEls - 1.
     *
     * @param source array of the objects
     * @param numEls number of elements
     * @param offs where in {@code indexes} the indices begin
     * @param indexes element numbers
     * @throws IOException when an object cannot be serialised
     */
    public void gather(Object[] source, int numEls, int offs, int[] indexes) throws IOException {
        int[] chosen = Elements.indices(source.length, numEls, offs, indexes);
        section(numEls, k -> source[chosen[k]]);
    }

    /**
     * Writes one section of a strided patch of objects (see {@link #strGather(int[], int, int, int, int, int[])}).
     *
     * @param source array of the objects
     * @param srcOff element where all i are zero
     * @param rank number of dimensions; 0 is one element
     * @param exts where in {@code indexes} the extents begin
     * @param strs where in {@code indexes} the strides begin; strides may be negative
     * @param indexes extents and strides
     * @throws IOException when an object cannot be serialised
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
            stream = before == 0 ? new ObjectOutputStream(sink) : new ContinuedStream(sink);
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

    /** Leaves the payload as it was before a failed section; the next one begins a stream of its own. */
    private void rollBack(long before) {
        stream = null;
        if (sink != null) {
            sink.drop();
        }
        Native.truncateSecondary(handle(), before);
    }

    /** Goes on in a payload that has a stream already: the reader is told to forget which objects it has seen. */
    private static final class ContinuedStream extends ObjectOutputStream {
        ContinuedStream(OutputStream out) throws IOException {
            super(reset(out));
        }

        private static OutputStream reset(OutputStream out) throws IOException {
            out.write(ObjectStreamConstants.TC_RESET);
            return out;
        }

        @Override
        protected void writeStreamHeader() {
            // The payload has one.
        }
    }
}
