package mpjdev.core;

import java.lang.ref.Cleaner;
import java.util.function.LongConsumer;

/** A native handle that {@link #close} closes, or a cleaner once its owner is unreachable. Internal. */
public final class Resource {
    private static final Cleaner CLEANER = Cleaner.create();

    private final long handle;
    private final Cleaner.Cleanable cleanable;

    /** It must not refer to the owner, or the owner would never become unreachable. */
    private static final class Close implements Runnable {
        private final long handle;
        private final LongConsumer closer;

        Close(long handle, LongConsumer closer) {
            this.handle = handle;
            this.closer = closer;
        }

        @Override
        public void run() {
            closer.accept(handle);
        }
    }

    /**
     * Takes ownership of a handle.
     *
     * @param owner object whose unreachability closes the handle
     * @param handle the handle
     * @param closer closes the handle; it does not block, refers to no owner and may be called twice
     */
    public Resource(Object owner, long handle, LongConsumer closer) {
        this.handle = handle;
        cleanable = CLEANER.register(owner, new Close(handle, closer));
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
}
