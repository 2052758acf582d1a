package mpjdev;

/** The only rank that could have completed the operation has failed or finished. */
public class PeerFailedException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    /** The rank, numbered in the world; -1 when there is no single one. */
    private final int rank;

    PeerFailedException(String text, int rank) {
        super(text);
        this.rank = rank;
    }

    /**
     * The rank in question.
     *
     * @return its number in the world, or -1 when there is no single one
     */
    public int rank() {
        return rank;
    }
}
