package mpjdev.core;

import java.lang.ref.Cleaner;
import java.util.function.LongConsumer;

/** A native handle with deterministic close and a safety net for owners that forget it. Internal. */
public final class Resource {
    private static final Cleaner CLEANER = Cleaner.create();

    private final long handle;
    private final Cleaner.Cleanable cleanable;

    /** Must not refer to the owner, or it would never become unreachable. */
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
     * Takes charge of a handle.
     *
     * @param owner the handle is closed when this becomes unreachable
     * @param handle the handle
     * @param closer what closes it: a static method that does not block and may be called twice
     */
    public Resource(Object owner, long handle, LongConsumer closer) {
        this.handle = handle;
        cleanable = CLEANER.register(owner, new Close(handle, closer));
    }

    /**
     * The handle, good or stale.
     *
     * @return the handle
     */
    public long handle() {
        return handle;
    }

    /** Closes the handle; a second time does nothing. */
    public void close() {
        cleanable.clean();
    }
}
