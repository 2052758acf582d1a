package mpjbuf;

/** The messages of buffers, for the packages that send and receive them. Internal. */
public final class Messages {
    private Messages() {}

    /**
     * Returns the message of a buffer.
     *
     * @param buffer the buffer, whose section ends
     * @return a native buffer, which the caller closes
     * @throws BufferException if objects cannot be serialised
     */
    public static long of(Buffer buffer) throws BufferException {
        return buffer.message();
    }

    /**
     * Returns a place for a message that a buffer has room for.
     *
     * @param buffer the buffer
     * @return an empty native buffer, which the caller closes
     */
    public static long reader(Buffer buffer) {
        return buffer.reader();
    }

    /**
     * Replaces the contents of a buffer.
     *
     * @param buffer the buffer, readable afterwards
     * @param reader a native buffer with a message
     * @throws BufferException if the buffer has no room for it, and stays as it is
     */
    public static void received(Buffer buffer, long reader) throws BufferException {
        buffer.received(reader);
    }

    /**
     * Appends a section to a buffer, or begins a message if the last one was sent.
     *
     * @param buffer the buffer
     * @param type type of the elements
     * @param source array of the elements
     * @param off index of the first one
     * @param n number of elements
     * @param indexes their indexes, or null for consecutive ones
     * @throws BufferException if the buffer is not writable, or they do not fit
     */
    public static void append(Buffer buffer, Type type, Object source, int off, int n, int[] indexes)
            throws BufferException {
        buffer.begin();
        buffer.putSectionHeader(type);
        if (indexes == null) {
            buffer.put(type, source, off, n);
        } else {
            buffer.putIndexed(type, source, n, 0, indexes);
        }
    }

    /**
     * Takes all elements of the section that was begun.
     *
     * @param buffer the buffer
     * @param type type of the elements
     * @param dest array for the elements
     * @param off index of the first one
     * @param indexes their indexes, or null for consecutive ones
     * @return octets of the sections up to this one
     * @throws BufferException if the section has another type, or the array is too short
     */
    public static int take(Buffer buffer, Type type, Object dest, int off, int[] indexes) throws BufferException {
        int n = buffer.getSectionSize();
        if (indexes == null) {
            buffer.take(type, dest, off, n);
        } else {
            buffer.takeIndexed(type, dest, n, 0, indexes);
        }
        return buffer.position();
    }
}
