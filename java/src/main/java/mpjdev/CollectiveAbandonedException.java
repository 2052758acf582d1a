package mpjdev;

/**
 * A rank has abandoned a collective operation on this communicator, which admits no further collective
 * operation.
 *
 * <p>Other communicators still work, also those that were made from this one before. Messages between the
 * ranks of this communicator still work too.
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
     * Returns the rank that has abandoned the operation.
     *
     * @return its number in the world
     */
    public int rank() {
        return rank;
    }
}
