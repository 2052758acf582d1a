package mpjdev;

/** A message of a buffer that was started. */
public final class Request {
    private final mpi.Request request;

    Request(mpi.Request request) {
        this.request = request;
    }

    /**
     * Waits until the operation is done. Blocks.
     *
     * @return the status
     * @throws MPJDevException if the operation has failed
     */
    public Status iwait() {
        return request.Wait();
    }

    /**
     * Tests whether the operation is done. Does not block.
     *
     * @return the status, or null if the operation is not done
     * @throws MPJDevException if the operation has failed
     */
    public Status itest() {
        return request.Test();
    }

    /**
     * Waits until one of several operations is done. Blocks. It skips null and void requests.
     *
     * @param requests the requests
     * @return the status, with the index of the request
     * @throws MPJDevException if the operation has failed
     */
    public static Status iwaitany(Request[] requests) {
        mpi.Request[] all = new mpi.Request[requests.length];
        for (int i = 0; i < all.length; i++) {
            all[i] = requests[i] == null ? null : requests[i].request;
        }
        return mpi.Request.Waitany(all);
    }

    /**
     * Returns whether the request is void.
     *
     * @return true once a wait or a test has returned its status
     */
    public boolean isnull() {
        return request.Is_null();
    }

    /**
     * Cancels a receive that no message has matched. A wait has to follow.
     *
     * @return true: the status of the wait tells whether it was cancelled
     */
    public boolean cancel() {
        request.Cancel();
        return true;
    }
}
