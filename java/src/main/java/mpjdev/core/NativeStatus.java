package mpjdev.core;

/**
 * What native code tells about a message beside source and tag: the part of a status that is filled by reference.
 * Internal; a face's status extends it, so that a receive makes one object.
 */
public class NativeStatus {
    /** Largest count that fits beside the type; a larger one is asked of the buffer. */
    protected static final int COUNT_MAX = (1 << 28) - 1;
    /** Type code that stands for "no section". */
    protected static final int NO_TYPE = 15;

    /** Size in bits 32 to 62, type code of the first section in bits 28 to 31, its count below. Set by native code. */
    private long detail;

    /** Made by a face. */
    protected NativeStatus() {}

    /**
     * Octets of the first physical message without its headers.
     *
     * @return the octets
     */
    protected final int receivedSize() {
        return (int) (detail >>> 32);
    }

    /**
     * Type code of the first section.
     *
     * @return the code, or {@link #NO_TYPE}
     */
    protected final int receivedType() {
        return (int) (detail >>> 28) & 15;
    }

    /**
     * Number of elements of the first section.
     *
     * @return the number; {@link #COUNT_MAX} stands for that many or more
     */
    protected final int receivedCount() {
        return (int) detail & COUNT_MAX;
    }

    /**
     * Puts in what a native call has returned.
     *
     * @param returned size, type and count
     */
    protected final void set(long returned) {
        detail = returned;
    }

    /** Says that there is no section and no size. */
    protected final void setNothing() {
        detail = (long) NO_TYPE << 28;
    }

    /**
     * Takes over what native code has set in another object.
     *
     * @param other the other one
     */
    protected final void copyFrom(NativeStatus other) {
        detail = other.detail;
    }
}
