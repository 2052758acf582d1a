package mpjbuf;

/** Makes memory for buffers. The garbage collector frees it. */
public abstract class BufferFactory {
    private BufferFactory() {}

    /**
     * Makes memory for a buffer.
     *
     * @param size octets
     * @return the memory
     */
    public static RawBuffer create(int size) {
        return new RawBuffer(size);
    }

    /**
     * Does nothing: the garbage collector frees memory.
     *
     * @param buffer ignored
     */
    public static void destroy(RawBuffer buffer) {}

    /**
     * Does nothing: there is one kind of memory.
     *
     * @param name ignored
     */
    public static void init(String name) {}

    /**
     * Returns whether memory can be made.
     *
     * @return true
     */
    public static boolean initialized() {
        return true;
    }

    /** Does nothing. */
    public static void shut() {}
}
