package mpjdev;

import mpjdev.core.Types;

/** The type of the elements of a section. */
public enum Type {
    /** {@code byte}, one octet. */
    BYTE(Types.BYTE, byte.class),
    /** {@code char}, two octets. */
    CHAR(Types.CHAR, char.class),
    /** {@code short}, two octets. */
    SHORT(Types.SHORT, short.class),
    /** {@code boolean}, one octet. */
    BOOLEAN(Types.BOOLEAN, boolean.class),
    /** {@code int}, four octets. */
    INT(Types.INT, int.class),
    /** {@code long}, eight octets. */
    LONG(Types.LONG, long.class),
    /** {@code float}, four octets. */
    FLOAT(Types.FLOAT, float.class),
    /** {@code double}, eight octets. */
    DOUBLE(Types.DOUBLE, double.class),
    /** Objects, serialised into the secondary payload. */
    OBJECT(Types.OBJECT, Object.class);

    private static final Type[] BY_CODE = values();
    private static final int[] SIZES = {1, 2, 2, 1, 4, 8, 4, 8, 0};

    private final int code;
    private final Class<?> component;

    Type(int code, Class<?> component) {
        this.code = code;
        this.component = component;
    }

    int code() {
        return code;
    }

    /** Returns the octets of an element; 0 for objects, which have no fixed size. */
    int size() {
        return SIZES[code];
    }

    static Type ofCode(int code) {
        return BY_CODE[code];
    }

    static Type ofArray(Object array) {
        Class<?> component = array.getClass().getComponentType();
        if (component == null) {
            throw new IllegalArgumentException(array.getClass().getName() + " is not an array");
        }
        for (Type type : BY_CODE) {
            if (type.component == component) {
                return type;
            }
        }
        return OBJECT;
    }
}
