package mpjdev.core;

/**
 * The part of a status that native code fills by reference: size, type and count of a message. The public
 * status extends it, so that a receive makes one object. Internal.
 */
public class NativeStatus {
    /** Largest count that fits beside the type. The buffer knows a larger one. */
    protected static final int COUNT_MAX = (1 << 28) - 1;
    /** Type code that stands for "no section". */
    protected static final int NO_TYPE = 15;

    /**
     * Size in bits 32 to 62, type code of the first section in bits 28 to 31, its count below. Set by native
     * code.
     */
    private long detail;

    /** Makes a status without a message. */
    protected NativeStatus() {}

    /**
     * Returns the octets of the first physical message without its headers.
     *
     * @return the octets
     */
    protected final int receivedSize() {
        return (int) (detail >>> 32);
    }

    /**
     * Returns the type code of the first section.
     *
     * @return the code, or {@link #NO_TYPE}
     */
    protected final int receivedType() {
        return (int) (detail >>> 28) & 15;
    }

    /**
     * Returns the number of elements of the first section.
     *
     * @return the number; {@link #COUNT_MAX} means at least this number
     */
    protected final int receivedCount() {
        return (int) detail & COUNT_MAX;
    }

    /**
     * Stores the result of a native call.
     *
     * @param returned size, type and count
     */
    protected final void set(long returned) {
        detail = returned;
    }

    /**
     * Adds the type to the result of a receive into an array, which is the size in bits 32 to 62 and the
     * number of elements below.
     *
     * @param type type code of the array
     * @return the number of elements
     */
    protected final int setType(int type) {
        int count = (int) detail;
        detail = detail >>> 32 << 32 | (long) type << 28 | Math.min(count, COUNT_MAX);
        return count;
    }

    /** Stores that there is no section and no size. */
    protected final void setNothing() {
        detail = (long) NO_TYPE << 28;
    }

    /**
     * Copies the values that native code has set in another object.
     *
     * @param other the other object
     */
    protected final void copyFrom(NativeStatus other) {
        detail = other.detail;
    }
}
