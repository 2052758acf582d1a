package mpjdev;

/** A rank, a tag or a list of ranks is invalid. */
public class BadArgumentException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    BadArgumentException(String text) {
        super(text);
    }
}
