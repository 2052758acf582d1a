package mpjbuf;

/** The buffer is readable where it has to be writable, or the other way round. */
public class WrongStateException extends BufferException {
    private static final long serialVersionUID = 1L;

    /** Makes an exception without text. */
    public WrongStateException() {}

    /**
     * Makes an exception.
     *
     * @param text the reason
     */
    public WrongStateException(String text) {
        super(text);
    }
}
