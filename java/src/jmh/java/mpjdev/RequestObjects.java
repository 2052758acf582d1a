package mpjdev;

/** The objects of requests without any communication, as a baseline of benchmarks. */
public final class RequestObjects {
    /** A handle that no request has: the first slot, in a generation far ahead. */
    private static final long STALE = (long) Integer.MAX_VALUE << 32;

    private RequestObjects() {}

    /**
     * Makes the objects of a send that is done at once: a request and its status.
     *
     * @return the status
     */
    public static Status ofSend() {
        return Request.of(0, null).iwait();
    }

    /**
     * Makes the objects of a receive: a request, the reference that frees it, and its status.
     *
     * @return the status
     */
    public static Status ofReceive() {
        Request.of(STALE, null).free();
        return new Status();
    }
}
