package mpi;

/** A communicator of one group. */
public class Intracomm extends Comm {
    Intracomm(long handle) {
        super(handle);
    }

    /**
     * Waits until all ranks have called it (MPI-1.1, section 4.3). Collective; blocks.
     *
     * @throws MPIException if a rank has failed, or the communicator was freed
     */
    public void Barrier() throws MPIException {
        barrier();
    }
}
