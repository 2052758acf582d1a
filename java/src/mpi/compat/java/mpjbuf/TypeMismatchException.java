package mpjbuf;

/** The section has elements of another type. */
public class TypeMismatchException extends BufferException {
    private static final long serialVersionUID = 1L;

    /** Makes an exception without text. */
    public TypeMismatchException() {}

    /**
     * Makes an exception.
     *
     * @param text the reason
     */
    public TypeMismatchException(String text) {
        super(text);
    }
}
