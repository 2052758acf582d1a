package mpjdev;

import java.io.IOException;
import java.io.InvalidObjectException;
import java.io.ObjectInputFilter;
import java.lang.ref.Reference;
import mpjdev.core.MessageFilter;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;
import mpjdev.core.ObjectStreams;
import mpjdev.core.SecondaryInput;

/**
 * A buffer for reading sections of objects and of primitive types.
 *
 * <p>Objects are deserialised under a filter with these limits:
 * <ul>
 * <li>No array has more elements than the payload has octets, and all arrays together have at most twice that
 * number.
 * <li>References are at most 1000 deep; {@code -Dmpjdev.filter.depth} sets another limit.
 * <li>Hash codes of the platform's collections take at most 64 steps for each octet of the payload and
 * 2<sup>20</sup> more; {@code -Dmpjdev.filter.work} sets another limit.
 * <li>The filters of {@link #setObjectFilter}, of {@code -Dmpjdev.filter} and of the JVM may reject more.
 * Hash codes of a program's own classes are not counted, so only these filters limit them.
 * </ul>
 *
 * <p>Classes are found through the thread's context class loader first. A read that fails changes neither
 * position nor destination. A graph that is too deep for the thread's stack is an
 * {@link java.io.InvalidObjectException}.
 */
public class ObjectReadBuffer extends ReadBuffer {
    private ObjectInputFilter filter;
    private ObjectStreams.Reader stream;
    /** Number of objects in the sections that were read. */
    private long objectsRead;
    /**
     * Set during a read: an object that reads from its own buffer, resets or refills it would corrupt the
     * message.
     */
    private boolean reading;

    /**
     * Makes an empty buffer. A message with objects certainly fits if the capacity is that of the sender's
     * buffer.
     *
     * @param capacity octets of primary payload that fit, 0 to {@link #MAX_CAPACITY}; rounded up to a
     *     multiple of 8
     */
    public ObjectReadBuffer(int capacity) {
        super(capacity);
    }

    /**
     * Sets a filter in addition to those that always apply.
     *
     * @param filter rejects classes that this buffer must not deserialise; null removes it
     */
    public void setObjectFilter(ObjectInputFilter filter) {
        this.filter = filter;
        stream = null;
    }

    @Override
    public void reset() {
        super.reset();
        forget();
    }

    @Override
    void contentReplaced() {
        super.contentReplaced();
        forget();
    }

    private void forget() {
        stream = null;
        objectsRead = 0;
    }

    /**
     * Reads one section into the elements {@code dest[dstOff]} to {@code dest[dstOff + numEls - 1]}.
     *
     * @param dest array for the objects
     * @param dstOff index of the first element
     * @param numEls number of elements
     * @throws BufferReadException if the next section has another type or size, is damaged or does not exist
     * @throws IOException if the stream is damaged or a filter rejects it
     * @throws ClassNotFoundException if a class does not exist
     * @throws ArrayStoreException if an object does not fit the type of the array
     */
    public void read(Object[] dest, int dstOff, int numEls) throws IOException, ClassNotFoundException {
        Elements.checkRange("destination", dstOff, numEls, dest.length);
        Object[] objects = section(numEls, dest.getClass().getComponentType());
        System.arraycopy(objects, 0, dest, dstOff, numEls);
    }

    /**
     * Reads one section into the elements {@code dest[indexes[offs + k]]}, k from 0 to {@code numEls - 1}.
     *
     * @param dest array for the objects
     * @param numEls number of elements
     * @param offs position of the first index in {@code indexes}
     * @param indexes indices of the elements in {@code dest}
     * @throws IOException as for {@link #read(Object[], int, int)}
     * @throws ClassNotFoundException if a class does not exist
     */
    public void scatter(Object[] dest, int numEls, int offs, int[] indexes)
            throws IOException, ClassNotFoundException {
        scatter(dest, Elements.indices(dest.length, numEls, offs, indexes));
    }

    /**
     * Reads one section into a strided patch: see {@link #strScatter(byte[], int, int, int, int, int[])}.
     *
     * @param dest array for the objects
     * @param dstOff index of the element with all i[d] zero
     * @param rank number of dimensions; 0 means one element
     * @param exts position of the first extent in {@code indexes}
     * @param strs position of the first stride in {@code indexes}; strides may be negative
     * @param indexes extents and strides
     * @throws IOException as for {@link #read(Object[], int, int)}
     * @throws ClassNotFoundException if a class does not exist
     */
    public void strScatter(Object[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws IOException, ClassNotFoundException {
        int[] own = indexes.clone();
        try {
            // Check before the elements are listed: a product of extents can exceed the memory.
            Native.checkObjects(
                    handle(), Native.patchCount(dest.length, dstOff, rank, exts, strs, own, own.length), flags);
        } catch (NativeFailure f) {
            throw Errors.read(f);
        } finally {
            Reference.reachabilityFence(this);
        }
        scatter(dest, Elements.patch(dest.length, dstOff, rank, exts, strs, own));
    }

    private void scatter(Object[] dest, int[] chosen) throws IOException, ClassNotFoundException {
        Object[] objects = section(chosen.length, dest.getClass().getComponentType());
        for (int k = 0; k < chosen.length; k++) {
            dest[chosen[k]] = objects[k];
        }
    }

    /** Deserialises one section and moves past it. A failure leaves the position. */
    private Object[] section(int count, Class<?> component) throws IOException, ClassNotFoundException {
        if (reading) {
            throw new IllegalStateException("an object reads from the buffer that it is being read from");
        }
        try {
            Native.checkObjects(handle(), count, flags);
            flags = 0;
            boolean read = false;
            reading = true;
            try {
                Object[] objects = deserialise(count);
                checkStore(objects, component);
                Native.readObjects(handle(), count, 0);
                objectsRead += count;
                read = true;
                return objects;
            } catch (StackOverflowError e) {
                throw new InvalidObjectException("the graph is too deep for this thread's stack: a larger one is set by -Xss, or"
                        + " for a new thread by its constructor");
            } finally {
                reading = false;
                if (!read) {
                    // The stream is past the section: the next read begins a new one and skips the objects
                    // read before.
                    stream = null;
                }
            }
        } catch (NativeFailure f) {
            throw Errors.read(f);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private Object[] deserialise(int count) throws IOException, ClassNotFoundException {
        if (stream == null) {
            stream = new ObjectStreams.Reader(new SecondaryInput(handle()),
                    new MessageFilter(filter, Native.secondaryLength(handle(), 0)));
            ObjectStreams.Reader again = stream;
            for (long passed = 0; passed < objectsRead; passed++) {
                next(again);
            }
        }
        ObjectStreams.Reader begun = stream;
        Object[] objects = new Object[count];
        for (int k = 0; k < count; k++) {
            objects[k] = next(begun);
        }
        return objects;
    }

    private Object next(ObjectStreams.Reader begun) throws IOException, ClassNotFoundException {
        Object object = begun.next();
        if (stream != begun) {
            throw new IllegalStateException("an object resets or refills the buffer that it is being read from");
        }
        return object;
    }

    private static void checkStore(Object[] objects, Class<?> component) {
        for (int k = 0; k < objects.length; k++) {
            if (objects[k] != null && !component.isInstance(objects[k])) {
                throw new ArrayStoreException("object " + k + " of the section is a " + objects[k].getClass().getName()
                        + ", the array holds " + component.getName());
            }
        }
    }
}
