package mpjdev;

/**
 * The waiting thread was interrupted. Its interrupt flag is still set.
 *
 * <p>A request is still pending. A blocking receive was cancelled. The message of a blocking send may still
 * arrive.
 */
public class InterruptedOperationException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    InterruptedOperationException(String text) {
        super(text);
    }
}
