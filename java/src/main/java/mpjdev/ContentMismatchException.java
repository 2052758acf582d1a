package mpjdev;

/**
 * A message that was received into an array holds something else: elements of another type, several sections
 * or none, or objects. The message is lost, and the array has not changed.
 */
public class ContentMismatchException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    ContentMismatchException(String text) {
        super(text);
    }
}
