package mpjbuf;

/** The memory of a {@link Buffer}. The buffer allocates it when it needs it: this is its size only. */
public final class RawBuffer {
    private final int size;

    RawBuffer(int size) {
        this.size = size;
    }

    /**
     * Returns the size.
     *
     * @return octets
     */
    public int getSize() {
        return size;
    }
}
