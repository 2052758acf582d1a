package mpjdev;

/** The next section has another type. */
public class TypeMismatchException extends BufferReadException {
    private static final long serialVersionUID = 1L;

    /**
     * Makes an exception with a text.
     *
     * @param text the expected and the actual type
     */
    public TypeMismatchException(String text) {
        super(text);
    }

    /** Makes an exception without a text. */
    public TypeMismatchException() {}
}
