package mpjdev;

import java.io.IOException;

/** A section cannot be read: it does not exist, has another type or size, or the message is damaged. */
public class BufferReadException extends IOException {
    private static final long serialVersionUID = 1L;

    /**
     * Makes an exception with a text.
     *
     * @param text the expected and the actual section
     */
    public BufferReadException(String text) {
        super(text);
    }

    /** Makes an exception without a text. */
    public BufferReadException() {}
}
