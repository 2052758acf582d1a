package mpjbuf;

/** Elements are outside their array. */
public class IllegalArgumentException extends BufferException {
    private static final long serialVersionUID = 1L;

    /** Makes an exception without text. */
    public IllegalArgumentException() {}

    /**
     * Makes an exception.
     *
     * @param text the reason
     */
    public IllegalArgumentException(String text) {
        super(text);
    }
}
