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

    /**
     * Waits until all ranks have entered a barrier. Blocks.
     *
     * @param comm the communicator
     * @throws NativeFailure as {@link Native#barrier}
     */
    public static void barrier(long comm) {
        if (Backoff.isVirtual()) {
            complete(Native.startBarrier(comm));
        } else {
            Native.barrier(comm);
        }
    }

    /**
     * Completes a send or a receive of a virtual thread. Blocks; an interrupt does not end it.
     *
     * @param request the request, which is freed; 0 for a send that is done
     * @param into the status of a receive
     * @return as {@link Native#await}
     */
    public static long await(long request, NativeStatus into) {
        if (request == 0) {
            return Native.SENT;
        }
        Backoff backoff = new Backoff();
        long result = Native.test(request, into);
        while (result == Native.PENDING) {
            backoff.pause();
            result = Native.test(request, into);
        }
        return result;
    }

    /**
     * Completes a receive of a virtual thread into an array. Blocks; an interrupt does not end it.
     *
     * @param request the result of {@link Native#irecvArray} or {@link Native#irecvTyped}; a request is freed
     * @param array the array
     * @param length length of the array
     * @param element type code of the array
     * @param into the status of that call
     * @return as {@link Native#awaitArray}
     */
    public static long awaitArray(long request, Object array, int length, int element, NativeStatus into) {
        if (request < 0) {
            return ~request;
        }
        Backoff backoff = new Backoff();
        long result = Native.testArray(request, array, length, element, into);
        while (result == Native.PENDING) {
            backoff.pause();
            result = Native.testArray(request, array, length, element, into);
        }
        return result;
    }

    /**
     * Completes a probe of a virtual thread. Blocks; an interrupt does not end it.
     *
     * @param comm the communicator
     * @param source source, or {@link Native#ANY_SOURCE}
     * @param tag tag, or {@link Native#ANY_TAG}
     * @param into the status
     * @return as {@link Native#probe}
     */
    public static long probe(long comm, int source, int tag, NativeStatus into) {
        Backoff backoff = new Backoff();
        long result = Native.iprobe(comm, source, tag, into);
        while (result == Native.PENDING) {
            backoff.pause();
            result = Native.iprobe(comm, source, tag, into);
        }
        return result;
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
