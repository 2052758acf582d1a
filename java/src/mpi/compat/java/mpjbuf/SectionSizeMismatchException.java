package mpjbuf;

/** The section has fewer elements. */
public class SectionSizeMismatchException extends BufferException {
    private static final long serialVersionUID = 1L;

    /** Makes an exception without text. */
    public SectionSizeMismatchException() {}

    /**
     * Makes an exception.
     *
     * @param text the reason
     */
    public SectionSizeMismatchException(String text) {
        super(text);
    }
}
