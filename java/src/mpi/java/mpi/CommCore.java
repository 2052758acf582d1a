package mpi;

import java.lang.ref.Reference;
import mpjdev.core.Native;
import mpjdev.core.Resource;
import mpjdev.core.Waits;

/** The native communicator of a {@link Comm}. */
abstract class CommCore {
    private final Resource resource;
    /** The number of ranks, once it was asked for. */
    private int ranks;
    /** The number of this rank, once it was asked for. */
    private int rank = -1;
    /** The handling of failed calls. */
    volatile Errhandler handler = MPI.ERRORS_RETURN;

    CommCore(long handle) {
        resource = new Resource(this, handle, Resource.COMM);
    }

    /** Returns the exception of a failed call of this communicator, unless its error handler ends the job. */
    final MPIException raised(MPIException failure) {
        return handler.handle(failure);
    }

    /** Returns an argument that is not null. */
    final <T> T present(T argument, String what) {
        if (argument == null) {
            throw raised(new MPIException(MPI.ERR_ARG, what + " is null", null));
        }
        return argument;
    }

    final long handle() {
        return resource.handle();
    }

    /** Returns the number of ranks, without a native call but for the first time. */
    final int ranks() {
        if (ranks == 0) {
            ranks = Native.size(handle());
        }
        return ranks;
    }

    /** Returns the number of this rank, without a native call but for the first time. */
    final int rank() {
        if (rank < 0) {
            rank = Native.rank(handle());
        }
        return rank;
    }

    /** Releases the native communicator. Later calls throw. */
    final void release() {
        resource.close();
    }

    /**
     * Returns the number of ranks.
     *
     * @return the number
     * @throws MPIException if the communicator was freed, or its rank has called Finalize
     */
    public int Size() throws MPIException {
        try {
            return Native.size(handle());
        } catch (RuntimeException e) {
            throw raised(Failures.of(e));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Returns the number of the calling rank.
     *
     * @return 0 to {@code Size() - 1}
     * @throws MPIException as {@link #Size}
     */
    public int Rank() throws MPIException {
        try {
            return Native.rank(handle());
        } catch (RuntimeException e) {
            throw raised(Failures.of(e));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Returns false: a null communicator is the reference null.
     *
     * @return false
     */
    public boolean Is_null() {
        return false;
    }

    /** Waits until all ranks have called it. */
    final void barrier() {
        try {
            Waits.barrier(handle());
        } catch (RuntimeException e) {
            throw raised(Failures.of(e));
        } finally {
            Request.sweepFreed();
            Reference.reachabilityFence(this);
        }
    }
}
