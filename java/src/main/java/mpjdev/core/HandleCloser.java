package mpjdev.core;

import java.util.function.LongConsumer;

/**
 * Closes native handles of one kind. It is a plain class, because the first lambda costs a JVM 5 ms.
 * Internal.
 */
public final class HandleCloser implements LongConsumer {
    /** Closes a buffer. */
    public static final HandleCloser BUFFER = new HandleCloser(0);
    /** Frees a communicator. */
    public static final HandleCloser COMM = new HandleCloser(1);
    /** Frees a request. */
    public static final HandleCloser REQUEST = new HandleCloser(2);
    /** Frees a view. */
    static final HandleCloser VIEW = new HandleCloser(3);

    private final int kind;

    private HandleCloser(int kind) {
        this.kind = kind;
    }

    @Override
    public void accept(long handle) {
        switch (kind) {
            case 0:
                Native.close(handle);
                break;
            case 1:
                Native.freeComm(handle);
                break;
            case 2:
                Native.freeRequest(handle);
                break;
            default:
                Native.freeView(handle);
                break;
        }
    }
}
