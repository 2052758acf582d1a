package mpjdev;

import java.lang.ref.Reference;
import java.util.concurrent.TimeUnit;
import mpjdev.core.Backoff;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;
import mpjdev.core.PendingRequest;

/**
 * A pending send or receive.
 *
 * <p>A request is active until a wait or a test has returned its status. The garbage collector frees an
 * unreachable request: its operation continues without one. Any thread may cancel; one thread at a time
 * should wait for a request.
 *
 * <p>A wait throws {@link InterruptedOperationException} if its thread is interrupted. The flag stays set,
 * and the request stays pending. Virtual threads may wait: they do not keep their carrier. A virtual thread
 * that polls {@link #itest} should pause with {@link java.util.concurrent.locks.LockSupport#parkNanos(long)}:
 * threads that only {@link Thread#yield} can prevent all others from running.
 */
public class Request {
    /** Filler for arrays of requests: never active. */
    public static final Request MPI_REQUEST_NULL = new Request(null, null, 0, 0);

    private static final long FOREVER = -1;

    /** The native request; null once the operation is done. */
    private volatile PendingRequest pending;
    /** Keeps the buffer of a receive reachable. */
    private Buffer buffer;
    /** The array of a receive into one, which each wait and test passes; else null. */
    private final Object array;
    private final int length;
    private final int type;
    private Status status;
    /** Status that was made with the request; null for none. */
    private Status reserved;
    /** An MPJDevException, or the OutOfMemoryError of a receive without message memory. */
    private Throwable failure;
    private boolean active;

    private Request(Buffer buffer, Object array, int length, int type) {
        this.buffer = buffer;
        this.array = array;
        this.length = length;
        this.type = type;
    }

    /** Makes a request for the result of a native call, which is 0 for a send that is done. */
    static Request of(long handle, Buffer buffer) {
        return started(new Request(buffer, null, 0, 0), handle);
    }

    /** Makes the request of a receive into an array. */
    static Request of(long handle, Object array, int length, int type) {
        return started(new Request(null, array, length, type), handle);
    }

    /** Makes the request of a receive into an array of a native call, which has this result and status. */
    static Request of(long started, Object array, int length, int type, Status into) {
        if (started >= 0) {
            Request request = of(started, array, length, type);
            request.reserved = into;
            return request;
        }
        return received(into.receivedArray(type, ~started));
    }

    /** Makes the request of a receive that is done. */
    static Request received(Status status) {
        Request request = new Request(null, null, 0, 0);
        request.active = true;
        request.status = status;
        return request;
    }

    private static Request started(Request request, long handle) {
        request.active = true;
        if (handle == 0) {
            request.status = Status.sent();
        } else {
            request.pending = new PendingRequest(request, handle);
        }
        return request;
    }

    /**
     * Waits until the operation is done. Blocks.
     *
     * @return source and tag of a received message, also in a repeated call; null if the request was freed
     * @throws MPJDevException if the operation has failed
     */
    public Status iwait() {
        return await(FOREVER);
    }

    /**
     * Waits until the operation is done, for a limited time. Blocks.
     *
     * @param timeout longest wait
     * @param unit unit of the timeout
     * @return source and tag of a received message; null if the request was freed
     * @throws TimedOutException if the timeout expires; the request is still pending
     * @throws MPJDevException if the operation has failed
     */
    public Status iwait(long timeout, TimeUnit unit) {
        return await(Math.max(0, unit.toNanos(timeout)));
    }

    private Status await(long nanos) {
        // Read once, because another thread may free the request at any time.
        PendingRequest resource = pending;
        if (resource != null) {
            if (Backoff.isVirtual()) {
                park(nanos);
            } else {
                drive(resource, nanos);
            }
        }
        return consume();
    }

    private void drive(PendingRequest resource, long nanos) {
        Status into = reserved == null ? new Status() : reserved;
        try {
            long result = array == null ? Native.await(resource.handle(), nanos, into)
                    : Native.awaitArray(resource.handle(), array, length, type, nanos, into);
            settle(resource, result, into);
        } catch (NativeFailure f) {
            settle(resource, f);
        } catch (OutOfMemoryError e) {
            settle(resource, e);
        } catch (IllegalStateException e) {
            throwUnlessGone(e);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Ignores a closed handle if another thread has freed the request or has taken its result. */
    private void throwUnlessGone(IllegalStateException e) {
        if (pending != null) {
            throw e;
        }
    }

    /** Waits as {@link #drive} does, on a virtual thread. */
    private void park(long nanos) {
        long begun = System.nanoTime();
        Backoff backoff = new Backoff();
        while (!poll()) {
            if (Thread.currentThread().isInterrupted()) {
                throw new InterruptedOperationException("interrupted while waiting; the request is still pending");
            }
            if (nanos >= 0 && System.nanoTime() - begun >= nanos) {
                throw new TimedOutException("timed out after " + nanos + " ns; the request is still pending");
            }
            backoff.pause();
        }
    }

    /**
     * Tests whether the operation is done. Does not block.
     *
     * @return the status, or null if the operation is not done or the request was freed
     * @throws MPJDevException if the operation has failed
     */
    public Status itest() {
        return poll() ? consume() : null;
    }

    /** Returns whether the operation is done, and stores its result. */
    private boolean poll() {
        PendingRequest resource = pending;
        if (resource == null) {
            return true;
        }
        Status into = reserved == null ? new Status() : reserved;
        try {
            long result = array == null ? Native.test(resource.handle(), into)
                    : Native.testArray(resource.handle(), array, length, type, into);
            if (result == Native.PENDING) {
                return false;
            }
            settle(resource, result, into);
        } catch (NativeFailure f) {
            settle(resource, f);
        } catch (OutOfMemoryError e) {
            settle(resource, e);
        } catch (IllegalStateException e) {
            throwUnlessGone(e);
        } finally {
            Reference.reachabilityFence(this);
        }
        return true;
    }

    private void settle(PendingRequest resource, long result, Status into) {
        if (result == Native.SENT) {
            status = Status.sent();
        } else if (array != null) {
            status = into.receivedArray(type, result);
        } else {
            buffer.contentReplaced();
            status = into.received(result, buffer);
        }
        buffer = null;
        pending = null;
        // The native call has removed the request.
        resource.release();
    }

    /**
     * Stores the failure of the operation. A timeout or an interrupt is a failure of the wait only and is
     * thrown.
     */
    private void settle(PendingRequest resource, NativeFailure f) {
        RuntimeException exception = Errors.comm(f);
        if (f.code() == NativeFailure.TIMED_OUT || f.code() == NativeFailure.INTERRUPTED) {
            throw exception;
        }
        if (buffer != null) {
            buffer.contentReplaced();
        }
        failure = exception;
        done(resource);
    }

    /** Stores that the operation has failed without message memory. Native code has freed the handle. */
    private void settle(PendingRequest resource, OutOfMemoryError e) {
        if (buffer != null) {
            buffer.contentReplaced();
        }
        failure = e;
        done(resource);
    }

    private void done(PendingRequest resource) {
        buffer = null;
        pending = null;
        resource.close();
    }

    /** Waits for a receive on a virtual thread. An interrupt withdraws the receive. */
    Status iwaitOrWithdraw() {
        try {
            return iwait();
        } catch (InterruptedOperationException e) {
            if (cancel()) {
                discardOutcome();
                throw e;
            }
            // The message was matched before the cancellation, so the receive completes. The flag is set
            // again afterwards.
            boolean interrupted = Thread.interrupted();
            try {
                return iwait();
            } finally {
                if (interrupted) {
                    Thread.currentThread().interrupt();
                }
            }
        }
    }

    /** Discards the result of a cancelled request. */
    private void discardOutcome() {
        if (poll()) {
            active = false;
        }
    }

    private Status consume() {
        active = false;
        if (failure instanceof Error) {
            throw (Error) failure;
        }
        if (failure != null) {
            throw (RuntimeException) failure;
        }
        return status;
    }

    /**
     * Cancels the operation. The cancellation of a receive without a matched message always succeeds. A send
     * is cancelled only while it is queued in its own process, before its first octets leave, and over a C
     * MPI never. Does not block.
     *
     * @return true if the operation will never complete; a wait then throws {@link CancelledException}
     */
    public boolean cancel() {
        PendingRequest resource = pending;
        if (resource == null) {
            return false;
        }
        try {
            return Native.cancel(resource.handle());
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Frees the request (MPI_Request_free). Its operation continues, and a receive still keeps its buffer in
     * use.
     */
    public void free() {
        PendingRequest resource = pending;
        active = false;
        if (resource != null) {
            pending = null;
            resource.close();
        }
    }

    /**
     * Waits until one of several operations is done. Blocks. It skips null, {@link #MPI_REQUEST_NULL} and
     * requests that are not active.
     *
     * @param reqs requests of one rank
     * @return the status, whose {@code index} is the index of the request; null if no request is active
     * @throws MPJDevException if that operation has failed
     */
    public static Status iwaitany(Request[] reqs) {
        while (true) {
            Status done = takeFinished(reqs);
            if (done != null || !anyActive(reqs)) {
                return done;
            }
            done = Backoff.isVirtual() ? parkAny(reqs) : driveAny(reqs);
            if (done != null) {
                return done;
            }
            // Another thread has freed requests: wait for the rest.
        }
    }

    /** Waits in native code. Returns null if another thread has freed requests. */
    private static Status driveAny(Request[] reqs) {
        long[] handles = new long[reqs.length];
        for (int i = 0; i < reqs.length; i++) {
            PendingRequest resource = isActive(reqs[i]) ? reqs[i].pending : null;
            handles[i] = resource == null ? 0 : resource.handle();
        }
        try {
            int at = Native.awaitAny(handles, handles.length, handles.length, FOREVER);
            return at < 0 ? null : indexed(reqs[at].iwait(), at);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } catch (IllegalStateException e) {
            for (int i = 0; i < reqs.length; i++) {
                if (handles[i] != 0 && (!isActive(reqs[i]) || reqs[i].pending == null)) {
                    return null;
                }
            }
            throw e;
        } finally {
            Reference.reachabilityFence(reqs);
        }
    }

    /** Sets the index of a status; null, of a freed request, stays null. */
    private static Status indexed(Status status, int at) {
        if (status != null) {
            status.index = at;
        }
        return status;
    }

    /** Waits on a virtual thread. Returns null if other threads have freed all requests. */
    private static Status parkAny(Request[] reqs) {
        Backoff backoff = new Backoff();
        while (true) {
            Status status = itestany(reqs);
            if (status != null || !anyActive(reqs)) {
                return status;
            }
            if (Thread.currentThread().isInterrupted()) {
                throw new InterruptedOperationException("interrupted while waiting; the requests are still pending");
            }
            backoff.pause();
        }
    }

    /**
     * Tests whether one of several operations is done. Does not block.
     *
     * @param reqs requests of one rank
     * @return the status, whose {@code index} is the index of the request; null if no request is done or
     *     active
     * @throws MPJDevException if that operation has failed
     */
    public static Status itestany(Request[] reqs) {
        for (int i = 0; i < reqs.length; i++) {
            if (isActive(reqs[i]) && reqs[i].poll()) {
                Status status = indexed(reqs[i].consume(), i);
                if (status != null) {
                    return status;
                }
            }
        }
        return null;
    }

    /**
     * Waits until all operations are done. Blocks. It skips null, {@link #MPI_REQUEST_NULL} and freed
     * requests.
     *
     * @param reqs the requests
     * @return a status for each request, null for each that is skipped
     * @throws MPJDevException the first failure in the order of the array, after all are done
     * @throws OutOfMemoryError the first failure, if it is a receive without message memory
     */
    public static Status[] iwaitall(Request[] reqs) {
        Status[] all = new Status[reqs.length];
        Throwable first = null;
        for (int i = 0; i < reqs.length; i++) {
            if (reqs[i] == null || reqs[i] == MPI_REQUEST_NULL) {
                continue;
            }
            try {
                all[i] = indexed(reqs[i].iwait(), i);
            } catch (TimedOutException | InterruptedOperationException e) {
                throw e;
            } catch (RuntimeException | OutOfMemoryError e) {
                first = first == null ? e : first;
            }
        }
        if (first instanceof Error) {
            throw (Error) first;
        }
        if (first != null) {
            throw (RuntimeException) first;
        }
        return all;
    }

    /** Returns the status of an active request that is done, or null. */
    private static Status takeFinished(Request[] reqs) {
        for (int i = 0; i < reqs.length; i++) {
            if (isActive(reqs[i]) && reqs[i].pending == null) {
                Status status = indexed(reqs[i].consume(), i);
                if (status != null) {
                    return status;
                }
            }
        }
        return null;
    }

    private static boolean anyActive(Request[] reqs) {
        for (Request request : reqs) {
            if (isActive(request)) {
                return true;
            }
        }
        return false;
    }

    private static boolean isActive(Request request) {
        return request != null && request.active;
    }
}
