package mpjdev.core;

/** What native code asks of Java, all of it on threads that Java gave it and outside any hot path. */
final class Upcalls {
    /** How long to wait for buffers that the collector has found to give their memory back. */
    private static final int RECLAIM_MILLIS = 100;

    private Upcalls() {}

    /** Whether the calling thread has been interrupted; its flag stays set. */
    static boolean isInterrupted() {
        return Thread.currentThread().isInterrupted();
    }

    /** Has unreachable buffers close, as far as a collection and a short wait can. */
    static boolean reclaim() {
        long before = Native.usedMemory();
        System.gc();
        long end = System.nanoTime() + RECLAIM_MILLIS * 1_000_000L;
        // A condition with a deadline: the Cleaner closes buffers in its own time.
        while (Native.usedMemory() >= before && System.nanoTime() < end) {
            Thread.onSpinWait();
            Thread.yield();
        }
        return true;
    }
}
