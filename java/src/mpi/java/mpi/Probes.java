package mpi;

import java.lang.ref.Reference;
import mpjdev.core.Backoff;
import mpjdev.core.Native;
import mpjdev.core.Waits;

/** Probes, which find a message and leave it to a receive. */
abstract class Probes extends CommCore {
    /** A tag that no receive may name. */
    private static final int NO_TAG = -9;

    Probes(long handle) {
        super(handle);
    }

    /** Returns the tag of a receive as the core has it. */
    static int wanted(int tag) {
        return tag == MPI.ANY_TAG ? Native.ANY_TAG : tag < 0 ? NO_TAG : tag;
    }

    /**
     * Waits for a message without receiving it (MPI-1.1, section 3.8). Blocks. A receive of the source and
     * the tag that it returns gets this message, unless another thread receives it before.
     *
     * @param source source, or {@link MPI#ANY_SOURCE}; {@link MPI#PROC_NULL} returns at once
     * @param tag tag, or {@link MPI#ANY_TAG}
     * @return source and tag of the message; its count is the number of elements of the base type
     * @throws MPIException if an argument is invalid, or no rank is left that could send such a message
     */
    public Status Probe(int source, int tag) throws MPIException {
        if (source == MPI.PROC_NULL) {
            return Status.ofNull(MPI.BYTE);
        }
        Status status = new Status();
        try {
            long envelope = Backoff.isVirtual() ? Waits.probe(handle(), source, wanted(tag), status)
                    : Native.probe(handle(), source, wanted(tag), status);
            return status.probed(envelope, handle());
        } catch (RuntimeException e) {
            throw raised(Failures.ofMessage(e, null, 0, tag == MPI.ANY_TAG ? 0 : tag));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Looks for a message without receiving it (MPI-1.1, section 3.8). Does not block.
     *
     * @param source source, or {@link MPI#ANY_SOURCE}; {@link MPI#PROC_NULL} has an empty message
     * @param tag tag, or {@link MPI#ANY_TAG}
     * @return as {@link #Probe}; null if there is no such message
     * @throws MPIException as {@link #Probe}
     */
    public Status Iprobe(int source, int tag) throws MPIException {
        if (source == MPI.PROC_NULL) {
            return Status.ofNull(MPI.BYTE);
        }
        Status status = new Status();
        try {
            long envelope = Native.iprobe(handle(), source, wanted(tag), status);
            return envelope == Native.PENDING ? null : status.probed(envelope, handle());
        } catch (RuntimeException e) {
            throw raised(Failures.ofMessage(e, null, 0, tag == MPI.ANY_TAG ? 0 : tag));
        } finally {
            Reference.reachabilityFence(this);
        }
    }
}
