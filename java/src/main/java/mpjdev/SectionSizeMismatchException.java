package mpjdev;

/** The next section has another number of elements. */
public class SectionSizeMismatchException extends BufferReadException {
    private static final long serialVersionUID = 1L;

    /**
     * Makes an exception with a text.
     *
     * @param text the expected and the actual number of elements
     */
    public SectionSizeMismatchException(String text) {
        super(text);
    }

    /** Makes an exception without a text. */
    public SectionSizeMismatchException() {}
}
