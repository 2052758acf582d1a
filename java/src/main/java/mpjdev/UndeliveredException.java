package mpjdev;

/** A rank has finished with undelivered messages. The text states their number and names the first. */
public class UndeliveredException extends MPJDevException {
    private static final long serialVersionUID = 1L;

    /** The rank, numbered in the world; -1 if it is not one rank. */
    private final int rank;

    UndeliveredException(String text, int rank) {
        super(text);
        this.rank = rank;
    }

    /**
     * Returns the receiver of the first message.
     *
     * @return its number in the world, or -1 if it is not one rank
     */
    public int rank() {
        return rank;
    }
}
