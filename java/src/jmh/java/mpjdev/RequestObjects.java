package mpjdev;

/** Makes the objects of requests without any communication, for benchmarks to compare with. */
public final class RequestObjects {
    /** No request has it. */
    private static final long STALE = -1;

    private RequestObjects() {}

    /**
     * What a send that is done at once makes: a request and its status.
     *
     * @return the status
     */
    public static Status ofSend() {
        return Request.of(0, null).iwait();
    }

    /**
     * What a receive makes: a request, what frees it if it is forgotten, and its status.
     *
     * @return the status
     */
    public static Status ofReceive() {
        Request.of(STALE, null).free();
        return new Status();
    }
}
