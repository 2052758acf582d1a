package mpjdev;

/**
 * Communication has failed. It is the superclass of all exceptions of operations on a communicator or a
 * request.
 */
public class MPJDevException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    MPJDevException(String text) {
        super(text);
    }
}
