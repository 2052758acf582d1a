package mpjdev.core;

/**
 * A native method could not do its work, for a reason that a face has an exception of its own for.
 *
 * <p>Never leaves a face: it is caught there and becomes the face's exception with the same text. Internal.
 */
public final class Failure extends RuntimeException {
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

    private static final long serialVersionUID = 1L;

    /** Which of the constants of this class. */
    private final int code;

    /**
     * Takes apart what native code throws.
     *
     * @param coded the code in decimal, a space, the text
     */
    public Failure(String coded) {
        super(coded.substring(coded.indexOf(' ') + 1), null, false, false);
        code = Integer.parseInt(coded.substring(0, coded.indexOf(' ')));
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
