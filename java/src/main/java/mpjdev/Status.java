package mpjdev;

import mpjdev.core.NativeStatus;

/** The description of a message that was received or that a probe has found. */
public class Status extends NativeStatus {
    /** Rank of the sender in the communicator; {@link Comm#ANY_SOURCE} for a send. */
    public int source;
    /** Tag of the message; {@link Comm#ANY_TAG} for a send. */
    public int tag;
    /** Index of the request in the array of a wait or test for several requests. */
    public int index;

    /** Makes an empty status. */
    public Status() {}

    /**
     * Returns the capacity that a receive of this message needs: the octets of its first physical message
     * without the 16 octets of headers.
     *
     * @return octets
     */
    public int size() {
        return receivedSize();
    }

    /**
     * Returns the number of elements of the first section.
     *
     * @return the number; 0 for a send, for a message without sections, and for a probe if the section has
     *     not arrived: the first packet of a foreign process may be short
     */
    public int count() {
        return receivedCount();
    }

    /**
     * Returns the type of the elements of the first section.
     *
     * @return the type; null where {@link #count} is 0 for another reason than an empty section
     */
    public Type type() {
        int code = receivedType();
        return code == NO_TYPE ? null : Type.ofCode(code);
    }

    /** Stores source and tag as a native call returns them. */
    final Status put(long sourceAndTag) {
        source = (int) (sourceAndTag >> 32);
        tag = (int) sourceAndTag;
        return this;
    }

    /** Returns the status of a receive whose message is in this buffer. */
    final Status received(long sourceAndTag, Buffer buffer) {
        put(sourceAndTag);
        return counted(buffer);
    }

    /** Returns the status of a receive whose source and tag were given. */
    final Status received(int knownSource, int knownTag, long detail, Buffer buffer) {
        source = knownSource;
        tag = knownTag;
        set(detail);
        return counted(buffer);
    }

    /** Returns the status of a probe in this communicator. */
    final Status probed(long sourceAndTag, long comm) {
        put(sourceAndTag);
        return receivedCount() < COUNT_MAX ? this
                : new LargeCountStatus(this, (int) mpjdev.core.Native.probedCount(comm, source, tag));
    }

    private Status counted(Buffer buffer) {
        if (receivedCount() < COUNT_MAX) {
            return this;
        }
        return new LargeCountStatus(this, (int) mpjdev.core.Native.firstSection(buffer.handle()));
    }

    /** Returns the status of a receive into an array of this type, whose source and tag were given. */
    final Status receivedArray(int type, int knownSource, int knownTag, long detail) {
        source = knownSource;
        tag = knownTag;
        set(detail);
        return typed(type);
    }

    /** Returns the status of a receive into an array of this type. */
    final Status receivedArray(int type, long sourceAndTag) {
        put(sourceAndTag);
        return typed(type);
    }

    private Status typed(int type) {
        int count = setType(type);
        return count < COUNT_MAX ? this : new LargeCountStatus(this, count);
    }

    /** Returns the status of a send. */
    static Status sent() {
        Status status = new Status();
        status.source = Comm.ANY_SOURCE;
        status.tag = Comm.ANY_TAG;
        status.setNothing();
        return status;
    }

    /** A status with a count that is too large for the field of {@link NativeStatus}. */
    private static final class LargeCountStatus extends Status {
        private final int count;

        LargeCountStatus(Status status, int count) {
            copyFrom(status);
            source = status.source;
            tag = status.tag;
            this.count = count;
        }

        @Override
        public int count() {
            return count;
        }
    }

    @Override
    public String toString() {
        return "source " + source + ", tag " + tag + ", size " + size() + ", first section " + count() + " x " + type();
    }
}
