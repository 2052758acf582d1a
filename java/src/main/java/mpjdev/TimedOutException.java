package mpjdev;

/** The time given is over. The request is still pending. */
public class TimedOutException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    TimedOutException(String text) {
        super(text);
    }
}
