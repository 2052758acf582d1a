package mpjdev;

/** A message is larger than the buffer of its receive. The message is lost, and the buffer is empty. */
public class TruncationException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    TruncationException(String text) {
        super(text);
    }
}
