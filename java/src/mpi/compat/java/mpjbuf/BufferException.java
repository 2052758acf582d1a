package mpjbuf;

/** The failure of a call of a {@link Buffer}. */
public class BufferException extends Exception {
    private static final long serialVersionUID = 1L;

    /** Makes an exception without text. */
    public BufferException() {}

    /**
     * Makes an exception.
     *
     * @param text the reason
     */
    public BufferException(String text) {
        super(text);
    }

    /**
     * Makes an exception.
     *
     * @param text the reason
     * @param cause the cause
     */
    public BufferException(String text, Throwable cause) {
        super(text, cause);
    }
}
