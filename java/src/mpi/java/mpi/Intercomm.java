package mpi;

import java.lang.ref.Reference;
import mpjdev.core.Native;
import mpjdev.core.Waits;

/**
 * A communicator of two groups (MPI-1.1, section 5.6). {@link #Size}, {@link #Rank} and {@link #Group} are
 * those of the own group. Destinations and sources are ranks of the other one.
 */
public final class Intercomm extends Comm {
    Intercomm(long handle, Attributes attributes) {
        super(handle, attributes);
    }

    @Override
    Intercomm made(long handle, Attributes copied) {
        return new Intercomm(handle, copied);
    }

    @Override
    public boolean Test_inter() {
        return true;
    }

    /**
     * Returns the number of ranks of the other group.
     *
     * @return the number
     * @throws MPIException if the communicator was freed
     */
    public int Remote_size() throws MPIException {
        try {
            return Native.peerCount(handle());
        } catch (RuntimeException e) {
            throw raised(Failures.of(e));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Returns the other group.
     *
     * @return its members
     * @throws MPIException if the communicator was freed
     */
    public Group Remote_group() throws MPIException {
        int[] members = new int[Remote_size()];
        try {
            Native.peers(handle(), members, members.length);
        } catch (RuntimeException e) {
            throw raised(Failures.of(e));
        } finally {
            Reference.reachabilityFence(this);
        }
        return new Group(members, MPI.worldRank());
    }

    /**
     * Makes a communicator of both groups (MPI-1.1, section 5.6.2). Collective over both; blocks.
     *
     * @param high true in the group that comes last. If both pass the same, the group whose leader has the
     *     smaller rank in the world comes first
     * @return the communicator
     * @throws MPIException if a rank has failed, or the communicator was freed
     */
    public Intracomm Merge(boolean high) throws MPIException {
        try {
            return inherit(new Intracomm(Waits.complete(Native.startMerge(handle(), high))));
        } catch (RuntimeException e) {
            throw raised(Failures.of(e));
        } finally {
            Reference.reachabilityFence(this);
        }
    }
}
