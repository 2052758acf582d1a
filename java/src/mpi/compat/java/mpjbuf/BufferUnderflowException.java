package mpjbuf;

/** The buffer has no further section. */
public class BufferUnderflowException extends BufferException {
    private static final long serialVersionUID = 1L;

    /** Makes an exception without text. */
    public BufferUnderflowException() {}

    /**
     * Makes an exception.
     *
     * @param text the reason
     */
    public BufferUnderflowException(String text) {
        super(text);
    }
}
