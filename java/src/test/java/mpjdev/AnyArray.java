package mpjdev;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Random;

/** A common view of arrays of the eight primitive types, so that one test covers all of them. */
final class AnyArray {
    static final Type[] TYPES = {
        Type.BYTE, Type.CHAR, Type.SHORT, Type.BOOLEAN, Type.INT, Type.LONG, Type.FLOAT, Type.DOUBLE
    };

    private AnyArray() {}

    /** Octets of one element, independent of the code under test. */
    static int size(Type type) {
        switch (type) {
            case BYTE:
            case BOOLEAN:
                return 1;
            case CHAR:
            case SHORT:
                return 2;
            case INT:
            case FLOAT:
                return 4;
            case LONG:
            case DOUBLE:
                return 8;
            default:
                return 0;
        }
    }

    static Object make(Type type, int length) {
        switch (type) {
            case BYTE:
                return new byte[length];
            case CHAR:
                return new char[length];
            case SHORT:
                return new short[length];
            case BOOLEAN:
                return new boolean[length];
            case INT:
                return new int[length];
            case LONG:
                return new long[length];
            case FLOAT:
                return new float[length];
            case DOUBLE:
                return new double[length];
            default:
                return new Object[length];
        }
    }

    /** Returns an array of random bit patterns, with NaNs of every kind among them. */
    static Object random(Type type, int length, Random random) {
        Object array = make(type, length);
        for (int i = 0; i < length; i++) {
            set(array, i, random.nextLong());
        }
        return array;
    }

    /** Sets an element to the low bits of a number, a boolean to the lowest bit. */
    static void set(Object array, int at, long bits) {
        if (array instanceof byte[] a) {
            a[at] = (byte) bits;
        } else if (array instanceof char[] a) {
            a[at] = (char) bits;
        } else if (array instanceof short[] a) {
            a[at] = (short) bits;
        } else if (array instanceof boolean[] a) {
            a[at] = (bits & 1) != 0;
        } else if (array instanceof int[] a) {
            a[at] = (int) bits;
        } else if (array instanceof long[] a) {
            a[at] = bits;
        } else if (array instanceof float[] a) {
            a[at] = Float.intBitsToFloat((int) bits);
        } else {
            ((double[]) array)[at] = Double.longBitsToDouble(bits);
        }
    }

    /** Returns the bits of an element; a boolean is 0 or 1. */
    static long bits(Object array, int at) {
        if (array instanceof byte[] a) {
            return a[at];
        } else if (array instanceof char[] a) {
            return a[at];
        } else if (array instanceof short[] a) {
            return a[at];
        } else if (array instanceof boolean[] a) {
            return a[at] ? 1 : 0;
        } else if (array instanceof int[] a) {
            return a[at];
        } else if (array instanceof long[] a) {
            return a[at];
        } else if (array instanceof float[] a) {
            return Float.floatToRawIntBits(a[at]);
        }
        return Double.doubleToRawLongBits(((double[]) array)[at]);
    }

    /** Appends an element in the byte order of the buffer. */
    static void put(ByteBuffer to, Object array, int at) {
        long bits = bits(array, at);
        if (array instanceof byte[] || array instanceof boolean[]) {
            to.put((byte) bits);
        } else if (array instanceof char[] || array instanceof short[]) {
            to.putShort((short) bits);
        } else if (array instanceof int[] || array instanceof float[]) {
            to.putInt((int) bits);
        } else {
            to.putLong(bits);
        }
    }

    static int length(Object array) {
        return java.lang.reflect.Array.getLength(array);
    }

    /** Returns a copy that shares nothing. */
    static Object copy(Object array) {
        Object copy = java.lang.reflect.Array.newInstance(array.getClass().getComponentType(), length(array));
        System.arraycopy(array, 0, copy, 0, length(array));
        return copy;
    }

    /** Compares bit patterns, including those of NaNs, which {@code Arrays.equals} takes as equal. */
    static boolean same(Object a, Object b) {
        if (a instanceof byte[] x) {
            return Arrays.equals(x, (byte[]) b);
        } else if (a instanceof char[] x) {
            return Arrays.equals(x, (char[]) b);
        } else if (a instanceof short[] x) {
            return Arrays.equals(x, (short[]) b);
        } else if (a instanceof boolean[] x) {
            return Arrays.equals(x, (boolean[]) b);
        } else if (a instanceof int[] x) {
            return Arrays.equals(x, (int[]) b);
        } else if (a instanceof long[] x) {
            return Arrays.equals(x, (long[]) b);
        } else if (a instanceof float[] x) {
            return same(x, (float[]) b);
        }
        return same((double[]) a, (double[]) b);
    }

    private static boolean same(float[] a, float[] b) {
        boolean same = a.length == b.length;
        for (int i = 0; same && i < a.length; i++) {
            same = Float.floatToRawIntBits(a[i]) == Float.floatToRawIntBits(b[i]);
        }
        return same;
    }

    private static boolean same(double[] a, double[] b) {
        boolean same = a.length == b.length;
        for (int i = 0; same && i < a.length; i++) {
            same = Double.doubleToRawLongBits(a[i]) == Double.doubleToRawLongBits(b[i]);
        }
        return same;
    }

    static void write(WriteBuffer b, Object array, int off, int count) {
        if (array instanceof byte[] a) {
            b.write(a, off, count);
        } else if (array instanceof char[] a) {
            b.write(a, off, count);
        } else if (array instanceof short[] a) {
            b.write(a, off, count);
        } else if (array instanceof boolean[] a) {
            b.write(a, off, count);
        } else if (array instanceof int[] a) {
            b.write(a, off, count);
        } else if (array instanceof long[] a) {
            b.write(a, off, count);
        } else if (array instanceof float[] a) {
            b.write(a, off, count);
        } else {
            b.write((double[]) array, off, count);
        }
    }

    static void gather(WriteBuffer b, Object array, int count, int offs, int[] indexes) {
        if (array instanceof byte[] a) {
            b.gather(a, count, offs, indexes);
        } else if (array instanceof char[] a) {
            b.gather(a, count, offs, indexes);
        } else if (array instanceof short[] a) {
            b.gather(a, count, offs, indexes);
        } else if (array instanceof boolean[] a) {
            b.gather(a, count, offs, indexes);
        } else if (array instanceof int[] a) {
            b.gather(a, count, offs, indexes);
        } else if (array instanceof long[] a) {
            b.gather(a, count, offs, indexes);
        } else if (array instanceof float[] a) {
            b.gather(a, count, offs, indexes);
        } else {
            b.gather((double[]) array, count, offs, indexes);
        }
    }

    static void strGather(WriteBuffer b, Object array, int off, int rank, int exts, int strs, int[] indexes) {
        if (array instanceof byte[] a) {
            b.strGather(a, off, rank, exts, strs, indexes);
        } else if (array instanceof char[] a) {
            b.strGather(a, off, rank, exts, strs, indexes);
        } else if (array instanceof short[] a) {
            b.strGather(a, off, rank, exts, strs, indexes);
        } else if (array instanceof boolean[] a) {
            b.strGather(a, off, rank, exts, strs, indexes);
        } else if (array instanceof int[] a) {
            b.strGather(a, off, rank, exts, strs, indexes);
        } else if (array instanceof long[] a) {
            b.strGather(a, off, rank, exts, strs, indexes);
        } else if (array instanceof float[] a) {
            b.strGather(a, off, rank, exts, strs, indexes);
        } else {
            b.strGather((double[]) array, off, rank, exts, strs, indexes);
        }
    }

    static void read(ReadBuffer b, Object array, int off, int count) throws BufferReadException {
        if (array instanceof byte[] a) {
            b.read(a, off, count);
        } else if (array instanceof char[] a) {
            b.read(a, off, count);
        } else if (array instanceof short[] a) {
            b.read(a, off, count);
        } else if (array instanceof boolean[] a) {
            b.read(a, off, count);
        } else if (array instanceof int[] a) {
            b.read(a, off, count);
        } else if (array instanceof long[] a) {
            b.read(a, off, count);
        } else if (array instanceof float[] a) {
            b.read(a, off, count);
        } else {
            b.read((double[]) array, off, count);
        }
    }

    static void scatter(ReadBuffer b, Object array, int count, int offs, int[] indexes) throws BufferReadException {
        if (array instanceof byte[] a) {
            b.scatter(a, count, offs, indexes);
        } else if (array instanceof char[] a) {
            b.scatter(a, count, offs, indexes);
        } else if (array instanceof short[] a) {
            b.scatter(a, count, offs, indexes);
        } else if (array instanceof boolean[] a) {
            b.scatter(a, count, offs, indexes);
        } else if (array instanceof int[] a) {
            b.scatter(a, count, offs, indexes);
        } else if (array instanceof long[] a) {
            b.scatter(a, count, offs, indexes);
        } else if (array instanceof float[] a) {
            b.scatter(a, count, offs, indexes);
        } else {
            b.scatter((double[]) array, count, offs, indexes);
        }
    }

    static void strScatter(ReadBuffer b, Object array, int off, int rank, int exts, int strs, int[] indexes)
            throws BufferReadException {
        if (array instanceof byte[] a) {
            b.strScatter(a, off, rank, exts, strs, indexes);
        } else if (array instanceof char[] a) {
            b.strScatter(a, off, rank, exts, strs, indexes);
        } else if (array instanceof short[] a) {
            b.strScatter(a, off, rank, exts, strs, indexes);
        } else if (array instanceof boolean[] a) {
            b.strScatter(a, off, rank, exts, strs, indexes);
        } else if (array instanceof int[] a) {
            b.strScatter(a, off, rank, exts, strs, indexes);
        } else if (array instanceof long[] a) {
            b.strScatter(a, off, rank, exts, strs, indexes);
        } else if (array instanceof float[] a) {
            b.strScatter(a, off, rank, exts, strs, indexes);
        } else {
            b.strScatter((double[]) array, off, rank, exts, strs, indexes);
        }
    }
}
