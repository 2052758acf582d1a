package mpjdev.core;

/** A bug of the native engine. The call has failed; the process continues. Please report the text. */
public final class NativePanic extends Error {
    private static final long serialVersionUID = 1L;

    /**
     * Makes an error; native code calls it.
     *
     * @param text the text of the panic
     */
    public NativePanic(String text) {
        super(text);
    }
}
