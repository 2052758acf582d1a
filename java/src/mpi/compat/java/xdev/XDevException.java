package xdev;

/** The failure of a call of a communication library. */
public class XDevException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Makes an exception without text. */
    public XDevException() {}

    /**
     * Makes an exception.
     *
     * @param text the reason
     */
    public XDevException(String text) {
        super(text);
    }

    /**
     * Makes an exception with the text of its cause.
     *
     * @param cause the cause
     */
    public XDevException(Throwable cause) {
        super(cause);
    }

    /**
     * Makes an exception.
     *
     * @param text the reason
     * @param cause the cause
     */
    public XDevException(String text, Throwable cause) {
        super(text, cause);
    }
}
