package mpjdev.core;

import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * The native request of a Java object, which is freed once that object is unreachable. Internal.
 *
 * <p>A {@link java.lang.ref.Cleaner} keeps its actions in a list under a lock, and that takes longer than the
 * rest of a short receive. Here a reference is stored under the slot of the native handle, until
 * the slot is used again.
 */
public final class PendingRequest extends PhantomReference<Object> {
    private static final int CHUNK = 1024;
    private static final int CHUNKS = 4096;
    private static final ReferenceQueue<Object> UNREACHABLE = new ReferenceQueue<>();
    /** The references by the slot of their handle, so that they are reachable. */
    private static final AtomicReferenceArray<PendingRequest[]> KEPT = new AtomicReferenceArray<>(CHUNKS);

    private final long handle;
    /** Native code has closed the handle, or does. */
    private volatile boolean isClosed;

    static {
        // It inherits nothing of the thread that happens to be first.
        Thread thread = new Thread(null, PendingRequest::closeUnreachable, "mpjdev-requests", 0, false);
        thread.setContextClassLoader(null);
        thread.setDaemon(true);
        thread.start();
    }

    /**
     * Takes ownership of a handle.
     *
     * @param owner object whose unreachability closes the handle
     * @param handle the handle
     */
    public PendingRequest(Object owner, long handle) {
        super(owner, UNREACHABLE);
        this.handle = handle;
        int slot = (int) handle;
        PendingRequest[] chunk = KEPT.get(slot / CHUNK);
        if (chunk == null) {
            chunk = addChunk(slot / CHUNK);
        }
        // No other thread stores here: the slot has this request until native code removes it.
        chunk[slot % CHUNK] = this;
    }

    private static PendingRequest[] addChunk(int at) {
        KEPT.compareAndSet(at, null, new PendingRequest[CHUNK]);
        return KEPT.get(at);
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
        if (!isClosed) {
            isClosed = true;
            Native.freeRequest(handle);
        }
    }

    /** Forgets the handle, which native code has closed. */
    public void release() {
        isClosed = true;
    }

    private static void closeUnreachable() {
        while (true) {
            try {
                ((PendingRequest) UNREACHABLE.remove()).close();
            } catch (InterruptedException | RuntimeException | OutOfMemoryError e) {
                // The next one may succeed, as with a cleaner.
            }
        }
    }
}
