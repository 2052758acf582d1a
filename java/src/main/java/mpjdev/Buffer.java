package mpjdev;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;
import mpjdev.core.Resource;

/**
 * A message buffer of a fixed capacity. The capacity counts the primary payload only.
 *
 * <p>A message is zero or more sections, written and read strictly in order. A section of a primitive type
 * needs exactly {@link #requiredCapacity(Type, int)} octets. A section of objects needs
 * {@link #SECTION_OVERHEAD} octets; its objects travel in the secondary payload, which has no fixed size.
 * Sections end at multiples of 8 octets, so every capacity is rounded up to a multiple of 8.
 * {@link #capacity} returns the rounded number, and all rules use it.
 *
 * <p>Message memory lies outside the Java heap. {@link #close} releases it at once. The garbage collector
 * releases the memory of an unreachable buffer later. Messages in flight keep their memory.
 */
public class Buffer implements AutoCloseable {
    /** Octets of capacity of a section besides its elements. */
    public static final int SECTION_OVERHEAD = 8;
    /** Most octets of padding that follow the elements of a section. */
    public static final int MAX_SECTION_PADDING = 7;
    /** Largest capacity in octets. */
    public static final int MAX_CAPACITY = 2147483624;

    /** Flags of the next native call: {@link Native#CLEAR}, {@link Native#RESET}. */
    int flags;

    private final Resource resource;
    private final long handle;

    /**
     * Makes a buffer for subclasses, with the capacity rules of {@link WriteBuffer}.
     *
     * @param capacity octets available to the primary payload, 0 to {@link #MAX_CAPACITY}; rounded up to a
     *     multiple of 8
     */
    protected Buffer(int capacity) {
        this(newWriter(capacity, ByteOrder.nativeOrder()));
    }

    Buffer(long handle) {
        this.handle = handle;
        resource = new Resource(this, handle, Resource.BUFFER);
    }

    static long newWriter(int capacity, ByteOrder order) {
        return Native.newWriter(capacity, Objects.requireNonNull(order, "order") == ByteOrder.BIG_ENDIAN ? 0 : 1);
    }

    /**
     * Returns the byte order flag of a direct buffer. Throws the exception of Java if the buffer's arena is
     * closed or belongs to another thread: native code cannot check that.
     */
    static int orderFlag(ByteBuffer direct) {
        if (direct.capacity() > 0) {
            (direct.limit() > 0 ? direct : direct.duplicate().clear()).get(0);
        }
        return direct.order() == ByteOrder.nativeOrder() ? 0 : Native.SWAPPED;
    }

    /**
     * Returns the octets of a range of elements of a direct buffer, whose own position and limit do not
     * change.
     */
    static ByteBuffer elementRange(ByteBuffer direct, Type type, int off, int count) {
        long octets = (long) count * type.size();
        if (off < 0 || count < 0 || off + octets > direct.capacity()) {
            throw new ArrayIndexOutOfBoundsException("direct buffer, in octets: offset " + off + " and count " + octets
                    + " reach outside an array of length " + direct.capacity());
        }
        return direct.duplicate().order(direct.order()).limit((int) (off + octets)).position(off);
    }

    /**
     * Discards the state of the previous message, after a receive or a change of capacity has replaced the
     * contents.
     */
    void contentReplaced() {
        flags = 0;
    }

    /** Returns whether the buffer holds a section, read or not. */
    boolean hasContent() {
        try {
            return Native.sectionCount(handle, 0) > 0;
        } catch (NativeFailure f) {
            return true; // a damaged message is content too
        }
    }

    /** Forgets the flags after a native call has applied them. */
    void flagsApplied() {
        flags = 0;
    }

    final long handle() {
        return handle;
    }

    /**
     * Returns the octets available to the primary payload: a multiple of 8, at most 7 more than requested.
     *
     * @return the current capacity
     */
    public int capacity() {
        try {
            return Native.capacity(handle);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Raises a smaller capacity until {@link #restoreCapacity}. Discards the contents in any case.
     *
     * @param newCapacity least octets available to the primary payload; rounded up to a multiple of 8
     */
    public void ensureCapacity(int newCapacity) {
        try {
            Native.ensureCapacity(handle, newCapacity);
            contentReplaced();
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Returns to the capacity of construction and releases extra memory. Discards the contents. */
    public void restoreCapacity() {
        try {
            Native.restoreCapacity(handle);
            contentReplaced();
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Returns the octets of capacity that one section takes: {@code 8 + 8 * ceil(count * size / 8)}.
     *
     * @param type type of the elements; the size of {@link Type#OBJECT} is 0
     * @param count number of elements
     * @return the octets, possibly more than {@link #MAX_CAPACITY}
     */
    public static long requiredCapacity(Type type, int count) {
        return Native.sectionCapacity(type.code(), count);
    }

    /**
     * Returns the octets of capacity that one section for each of the arrays takes, as a sum.
     *
     * @param arrays arrays of primitives or of objects
     * @return the octets, possibly more than {@link #MAX_CAPACITY}
     * @throws IllegalArgumentException if an argument is no array
     */
    public static long requiredCapacity(Object... arrays) {
        long sum = 0;
        for (Object array : arrays) {
            sum += requiredCapacity(Type.ofArray(array), java.lang.reflect.Array.getLength(array));
        }
        return sum;
    }

    /**
     * Releases the memory. Later calls throw {@link IllegalStateException}, except that a second close does
     * nothing.
     */
    @Override
    public void close() {
        resource.close();
    }

    /** Closes the buffer, under the name of the original mpjdev: see {@link #close}. */
    public void free() {
        close();
    }
}
