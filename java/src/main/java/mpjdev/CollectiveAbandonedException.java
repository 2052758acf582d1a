package mpjdev;

/**
 * A rank has left a collective operation on this communicator unfinished, and no other collective operation is possible on it.
 *
 * <p>Another communicator goes on, also one that was made of this one before; messages from rank to rank go on here too.
 */
public class CollectiveAbandonedException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    /** The rank, numbered in the world. */
    private final int rank;

    CollectiveAbandonedException(String text, int rank) {
        super(text);
        this.rank = rank;
    }

    /**
     * The rank that has left the operation.
     *
     * @return its number in the world
     */
    public int rank() {
        return rank;
    }
}
