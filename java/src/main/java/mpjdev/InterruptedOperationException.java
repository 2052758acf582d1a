package mpjdev;

/** The waiting thread was interrupted; its interrupt flag is still set. A request is still pending; a blocking receive has been withdrawn; the message of a blocking send may still arrive. */
public class InterruptedOperationException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    InterruptedOperationException(String text) {
        super(text);
    }
}
