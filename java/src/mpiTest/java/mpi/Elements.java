package mpi;

import java.lang.reflect.Array;

/** Arrays of the element type of a datatype, and numbers as its elements. */
final class Elements {
    private Elements() {}

    /** A new array. */
    static Object array(Datatype type, int length) {
        return Array.newInstance(type.arrayOf(null, 0).getClass().getComponentType(), length);
    }

    /** The number as an element of an array. */
    static Object of(Object array, double number) {
        if (array instanceof byte[]) {
            return (byte) number;
        }
        if (array instanceof char[]) {
            return (char) number;
        }
        if (array instanceof short[]) {
            return (short) number;
        }
        if (array instanceof int[]) {
            return (int) number;
        }
        if (array instanceof long[]) {
            return (long) number;
        }
        return array instanceof float[] ? (Object) (float) number : (Object) number;
    }

    /** Stores the number. */
    static void set(Object array, int at, double number) {
        Array.set(array, at, of(array, number));
    }
}
