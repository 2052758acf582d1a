package mpi;

/**
 * A communicator: a group of ranks whose messages are separate from those of all other communicators.
 *
 * <p>Any number of threads may use a communicator at once.
 */
public class Comm extends PointToPoint {
    Comm(long handle) {
        super(handle);
    }
}
