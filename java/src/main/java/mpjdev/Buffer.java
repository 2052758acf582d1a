package mpjdev;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;
import mpjdev.core.HandleCloser;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;
import mpjdev.core.Resource;

/**
 * A message buffer of a fixed capacity, which counts the primary payload only.
 *
 * <p>A message is zero or more sections, written and read strictly in order. The sections of primitive type need
 * {@link #requiredCapacity(Type, int)} octets each, no more and no less; a section of objects needs
 * {@link #SECTION_OVERHEAD}, its objects travel in the secondary payload, which has no fixed size. Sections end at multiples
 * of 8 octets, so every capacity is rounded up to the next multiple of 8: {@link #capacity} gives the rounded number, and all
 * rules use it.
 *
 * <p>Message memory is outside the Java heap. {@link #close} gives it back at once; a buffer that becomes unreachable gives
 * it back too, later. Messages under way keep what they need.
 */
public class Buffer implements AutoCloseable {
    /** Octets of capacity that each section takes beside its elements. */
    public static final int SECTION_OVERHEAD = 8;
    /** Most octets of padding that follow the elements of a section. */
    public static final int MAX_SECTION_PADDING = 7;
    /** Largest capacity in octets. */
    public static final int MAX_CAPACITY = 2147483624;

    /** What the next native call does first: {@link Native#CLEAR}, {@link Native#RESET}. */
    int flags;

    private final Resource resource;
    private final long handle;

    /**
     * A buffer for subclasses; it takes what a {@link WriteBuffer} does.
     *
     * @param capacity octets available to the primary payload, 0 to {@link #MAX_CAPACITY}; rounded up to a multiple of 8
     */
    protected Buffer(int capacity) {
        this(newWriter(capacity, ByteOrder.nativeOrder()));
    }

    Buffer(long handle) {
        this.handle = handle;
        resource = new Resource(this, handle, HandleCloser.BUFFER);
    }

    static long newWriter(int capacity, ByteOrder order) {
        return Native.newWriter(capacity, Objects.requireNonNull(order, "order") == ByteOrder.BIG_ENDIAN ? 0 : 1);
    }

    /** Also throws what Java does for a buffer whose arena is closed or another thread's: native code would not see that. */
    static int orderFlag(ByteBuffer direct) {
        if (direct.capacity() > 0) {
            (direct.limit() > 0 ? direct : direct.duplicate().clear()).get(0);
        }
        return direct.order() == ByteOrder.nativeOrder() ? 0 : Native.SWAPPED;
    }

    /** The octets of some elements of a direct buffer; position and limit of the buffer itself do not matter, and stay. */
    static ByteBuffer elementRange(ByteBuffer direct, Type type, int off, int count) {
        long octets = (long) count * type.size();
        if (off < 0 || count < 0 || off + octets > direct.capacity()) {
            throw new ArrayIndexOutOfBoundsException("direct buffer, in octets: offset " + off + " and count " + octets
                    + " reach outside an array of length " + direct.capacity());
        }
        return direct.duplicate().order(direct.order()).limit((int) (off + octets)).position(off);
    }

    /** A new message is there, or none any more: what is kept about the one before is forgotten. */
    void contentReplaced() {
        flags = 0;
    }

    /** Whether there is a section, read or not. */
    boolean hasContent() {
        try {
            return Native.sectionCount(handle, 0) > 0;
        } catch (NativeFailure f) {
            return true; // the sections of a damaged message cannot be counted
        }
    }

    /** A native call has carried the flags out. A position that was reset for it is at the start anyway. */
    void flagsApplied() {
        flags = 0;
    }

    final long handle() {
        return handle;
    }

    /**
     * Octets available to the primary payload: a multiple of 8, at most 7 more than was asked for.
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
     * Lets the capacity grow, where it is smaller, until {@link #restoreCapacity}. The contents are discarded in any
     * case.
     *
     * @param newCapacity octets available to the primary payload at least; rounded up to a multiple of 8
     */
    public void ensureCapacity(int newCapacity) {
        try {
            Native.ensureCapacity(handle, newCapacity);
            contentReplaced();
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Goes back to the capacity of construction and releases extra memory. The contents are discarded. */
    public void restoreCapacity() {
        try {
            Native.restoreCapacity(handle);
            contentReplaced();
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Octets of capacity that one section takes: {@code 8 + 8 * ceil(count * size / 8)}.
     *
     * @param type type of the elements; the size of {@link Type#OBJECT} is 0
     * @param count number of elements
     * @return the octets, which may be more than any buffer has
     */
    public static long requiredCapacity(Type type, int count) {
        return Native.sectionCapacity(type.code(), count);
    }

    /**
     * Octets of capacity that a section of each of these arrays takes together.
     *
     * @param arrays arrays of primitives, or of objects
     * @return the octets, which may be more than any buffer has
     * @throws IllegalArgumentException when one is no array
     */
    public static long requiredCapacity(Object... arrays) {
        long sum = 0;
        for (Object array : arrays) {
            sum += requiredCapacity(Type.ofArray(array), java.lang.reflect.Array.getLength(array));
        }
        return sum;
    }

    /**
     * Gives the memory back. Whatever uses the message afterwards throws {@link IllegalStateException}; to close it again does
     * nothing.
     */
    @Override
    public void close() {
        resource.close();
    }

    /** Does what {@link #close} does: the original name. */
    public void free() {
        close();
    }
}
