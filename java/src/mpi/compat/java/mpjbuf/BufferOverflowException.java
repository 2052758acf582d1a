package mpjbuf;

/** A section does not fit into the buffer. */
public class BufferOverflowException extends BufferException {
    private static final long serialVersionUID = 1L;

    /** Makes an exception without text. */
    public BufferOverflowException() {}

    /**
     * Makes an exception.
     *
     * @param text the reason
     */
    public BufferOverflowException(String text) {
        super(text);
    }
}
