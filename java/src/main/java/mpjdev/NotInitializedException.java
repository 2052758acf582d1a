package mpjdev;

/** This rank has finished, or {@link Comm#init} was never called. */
public class NotInitializedException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    NotInitializedException(String text) {
        super(text);
    }
}
