package mpi;

import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import mpjdev.core.Backoff;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;
import mpjdev.core.PendingRequest;
import mpjdev.core.Resource;

/**
 * A send or a receive that was started (MPI-1.1, section 3.7).
 *
 * <p>A request is active until a wait or a test has returned its status; then it is void. Two threads may not
 * use one request at once. The garbage collector frees an unreachable request: its send continues, and its
 * receive stores nothing. A wait throws if its thread is interrupted; the request stays active then, and the
 * thread interrupted.
 */
public class Request {
    private static final long FOREVER = -1;
    /** Receives that were freed before they were done. */
    private static final ConcurrentLinkedQueue<Rest> FREED = new ConcurrentLinkedQueue<>();
    /** Whether there may be any of them. */
    private static volatile boolean hasFreed;

    /** The communicator; null for a request that was never begun. */
    CommCore owner;
    /** The native request; null once the operation is done. */
    private PendingRequest pending;
    /** The array of a receive; null for a send. */
    private Object array;
    private int length;
    /** The buffer of a receive of objects, with the first index for them; else null. */
    private Resource reader;
    private int off;
    /** Items that a receive has room for. */
    private int count;
    private Datatype datatype;
    /** Result of a receive that is done; null if there is none. */
    private Status status;
    /** Failure of the operation, an MPIException or an OutOfMemoryError; null if there is none. */
    private Throwable failure;
    private boolean active;

    Request() {}

    /** Begins a send; the handle is 0 if it is done. */
    final Request begin(long handle) {
        return begin(handle, null, 0, null, 0);
    }

    /** Begins a receive into an array. */
    final Request begin(long handle, Object into, int room, Datatype type, int items) {
        array = into;
        length = room;
        datatype = type;
        count = items;
        active = true;
        pending = handle == 0 ? null : new PendingRequest(this, handle);
        return this;
    }

    /** Begins a receive into an array, whose result this status takes. */
    final Request begin(long handle, Object into, int room, Datatype type, int items, Status result) {
        status = result;
        return begin(handle, into, room, type, items);
    }

    /** Begins a receive of objects. */
    final Request begin(long handle, Resource buffer, Object[] into, int at, int room, Datatype type) {
        reader = buffer;
        off = at;
        return begin(handle, into, into.length, type, room);
    }

    /** Begins an operation that is done at once. */
    final Request begin(Status done) {
        active = true;
        status = done;
        return this;
    }

    // ---- One request

    /**
     * Waits until the operation is done. Blocks. The request is void afterwards.
     *
     * @return source, tag and number of items of a received message; an empty status for a send and for a
     *     void request
     * @throws MPIException if the operation has failed
     */
    public Status Wait() throws MPIException {
        finish();
        return take(MPI.UNDEFINED);
    }

    /**
     * Tests whether the operation is done. Does not block. If it is, the request is void afterwards.
     *
     * @return the status as of {@link #Wait}; null if the operation is not done
     * @throws MPIException if the operation has failed
     */
    public Status Test() throws MPIException {
        return poll() ? take(MPI.UNDEFINED) : null;
    }

    /**
     * Returns whether the request is void.
     *
     * @return true unless the request is active
     */
    public boolean Is_null() {
        return !active;
    }

    /**
     * Tests whether the operation is done, as {@link #Test} does, and leaves the request active.
     *
     * @return the status as of {@link #Wait}; null if the operation is not done
     * @throws MPIException if the operation has failed
     */
    public Status Get_status() throws MPIException {
        if (!poll()) {
            return null;
        }
        if (failure instanceof MPIException) {
            throw owner.raised((MPIException) failure);
        }
        rethrow(failure);
        return status == null ? new Status() : status;
    }

    /**
     * Makes the request void at once (MPI-1.1, section 3.7.3). Its operation continues: a send is delivered,
     * and a receive stores its elements when a later call of this rank has received a message, has waited or
     * has tested. Status and failure are dropped.
     */
    public void Free() {
        if (pending != null && array != null) {
            FREED.add(new Rest(this));
            hasFreed = true;
        } else if (pending != null) {
            pending.close();
        }
        done();
        active = false;
        status = null;
        failure = null;
    }

    /** A receive that was freed before it was done. */
    private static final class Rest extends Request {
        /** Its reader is closed when this object is unreachable. */
        private final Request freed;

        Rest(Request freed) {
            this.freed = freed;
            super.takeOver(freed);
        }

        /** Returns whether it is done. Several threads may ask. */
        synchronized boolean isOver() {
            try {
                return super.poll();
            } finally {
                Reference.reachabilityFence(freed);
            }
        }
    }

    private void takeOver(Request other) {
        owner = other.owner;
        array = other.array;
        length = other.length;
        reader = other.reader;
        off = other.off;
        count = other.count;
        datatype = other.datatype;
        pending = new PendingRequest(this, other.pending.handle());
        other.pending.release();
        other.reader = null;
    }

    /** Stores the elements of freed receives that are done. */
    static void sweepFreed() {
        if (hasFreed) {
            FREED.removeIf(Rest::isOver);
            hasFreed = false;
            hasFreed = !FREED.isEmpty();
        }
    }

    /** Stores the elements of freed receives that are done, and forgets the others. */
    static void leaveFreed() {
        sweepFreed();
        for (Request rest = FREED.poll(); rest != null; rest = FREED.poll()) {
            PendingRequest resource = rest.pending;
            if (resource != null) {
                resource.close();
            }
        }
    }

    /**
     * Cancels a receive that no message has matched (MPI-1.1, section 3.8). Does not block. A send is never
     * cancelled. A wait or a test has to follow; {@link Status#Test_cancelled} returns the outcome.
     *
     * @throws MPIException if this rank has ended
     */
    public void Cancel() throws MPIException {
        PendingRequest resource = pending;
        if (resource == null || array == null) {
            return;
        }
        try {
            Native.cancel(resource.handle());
        } catch (RuntimeException e) {
            throw owner.raised(Failures.of(e));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private void finish() {
        PendingRequest resource = pending;
        if (resource == null) {
            return;
        }
        if (Backoff.isVirtual()) {
            Backoff backoff = new Backoff();
            while (!poll()) {
                backoff.pause();
            }
            return;
        }
        Status into = result();
        try {
            settle(array == null || reader != null ? Native.await(resource.handle(), FOREVER, into)
                    : Native.awaitArray(resource.handle(), array, length, datatype.element, FOREVER, into));
        } catch (RuntimeException e) {
            settle(e);
        } catch (OutOfMemoryError e) {
            fail(e);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Returns whether the operation is done, and stores its result. */
    private boolean poll() {
        PendingRequest resource = pending;
        if (resource == null) {
            return true;
        }
        Status into = result();
        try {
            long result = array == null || reader != null ? Native.test(resource.handle(), into)
                    : Native.testArray(resource.handle(), array, length, datatype.element, into);
            if (result == Native.PENDING) {
                return false;
            }
            settle(result);
        } catch (RuntimeException e) {
            settle(e);
        } catch (OutOfMemoryError e) {
            fail(e);
        } finally {
            Reference.reachabilityFence(this);
        }
        return true;
    }

    /** Returns the status that native code fills. Each test of an operation fills the same one. */
    private Status result() {
        if (status == null) {
            status = new Status();
        }
        return status;
    }

    private void settle(long result) {
        if (reader != null) {
            store(status, result, reader.handle());
        } else if (array != null) {
            status.received(result, datatype).given(count);
        }
        pending.release();
        done();
    }

    /** Stores a message that was received into a buffer of its own. */
    void store(Status into, long envelope, long buffer) {
        int objects = ObjectMessages.read(buffer, (Object[]) array, off, count, datatype);
        into.receivedObjects(envelope, objects, datatype);
    }

    /** Returns the failure of such a receive. */
    RuntimeException failure(RuntimeException thrown) {
        return ObjectMessages.failure(thrown);
    }

    /** Stores a failure of the operation. The failure of a wait only is thrown. */
    private void settle(RuntimeException e) {
        int code = e instanceof NativeFailure ? ((NativeFailure) e).code() : 0;
        if (code == NativeFailure.INTERRUPTED) {
            throw owner.raised(Failures.of(e));
        }
        if (code == NativeFailure.CANCELLED) {
            status.setCancelled();
            pending.close();
            done();
        } else {
            fail(Failures.of(reader == null ? e : failure(e)));
        }
    }

    private void fail(Throwable thrown) {
        failure = thrown;
        pending.close();
        done();
    }

    private void done() {
        pending = null;
        array = null;
        if (reader != null) {
            reader.close();
            reader = null;
        }
    }

    /** Makes the request void. Returns its status, or throws its failure. */
    private Status take(int index) {
        sweepFreed();
        Status taken = status == null ? new Status() : status;
        Throwable thrown = failure;
        active = false;
        status = null;
        failure = null;
        if (thrown instanceof Error) {
            throw (Error) thrown;
        }
        if (thrown != null) {
            throw owner.raised((MPIException) thrown);
        }
        taken.index = index;
        return taken;
    }

    // ---- Several requests

    /**
     * Waits until one of several operations is done. Blocks. It skips null and void requests.
     *
     * @param requests requests of one rank
     * @return the status of the first that is done, with its index; an empty status of index
     *     {@link MPI#UNDEFINED} if no request is active
     * @throws MPIException if that operation has failed
     */
    public static Status Waitany(Request[] requests) throws MPIException {
        int done = firstDone(requests, true);
        return done < 0 ? new Status() : requests[done].take(done);
    }

    /**
     * Tests whether one of several operations is done. Does not block. It skips null and void requests.
     *
     * @param requests requests of one rank
     * @return as {@link #Waitany}; null if no operation is done
     * @throws MPIException if that operation has failed
     */
    public static Status Testany(Request[] requests) throws MPIException {
        int done = firstDone(requests, false);
        if (done >= 0) {
            return requests[done].take(done);
        }
        for (Request request : requests) {
            if (request != null && request.active) {
                return null;
            }
        }
        return new Status();
    }

    /**
     * Waits until all operations are done. Blocks.
     *
     * @param requests requests of one rank
     * @return a status for each request, with its index; null for null, an empty one for a void request
     * @throws MPIException the first failure in the order of the array, with the others as suppressed ones,
     *     after all operations are done
     */
    public static Status[] Waitall(Request[] requests) throws MPIException {
        complete(given(requests), requests.length, Native.ALL, true);
        return takeAll(requests);
    }

    /**
     * Tests whether all operations are done. Does not block.
     *
     * @param requests requests of one rank
     * @return as {@link #Waitall}; null if an operation is not done, and all requests stay active then
     * @throws MPIException as {@link #Waitall}
     */
    public static Status[] Testall(Request[] requests) throws MPIException {
        complete(given(requests), requests.length, Native.ALL, false);
        for (Request request : requests) {
            if (request != null && request.pending != null) {
                return null;
            }
        }
        return takeAll(requests);
    }

    /**
     * Waits until at least one of several operations is done. Blocks. It skips null and void requests.
     *
     * @param requests requests of one rank
     * @return statuses of all operations that are done, with their indexes in ascending order; none if no
     *     request is active
     * @throws MPIException the first failure among them, with the others as suppressed ones
     */
    public static Status[] Waitsome(Request[] requests) throws MPIException {
        boolean isDone = firstStored(given(requests)) >= 0;
        complete(requests, requests.length, Native.SOME, !isDone);
        return takeSome(requests);
    }

    /**
     * Tests which of several operations are done. Does not block. It skips null and void requests.
     *
     * @param requests requests of one rank
     * @return as {@link #Waitsome}; none if no operation is done
     * @throws MPIException as {@link #Waitsome}
     */
    public static Status[] Testsome(Request[] requests) throws MPIException {
        complete(given(requests), requests.length, Native.SOME, false);
        return takeSome(requests);
    }

    private static Request[] given(Request[] requests) {
        return MPI.present(requests, "the array of requests");
    }

    /** Returns the index of the first operation that is done, -1 if none is. It may wait for one. */
    private static int firstDone(Request[] requests, boolean waits) {
        int before = firstStored(given(requests));
        complete(requests, before < 0 ? requests.length : before, Native.ANY, waits && before < 0);
        return firstStored(requests);
    }

    /** Returns the index of the first operation whose result is stored, -1 if there is none. */
    private static int firstStored(Request[] requests) {
        for (int i = 0; i < requests.length; i++) {
            if (requests[i] != null && requests[i].active && requests[i].pending == null) {
                return i;
            }
        }
        return -1;
    }

    /**
     * Completes operations of the first {@code count} requests in one native call, and stores their results.
     * The requests stay active.
     */
    private static void complete(Request[] requests, int count, int how, boolean waits) {
        long[] handles = null;
        Object[] arrays = null;
        CommCore comm = null;
        for (int i = 0; i < count; i++) {
            Request request = requests[i];
            if (request != null && request.pending != null) {
                if (handles == null) {
                    handles = new long[count];
                    arrays = new Object[count];
                    comm = request.owner;
                }
                handles[i] = request.pending.handle();
                arrays[i] = request.reader == null ? request.array : null;
            }
        }
        if (handles != null) {
            complete(comm, requests, handles, arrays, how, waits);
        }
    }

    private static void complete(CommCore comm, Request[] requests, long[] handles, Object[] arrays, int how,
            boolean waits) {
        int count = handles.length;
        long[] results = new long[2 * count];
        Arrays.fill(results, Native.PENDING);
        Backoff backoff = waits && Backoff.isVirtual() ? new Backoff() : null;
        boolean blocks = waits && backoff == null;
        try {
            int done = Native.completeRequests(handles, count, arrays, count, results, 2 * count, how, blocks);
            while (done == 0 && backoff != null) {
                backoff.pause();
                done = Native.completeRequests(handles, count, arrays, count, results, 2 * count, how, false);
            }
        } catch (RuntimeException e) {
            throw comm.raised(Failures.of(e));
        } finally {
            // Also if the wait was interrupted: some may be done.
            for (int i = 0; i < count; i++) {
                if (results[2 * i] != Native.PENDING && requests[i].pending != null) {
                    requests[i].store(results[2 * i], results[2 * i + 1], arrays[i]);
                }
            }
            Reference.reachabilityFence(requests);
        }
    }

    /** Stores a result of a call for several requests. */
    private void store(long result, long detail, Object thrown) {
        result().detail(detail);
        try {
            if (result != Native.FAILED) {
                settle(result);
            } else if (thrown instanceof RuntimeException) {
                settle((RuntimeException) thrown);
            } else {
                fail(thrown == null ? new OutOfMemoryError("Java has no memory for an exception") : (Throwable) thrown);
            }
        } catch (RuntimeException e) {
            settle(e);
        } catch (OutOfMemoryError e) {
            fail(e);
        }
    }

    private static Status[] takeSome(Request[] requests) {
        List<Status> done = new ArrayList<>();
        Throwable first = null;
        for (int i = 0; i < requests.length; i++) {
            if (requests[i] != null && requests[i].active && requests[i].pending == null) {
                try {
                    done.add(requests[i].take(i));
                } catch (MPIException | OutOfMemoryError e) {
                    first = joined(first, e);
                }
            }
        }
        rethrow(first);
        return done.toArray(new Status[0]);
    }

    private static Status[] takeAll(Request[] requests) {
        Status[] all = new Status[requests.length];
        Throwable first = null;
        for (int i = 0; i < requests.length; i++) {
            if (requests[i] != null) {
                try {
                    all[i] = requests[i].take(i);
                } catch (MPIException | OutOfMemoryError e) {
                    first = joined(first, e);
                }
            }
        }
        rethrow(first);
        return all;
    }

    private static Throwable joined(Throwable first, Throwable next) {
        if (first == null) {
            return next;
        }
        first.addSuppressed(next);
        return first;
    }

    private static void rethrow(Throwable first) {
        if (first instanceof Error) {
            throw (Error) first;
        }
        if (first != null) {
            throw (MPIException) first;
        }
    }
}
