package mpjdev;

import xdev.XDevException;

/** The failure of a call of this package, and of package mpi. */
public class MPJDevException extends XDevException {
    private static final long serialVersionUID = 1L;

    /** Makes an exception without text. */
    public MPJDevException() {}

    /**
     * Makes an exception.
     *
     * @param text the reason
     */
    public MPJDevException(String text) {
        super(text);
    }

    /**
     * Makes an exception with the text of its cause.
     *
     * @param cause the cause
     */
    public MPJDevException(Throwable cause) {
        super(cause);
    }

    /**
     * Makes an exception.
     *
     * @param text the reason
     * @param cause the cause
     */
    public MPJDevException(String text, Throwable cause) {
        super(text, cause);
    }
}
