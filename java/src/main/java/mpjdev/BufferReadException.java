package mpjdev;

import java.io.IOException;

/** A section cannot be read: there is none, it is another one, or the message is damaged. */
public class BufferReadException extends IOException {
    private static final long serialVersionUID = 1L;

    /**
     * With a text.
     *
     * @param text what was wanted and what is there
     */
    public BufferReadException(String text) {
        super(text);
    }

    /** Without a text. */
    public BufferReadException() {}
}
