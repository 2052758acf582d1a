package mpjdev;

/** The timeout has expired. The request is still pending. */
public class TimedOutException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    TimedOutException(String text) {
        super(text);
    }
}
