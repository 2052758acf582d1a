package mpjdev.core;

import java.lang.ref.Cleaner;

/** A native handle with deterministic close and a safety net for owners that forget it. Internal. */
public final class Resource {
    private static final Cleaner CLEANER = Cleaner.create();

    private final long handle;
    private final Cleaner.Cleanable cleanable;

    /** Must not refer to the owner, or it would never become unreachable. */
    private static final class Close implements Runnable {
        private final long handle;

        Close(long handle) {
            this.handle = handle;
        }

        @Override
        public void run() {
            Native.close(handle);
        }
    }

    /**
     * Takes charge of a buffer's handle.
     *
     * @param owner closed over when it becomes unreachable
     * @param handle the buffer
     */
    public Resource(Object owner, long handle) {
        this.handle = handle;
        cleanable = CLEANER.register(owner, new Close(handle));
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
