package mpjdev;

/** This rank has finished, or never begun. */
public class NotInitializedException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    NotInitializedException(String text) {
        super(text);
    }
}
