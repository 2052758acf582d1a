package mpjdev;

/** The request was cancelled. */
public class CancelledException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    CancelledException(String text) {
        super(text);
    }
}
