package mpjbuf;

/** The type of the elements of a section. */
public final class Type {
    /** Java {@code byte}. */
    public static final Type BYTE = new Type(0, "BYTE");
    /** Java {@code char}. */
    public static final Type CHAR = new Type(1, "CHAR");
    /** Java {@code short}. */
    public static final Type SHORT = new Type(2, "SHORT");
    /** Java {@code boolean}. */
    public static final Type BOOLEAN = new Type(3, "BOOLEAN");
    /** Java {@code int}. */
    public static final Type INT = new Type(4, "INT");
    /** Java {@code long}. */
    public static final Type LONG = new Type(5, "LONG");
    /** Java {@code float}. */
    public static final Type FLOAT = new Type(6, "FLOAT");
    /** Java {@code double}. */
    public static final Type DOUBLE = new Type(7, "DOUBLE");
    /** Objects, serialised. */
    public static final Type OBJECT = new Type(8, "OBJECT");
    /** Java {@code byte}, serialised: elements of dynamic types take no capacity. */
    public static final Type BYTE_DYNAMIC = new Type(9, "BYTE_DYNAMIC");
    /** Java {@code char}, serialised. */
    public static final Type CHAR_DYNAMIC = new Type(10, "CHAR_DYNAMIC");
    /** Java {@code short}, serialised. */
    public static final Type SHORT_DYNAMIC = new Type(11, "SHORT_DYNAMIC");
    /** Java {@code boolean}, serialised. */
    public static final Type BOOLEAN_DYNAMIC = new Type(12, "BOOLEAN_DYNAMIC");
    /** Java {@code int}, serialised. */
    public static final Type INT_DYNAMIC = new Type(13, "INT_DYNAMIC");
    /** Java {@code long}, serialised. */
    public static final Type LONG_DYNAMIC = new Type(14, "LONG_DYNAMIC");
    /** Java {@code float}, serialised. */
    public static final Type FLOAT_DYNAMIC = new Type(15, "FLOAT_DYNAMIC");
    /** Java {@code double}, serialised. */
    public static final Type DOUBLE_DYNAMIC = new Type(16, "DOUBLE_DYNAMIC");
    /** No type. */
    public static final Type UNDEFINED = new Type(17, "UNDEFINED");

    private static final Type[] ALL = {BYTE, CHAR, SHORT, BOOLEAN, INT, LONG, FLOAT, DOUBLE, OBJECT, BYTE_DYNAMIC,
        CHAR_DYNAMIC, SHORT_DYNAMIC, BOOLEAN_DYNAMIC, INT_DYNAMIC, LONG_DYNAMIC, FLOAT_DYNAMIC, DOUBLE_DYNAMIC, UNDEFINED};
    private static final Class<?>[] COMPONENTS = {byte.class, char.class, short.class, boolean.class, int.class, long.class,
        float.class, double.class, Object.class};
    private static final int[] SIZES = {1, 2, 2, 1, 4, 8, 4, 8, 0};
    /** Distance of the code of a dynamic type from that of its elements. */
    private static final int DYNAMIC = 9;

    private final int code;
    private final String name;

    private Type(int code, String name) {
        this.code = code;
        this.name = name;
    }

    /**
     * Returns the code of this type.
     *
     * @return 0 to 17
     */
    public int getCode() {
        return code;
    }

    /**
     * Returns a type.
     *
     * @param code its code
     * @return the type; {@link #UNDEFINED} for an unknown code
     */
    public static Type getType(int code) {
        return code >= 0 && code < ALL.length ? ALL[code] : UNDEFINED;
    }

    /** Returns whether the elements are serialised as one array. */
    boolean isDynamic() {
        return code >= DYNAMIC && this != UNDEFINED;
    }

    /** Returns the type of the elements. */
    Type element() {
        return isDynamic() ? ALL[code - DYNAMIC] : this;
    }

    /** Returns the dynamic type of these elements. */
    Type dynamic() {
        return ALL[code + DYNAMIC];
    }

    /** Returns a new array of the elements. */
    Object array(int length) {
        return java.lang.reflect.Array.newInstance(COMPONENTS[element().code], length);
    }

    /** Returns the octets of a section in the static part of a buffer. */
    long octets(long count) {
        final int unit = Buffer.ALIGNMENT_UNIT;
        long size = isDynamic() ? 0 : SIZES[code];
        return Buffer.SECTION_OVERHEAD + (count * size + unit - 1) / unit * unit;
    }

    @Override
    public String toString() {
        return name;
    }
}
