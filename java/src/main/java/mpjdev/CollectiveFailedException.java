package mpjdev;

/**
 * A collective operation has failed at a rank whose data this rank needs. The communicator admits further
 * operations.
 */
public class CollectiveFailedException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    /** The rank, numbered in the world. */
    private final int rank;

    CollectiveFailedException(String text, int rank) {
        super(text);
        this.rank = rank;
    }

    /**
     * Returns the rank at which the operation has failed.
     *
     * @return its number in the world
     */
    public int rank() {
        return rank;
    }
}
