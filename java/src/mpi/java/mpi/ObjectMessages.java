package mpi;

import java.io.IOException;
import java.io.ObjectOutputStream;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.concurrent.ConcurrentLinkedQueue;
import mpjdev.core.MessageFilter;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;
import mpjdev.core.ObjectStreams;
import mpjdev.core.SecondaryInput;
import mpjdev.core.SecondaryOutput;
import mpjdev.core.Types;

/**
 * Messages of serialised objects. A message is one section of objects, whose stream lies in the secondary
 * payload, so it has 8 octets of primary payload for any number of objects.
 */
final class ObjectMessages {
    /** Octets of capacity that a section of objects takes. */
    private static final int CAPACITY = 8;
    /** Stream from which a buffer is closed after its message, so that idle memory stays small. */
    private static final long KEPT_MAX = 1 << 20;
    /** Octets that a packing unit has beside the stream, at most: headers and padding. */
    private static final int UNIT_OVERHEAD = 24;
    private static final int NATIVE_ORDER = ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN ? 0 : 1;

    /** Buffers without a message. An object may send another message while it is serialised. */
    private static final ConcurrentLinkedQueue<Long> WRITERS = new ConcurrentLinkedQueue<>();

    private ObjectMessages() {}

    /** Returns a buffer with a message of items of objects. {@link #release} has to follow. */
    static long write(Object[] source, int off, int items, Datatype datatype) {
        int[] places = datatype.places(off, items, source.length);
        int count = places == null ? consecutive(source, off, items, datatype) : places.length;
        Long idle = WRITERS.poll();
        long writer = idle == null ? Native.newWriter(CAPACITY, NATIVE_ORDER) : idle;
        boolean isWritten = false;
        try {
            Native.beginObjects(writer, Native.CLEAR);
            ObjectOutputStream stream = ObjectStreams.writer(new SecondaryOutput(writer), 0);
            for (int k = 0; k < count; k++) {
                stream.writeObject(source[places == null ? off + k : places[k]]);
            }
            stream.flush();
            Native.writeObjects(writer, count, 0);
            isWritten = true;
            return writer;
        } catch (IOException e) {
            throw new MPIException(MPI.ERR_OTHER, "an object cannot be serialised: " + e, e);
        } catch (StackOverflowError e) {
            throw new MPIException(MPI.ERR_OTHER, "the graph is too deep for this thread's stack: a larger one is set by -Xss",
                    e);
        } finally {
            if (!isWritten) {
                Native.close(writer);
            }
        }
    }

    /** Returns the packing unit of items of objects. */
    static byte[] octets(Object[] source, int off, int items, Datatype datatype) {
        long writer = write(source, off, items, datatype);
        try {
            byte[] unit = new byte[Math.toIntExact(Native.secondaryLength(writer, 0) + UNIT_OVERHEAD)];
            return Arrays.copyOf(unit, Native.packObjects(writer, unit, unit.length, 0));
        } finally {
            release(writer);
        }
    }

    /** Gives back a buffer whose message was sent. */
    static void release(long writer) {
        if (Native.secondaryLength(writer, 0) > KEPT_MAX) {
            Native.close(writer);
        } else {
            WRITERS.offer(writer);
        }
    }

    /** Returns a buffer for a message of objects, which the caller closes. */
    static long newReader() {
        return Native.newReader(CAPACITY);
    }

    /** Stores the objects of a received message in the first elements of items. Returns their number. */
    static int read(long reader, Object[] dest, int off, int items, Datatype datatype) {
        int[] places = datatype.places(off, items, dest.length);
        int count = places == null ? consecutive(dest, off, items, datatype) : places.length;
        try {
            long section = Native.firstSection(reader);
            if ((int) (section >> 32) != Types.OBJECT) {
                throw new MPIException(MPI.ERR_TYPE, "the message holds no objects", null);
            }
            int sent = (int) section;
            if (sent > count) {
                throw new MPIException(MPI.ERR_TRUNCATE, "a message of " + sent + " objects is longer than the receive of "
                        + count, null);
            }
            Object[] objects = new Object[sent];
            ObjectStreams.Reader stream = new ObjectStreams.Reader(new SecondaryInput(reader),
                    new MessageFilter(null, Native.secondaryLength(reader, 0)));
            Class<?> component = dest.getClass().getComponentType();
            for (int k = 0; k < sent; k++) {
                objects[k] = stream.next();
                if (objects[k] != null && !component.isInstance(objects[k])) {
                    throw new MPIException(MPI.ERR_TYPE, "object " + k + " of the message is a "
                            + objects[k].getClass().getName() + ", the array holds " + component.getName(), null);
                }
            }
            for (int k = 0; k < sent; k++) {
                dest[places == null ? off + k : places[k]] = objects[k];
            }
            return sent;
        } catch (IOException | ClassNotFoundException e) {
            throw new MPIException(MPI.ERR_OTHER, "an object cannot be deserialised: " + e, e);
        } catch (StackOverflowError e) {
            throw new MPIException(MPI.ERR_OTHER, "the graph is too deep for this thread's stack: a larger one is set by -Xss",
                    e);
        }
    }

    /** Returns the failure of a receive: what does not fit {@link #CAPACITY} holds no objects. */
    static RuntimeException failure(RuntimeException thrown) {
        boolean isLonger = thrown instanceof NativeFailure && ((NativeFailure) thrown).code() == NativeFailure.TRUNCATED;
        return isLonger ? new MPIException(MPI.ERR_TYPE, "the message holds no objects", thrown) : thrown;
    }

    /** Checks that items are inside an array. */
    static void check(Object[] array, int off, int items, Datatype datatype) {
        if (datatype.places(off, items, array.length) == null) {
            consecutive(array, off, items, datatype);
        }
    }

    /** Returns the number of elements of items without gaps, which are inside an array. */
    private static int consecutive(Object[] array, int off, int items, Datatype datatype) {
        int count = datatype.elements(items);
        if (off < 0 || count < 0 || off > array.length - count) {
            throw new ArrayIndexOutOfBoundsException("offset " + off + " and count " + count
                    + " reach outside an array of length " + array.length);
        }
        return count;
    }
}
