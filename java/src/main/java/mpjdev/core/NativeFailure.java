package mpjdev.core;

/**
 * A native method could not do its work, for a reason that a face has an exception of its own for.
 *
 * <p>Never leaves a face: it is caught there and becomes the face's exception with the same text. Internal.
 */
public final class NativeFailure extends RuntimeException {
    /** The section does not fit the buffer. */
    public static final int OVERFLOW = 1;
    /** There is no further section. */
    public static final int END_OF_SECTIONS = 2;
    /** The section holds another type. */
    public static final int TYPE_MISMATCH = 3;
    /** The section holds another number of elements. */
    public static final int SIZE_MISMATCH = 4;
    /** The message is damaged. */
    public static final int DAMAGED = 5;
    /** The message does not fit the receiving buffer. */
    public static final int TRUNCATED = 6;
    /** A rank that is needed has failed or finished. */
    public static final int PEER_FAILED = 7;
    /** The time is over; the request is still pending. */
    public static final int TIMED_OUT = 8;
    /** The thread was interrupted. */
    public static final int INTERRUPTED = 9;
    /** The request was cancelled. */
    public static final int CANCELLED = 10;
    /** This rank has finished. */
    public static final int NOT_INITIALIZED = 11;
    /** A rank, tag or list of ranks that cannot be. */
    public static final int BAD_ARGUMENT = 12;
    /** Finishing could not deliver everything. */
    public static final int UNDELIVERED = 13;
    /** A collective operation on the communicator was left unfinished. */
    public static final int ABANDONED = 14;

    private static final long serialVersionUID = 1L;

    /** Which of the constants of this class. */
    private final int code;
    /** The rank in question, or -1. */
    private final int rank;

    /**
     * Takes apart what native code throws.
     *
     * @param coded code and rank in decimal, then the text, with one space between them
     */
    public NativeFailure(String coded) {
        this(coded.split(" ", 3));
    }

    private NativeFailure(String[] parts) {
        super(parts[2], null, false, false);
        code = Integer.parseInt(parts[0]);
        rank = Integer.parseInt(parts[1]);
    }

    /**
     * The rank that the failure is about, numbered in the world.
     *
     * @return the rank, or -1
     */
    public int rank() {
        return rank;
    }

    /**
     * What went wrong.
     *
     * @return one of the constants of this class
     */
    public int code() {
        return code;
    }
}
