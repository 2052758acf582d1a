package mpjdev;

/**
 * The lengths of a message contradict each other, or its headers are damaged. The message is lost, the buffer
 * empty.
 */
public class DamagedMessageException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    DamagedMessageException(String text) {
        super(text);
    }
}
