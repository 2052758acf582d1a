package mpjdev;

import java.lang.ref.Reference;
import java.util.concurrent.TimeUnit;
import mpjdev.core.Backoff;
import mpjdev.core.HandleCloser;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;
import mpjdev.core.Resource;

/**
 * A send or receive under way.
 *
 * <p>A request is active until a wait or a test has given its status. A request that becomes unreachable is freed: its
 * operation goes on, and nobody hears of it. Any thread may cancel; one thread at a time should wait for a request.
 *
 * <p>Waiting ends with {@link InterruptedOperationException} when the thread is interrupted; the flag stays set and the
 * request pending. Virtual threads may wait: they do not keep their carrier. A virtual thread that polls {@link #itest} pauses
 * with {@link java.util.concurrent.locks.LockSupport#parkNanos(long)}: threads that only {@link Thread#yield} can keep all
 * others from running.
 */
public class Request {
    /** Filler for arrays of requests: never active. */
    public static final Request MPI_REQUEST_NULL = new Request(null);

    private static final long FOREVER = -1;

    /** Null when the operation was done at once, and after it is done. */
    private volatile Resource pending;
    /** Keeps the buffer of a receive reachable. */
    private Buffer buffer;
    private Status status;
    /** An MPJDevException, or the OutOfMemoryError of a receive that found no message memory. */
    private Throwable failure;
    private boolean active;

    private Request(Buffer buffer) {
        this.buffer = buffer;
    }

    /** A request for what a native call has started: 0 for a send that is done already. */
    static Request of(long handle, Buffer buffer) {
        Request request = new Request(buffer);
        request.active = true;
        if (handle == 0) {
            request.status = Status.sent();
        } else {
            request.pending = new Resource(request, handle, HandleCloser.REQUEST);
        }
        return request;
    }

    /**
     * Waits until the operation is done. Blocks.
     *
     * @return source and tag of a received message; the same again when called again; null when the request was freed
     * @throws MPJDevException when the operation has failed
     */
    public Status iwait() {
        return await(FOREVER);
    }

    /**
     * Waits until the operation is done, for a limited time. Blocks.
     *
     * @param timeout longest wait
     * @param unit unit of the timeout
     * @return source and tag of a received message; null when the request was freed
     * @throws TimedOutException when the time is over; the request is still pending
     * @throws MPJDevException when the operation has failed
     */
    public Status iwait(long timeout, TimeUnit unit) {
        return await(Math.max(0, unit.toNanos(timeout)));
    }

    private Status await(long nanos) {
        // Read once: another thread may free the request meanwhile.
        Resource resource = pending;
        if (resource != null) {
            if (Backoff.isVirtual()) {
                park(nanos);
            } else {
                drive(resource, nanos);
            }
        }
        return consume();
    }

    private void drive(Resource resource, long nanos) {
        Status into = new Status();
        try {
            settle(resource, Native.await(resource.handle(), nanos, into), into);
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

    /** A handle that is closed is no error when another thread has freed the request, or has taken its outcome. */
    private void throwUnlessGone(IllegalStateException e) {
        if (pending != null) {
            throw e;
        }
    }

    /** As {@link #drive}, on a virtual thread. */
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
     * @return the status, or null when the operation is not done or the request was freed
     * @throws MPJDevException when the operation has failed
     */
    public Status itest() {
        return poll() ? consume() : null;
    }

    /** Whether the operation is done; its outcome is kept. */
    private boolean poll() {
        Resource resource = pending;
        if (resource == null) {
            return true;
        }
        Status into = new Status();
        try {
            long result = Native.test(resource.handle(), into);
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

    private void settle(Resource resource, long result, Status into) {
        if (result == Native.SENT) {
            status = Status.sent();
        } else {
            buffer.contentReplaced();
            status = into.received(result, buffer);
        }
        done(resource);
    }

    /** The operation has failed, unless only the wait has. */
    private void settle(Resource resource, NativeFailure f) {
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

    /** The operation has failed for want of message memory; its handle is gone. */
    private void settle(Resource resource, OutOfMemoryError e) {
        if (buffer != null) {
            buffer.contentReplaced();
        }
        failure = e;
        done(resource);
    }

    private void done(Resource resource) {
        buffer = null;
        pending = null;
        resource.close();
    }

    /** Takes the outcome of a request that was cancelled. */
    void discardOutcome() {
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
     * Cancels the operation: certain for a receive that no message has been matched with. Does not block.
     *
     * @return whether the operation will never complete; a wait then throws {@link CancelledException}
     */
    public boolean cancel() {
        Resource resource = pending;
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

    /** Lets the operation go on and forgets it (MPI_Request_free). A receive still keeps its buffer in use. */
    public void free() {
        Resource resource = pending;
        active = false;
        if (resource != null) {
            pending = null;
            resource.close();
        }
    }

    /**
     * Waits until one of several operations is done. Blocks. Null, {@link #MPI_REQUEST_NULL} and requests whose status
     * has been given are passed over.
     *
     * @param reqs requests of one rank
     * @return the status, whose {@code index} says which; null when none is active
     * @throws MPJDevException when that operation has failed
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
            // Requests were freed meanwhile: the others are waited for.
        }
    }

    /** Null when requests were freed meanwhile. */
    private static Status driveAny(Request[] reqs) {
        long[] handles = new long[reqs.length];
        for (int i = 0; i < reqs.length; i++) {
            Resource resource = isActive(reqs[i]) ? reqs[i].pending : null;
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

    /** The status of the request at this place; null for one that was freed. */
    private static Status indexed(Status status, int at) {
        if (status != null) {
            status.index = at;
        }
        return status;
    }

    /** Null when all requests were freed meanwhile. */
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
     * @return the status, whose {@code index} says which; null when none is done, or none active
     * @throws MPJDevException when that operation has failed
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
     * Waits until all operations are done. Blocks.
     *
     * @param reqs requests; null, {@link #MPI_REQUEST_NULL} and those that were freed are passed over
     * @return a status for each, null for those passed over
     * @throws MPJDevException the first failure, in the order of the array, after all are done
     * @throws OutOfMemoryError the same, when it is a receive that found no message memory
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

    /** One that is done already, as long as its status has not been given. */
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
