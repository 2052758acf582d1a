package mpjdev.core;

/**
 * The failure of a native method, for a reason that has an exception in the public package.
 *
 * <p>The public package catches it and throws its own exception with the same text. Internal.
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
    /** A rank that the operation needs has failed or finished. */
    public static final int PEER_FAILED = 7;
    /** The timeout has expired; the request is still pending. */
    public static final int TIMED_OUT = 8;
    /** The thread was interrupted. */
    public static final int INTERRUPTED = 9;
    /** The request was cancelled. */
    public static final int CANCELLED = 10;
    /** This rank has finished. */
    public static final int NOT_INITIALIZED = 11;
    /** A rank or a tag is invalid, or a communicator cannot be made for another reason than its ranks. */
    public static final int BAD_ARGUMENT = 12;
    /** The rank finished with undelivered messages. */
    public static final int UNDELIVERED = 13;
    /** A rank abandoned a collective operation on the communicator. */
    public static final int ABANDONED = 14;
    /** The ranks of a new communicator are invalid: at all ranks that take part. */
    public static final int BAD_GROUP = 15;
    /** A collective operation failed at a rank that this one depends on. */
    public static final int OPERATION_FAILED = 16;

    private static final long serialVersionUID = 1L;

    /** One of the constants of this class. */
    private final int code;
    /** The rank in question, or -1. */
    private final int rank;

    /**
     * Parses the text that native code throws.
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
     * Returns the rank that the failure is about, numbered in the world.
     *
     * @return the rank, or -1
     */
    public int rank() {
        return rank;
    }

    /**
     * Returns the reason.
     *
     * @return one of the constants of this class
     */
    public int code() {
        return code;
    }
}
