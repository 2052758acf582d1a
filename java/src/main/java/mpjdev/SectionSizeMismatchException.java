package mpjdev;

/** The next section holds another number of elements. */
public class SectionSizeMismatchException extends BufferReadException {
    private static final long serialVersionUID = 1L;

    /**
     * With a text.
     *
     * @param text what was wanted and what is there
     */
    public SectionSizeMismatchException(String text) {
        super(text);
    }

    /** Without a text. */
    public SectionSizeMismatchException() {}
}
