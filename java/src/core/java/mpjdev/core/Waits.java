package mpjdev.core;

/** Waits for native operations; those of virtual threads do not block in native code. Internal. */
public final class Waits {
    private static final String INTERRUPTED = NativeFailure.INTERRUPTED + " -1 interrupted in a collective operation";

    private Waits() {}

    /**
     * Completes a collective operation. Blocks.
     *
     * @param operation the operation, which is freed
     * @return the new communicator, or 0
     * @throws NativeFailure as {@link Native#advance}
     */
    public static long complete(long operation) {
        try {
            return Backoff.isVirtual() ? park(operation) : Native.advance(operation, true);
        } finally {
            Native.freeOperation(operation);
        }
    }

    private static long park(long operation) {
        Backoff backoff = new Backoff();
        long made = Native.advance(operation, false);
        while (made == Native.PENDING) {
            if (Thread.currentThread().isInterrupted()) {
                throw new NativeFailure(INTERRUPTED);
            }
            backoff.pause();
            made = Native.advance(operation, false);
        }
        return made;
    }
}
