package mpjdev;

import mpjdev.core.NativeStatus;

/** What is known about a message that was received, or that a probe has seen. */
public class Status extends NativeStatus {
    /** Rank of the sender in the communicator; {@link Comm#ANY_SOURCE} for a send. */
    public int source;
    /** Tag of the message; {@link Comm#ANY_TAG} for a send. */
    public int tag;
    /** Place of the request among those that were waited for together. */
    public int index;

    /** One that says nothing, to be filled by whoever makes it. */
    public Status() {}

    /**
     * Capacity that receiving this message needs: the octets of its first physical message without the 16 of the
     * headers. The only size that a probe knows, on every transport.
     *
     * @return octets
     */
    public int size() {
        return receivedSize();
    }

    /**
     * Number of elements of the first section.
     *
     * @return the number; 0 for a probe, for a send, and for a message without sections
     */
    public int count() {
        return receivedCount();
    }

    /**
     * Type of the elements of the first section.
     *
     * @return the type; null for a probe, for a send, and for a message without sections
     */
    public Type type() {
        int code = receivedType();
        return code == NO_TYPE ? null : Type.ofCode(code);
    }

    /** Puts in what a native call has returned. */
    final Status put(long sourceAndTag) {
        source = (int) (sourceAndTag >> 32);
        tag = (int) sourceAndTag;
        return this;
    }

    /** The status of a receive that has put its message into this buffer. */
    final Status received(long sourceAndTag, Buffer buffer) {
        put(sourceAndTag);
        return counted(buffer);
    }

    /** The same where source and tag were known before. */
    final Status received(int knownSource, int knownTag, long detail, Buffer buffer) {
        source = knownSource;
        tag = knownTag;
        set(detail);
        return counted(buffer);
    }

    private Status counted(Buffer buffer) {
        return receivedCount() < COUNT_MAX ? this : new LargeCountStatus(this, buffer);
    }

    /** The status of a send. */
    static Status sent() {
        Status status = new Status();
        status.source = Comm.ANY_SOURCE;
        status.tag = Comm.ANY_TAG;
        status.setNothing();
        return status;
    }

    /** A count that does not fit beside the type: rare, and exact all the same. */
    private static final class LargeCountStatus extends Status {
        private final int count;

        LargeCountStatus(Status status, Buffer buffer) {
            copyFrom(status);
            source = status.source;
            tag = status.tag;
            count = (int) mpjdev.core.Native.firstSection(buffer.handle());
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
