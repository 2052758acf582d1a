package mpjdev;

/** A message is larger than the buffer that should receive it. The message is gone, the buffer is empty. */
public class TruncationException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    TruncationException(String text) {
        super(text);
    }
}
