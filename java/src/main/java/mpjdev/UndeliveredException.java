package mpjdev;

/** A rank has finished before its messages were delivered; the text says how many and names the first. */
public class UndeliveredException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    /** The rank, numbered in the world; -1 when there is no single one. */
    private final int rank;

    UndeliveredException(String text, int rank) {
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
