package mpjdev;

/** A message's lengths contradict each other, or its headers are damaged. It is gone, the buffer is empty. */
public class DamagedMessageException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    DamagedMessageException(String text) {
        super(text);
    }
}
