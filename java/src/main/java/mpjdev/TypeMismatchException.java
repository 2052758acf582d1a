package mpjdev;

/** The next section holds another type. */
public class TypeMismatchException extends BufferReadException {
    private static final long serialVersionUID = 1L;

    /**
     * With a text.
     *
     * @param text what was wanted and what is there
     */
    public TypeMismatchException(String text) {
        super(text);
    }

    /** Without a text. */
    public TypeMismatchException() {}
}
