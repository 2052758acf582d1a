package mpjdev;

/** The only rank that could have completed the operation has failed or finished. */
public class PeerFailedException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    /** The rank, numbered in the world; -1 if it is not one rank. */
    private final int rank;

    PeerFailedException(String text, int rank) {
        super(text);
        this.rank = rank;
    }

    /**
     * Returns the rank that has failed or finished.
     *
     * @return its number in the world, or -1 if it is not one rank
     */
    public int rank() {
        return rank;
    }
}
