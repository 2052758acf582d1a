package mpjdev.core;

import java.lang.ref.Cleaner;
import java.util.function.LongConsumer;

/**
 * A native handle that {@link #close} closes, or a cleaner once its owner is unreachable. Internal.
 *
 * <p>It is the cleaner's action itself, so it must not refer to the owner.
 */
public final class Resource implements Runnable {
    private static final Cleaner CLEANER = Cleaner.create();

    private final long handle;
    private final LongConsumer closer;
    private final Cleaner.Cleanable cleanable;

    /**
     * Takes ownership of a handle.
     *
     * @param owner object whose unreachability closes the handle
     * @param handle the handle
     * @param closer closes the handle; it does not block, refers to no owner and may be called twice
     */
    public Resource(Object owner, long handle, LongConsumer closer) {
        this.handle = handle;
        this.closer = closer;
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

    /** The cleaner's action, which runs once. */
    @Override
    public void run() {
        closer.accept(handle);
    }
}
