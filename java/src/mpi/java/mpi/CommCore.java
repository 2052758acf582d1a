package mpi;

import java.lang.ref.Reference;
import mpjdev.core.Native;
import mpjdev.core.Resource;
import mpjdev.core.Waits;

/** The native communicator of a {@link Comm}. */
abstract class CommCore {
    private final Resource resource;

    CommCore(long handle) {
        resource = new Resource(this, handle, Resource.COMM);
    }

    final long handle() {
        return resource.handle();
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
            throw Failures.of(e);
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
            throw Failures.of(e);
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
            Waits.complete(Native.startBarrier(handle()));
        } catch (RuntimeException e) {
            throw Failures.of(e);
        } finally {
            Reference.reachabilityFence(this);
        }
    }
}
