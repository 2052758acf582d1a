package mpjdev.core;

/** Type codes of sections in the message format. A test compares them with the native ones. Internal. */
public final class Types {
    /** Java {@code byte}. */
    public static final int BYTE = 0;
    /** Java {@code char}. */
    public static final int CHAR = 1;
    /** Java {@code short}. */
    public static final int SHORT = 2;
    /** Java {@code boolean}. */
    public static final int BOOLEAN = 3;
    /** Java {@code int}. */
    public static final int INT = 4;
    /** Java {@code long}. */
    public static final int LONG = 5;
    /** Java {@code float}. */
    public static final int FLOAT = 6;
    /** Java {@code double}. */
    public static final int DOUBLE = 7;
    /** Java objects, serialised. */
    public static final int OBJECT = 8;

    private Types() {}
}
