package mpjdev.core;

import java.lang.ref.Cleaner;

/**
 * A native handle that {@link #close} closes, or a cleaner once its owner is unreachable. Internal.
 *
 * <p>It is the cleaner's action itself, so it must not refer to the owner.
 */
public class Resource implements Runnable {
    /** A buffer. */
    public static final int BUFFER = 0;
    /** A communicator. */
    public static final int COMM = 1;
    /** A view. */
    static final int VIEW = 2;
    /** A datatype. */
    public static final int TYPE = 3;

    private static final Cleaner CLEANER = Cleaner.create();

    private final long handle;
    private final int kind;
    private final Cleaner.Cleanable cleanable;

    /**
     * Takes ownership of a handle.
     *
     * @param owner object whose unreachability closes the handle
     * @param handle the handle
     * @param kind one of the constants of this class
     */
    public Resource(Object owner, long handle, int kind) {
        this.handle = handle;
        this.kind = kind;
        cleanable = CLEANER.register(owner, this);
    }

    /**
     * Returns the handle, valid or stale.
     *
     * @return the handle
     */
    public long handle() {
        return handle;
    }

    /** Closes the handle. A second call does nothing. */
    public void close() {
        cleanable.clean();
    }

    /** Closes the handle; the cleaner's action, which runs once. It does not block. */
    @Override
    public void run() {
        switch (kind) {
            case BUFFER:
                Native.close(handle);
                break;
            case COMM:
                Native.freeComm(handle);
                break;
            case TYPE:
                Native.freeType(handle);
                break;
            default:
                Native.freeView(handle);
                break;
        }
    }
}
