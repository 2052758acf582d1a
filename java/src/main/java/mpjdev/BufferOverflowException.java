package mpjdev;

/** A section does not fit the buffer. Nothing was written. */
public class BufferOverflowException extends ArrayIndexOutOfBoundsException {
    private static final long serialVersionUID = 1L;

    /**
     * Makes an exception with a text.
     *
     * @param text octets needed, octets available, capacity
     */
    public BufferOverflowException(String text) {
        super(text);
    }
}
