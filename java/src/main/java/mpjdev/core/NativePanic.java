package mpjdev.core;

/** A bug of the native engine was hit: the call failed, the process goes on. Please report it with the text. */
public final class NativePanic extends Error {
    private static final long serialVersionUID = 1L;

    /**
     * Made by native code.
     *
     * @param text what the engine said
     */
    public NativePanic(String text) {
        super(text);
    }
}
