package mpjbuf;

/** An object cannot be serialised or deserialised. */
public class DynamicBufferException extends BufferException {
    private static final long serialVersionUID = 1L;

    /**
     * Makes an exception.
     *
     * @param text the reason
     * @param cause the cause
     */
    public DynamicBufferException(String text, Throwable cause) {
        super(text, cause);
    }
}
