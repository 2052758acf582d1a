package mpjdev.core;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;

/**
 * Memory of one platform thread through which short parts of arrays pass to native code and back. Internal.
 *
 * <p>Java copies between the array and this memory. That takes less time than an array function of JNI
 * (decision 0065). A caller copies right before or right after its native call, so that no other call of the
 * thread uses the memory in between.
 */
public final class BounceBuffer {
    /** Octets of the longest part. */
    static final int CAPACITY = 2048;
    /** For each type code, four bits with the binary logarithm of the octets of an element. */
    private static final int SIZES = 0x32320110;

    /**
     * Up to this many elements are copied one by one. Copies of arrays use wide vectors: a load that is wider
     * than a store just before it waits until the store is in the cache.
     */
    private static final int FEW = 16;

    private static final Own OWN = new Own();

    /** Address of the elements. */
    public final long address;
    private final ByteBuffer octets;
    private CharBuffer chars;
    private ShortBuffer shorts;
    private IntBuffer ints;
    private LongBuffer longs;
    private FloatBuffer floats;
    private DoubleBuffer doubles;

    private BounceBuffer() {
        octets = allocate();
        address = octets == null ? 0 : Native.addressOf(octets);
    }

    private static ByteBuffer allocate() {
        try {
            return ByteBuffer.allocateDirect(CAPACITY).order(ByteOrder.nativeOrder());
        } catch (OutOfMemoryError e) {
            return null; // the array functions of JNI need no direct memory
        }
    }

    private static final class Own extends ThreadLocal<BounceBuffer> {
        @Override
        protected BounceBuffer initialValue() {
            return new BounceBuffer();
        }
    }

    /**
     * Returns the buffer of the calling thread for a part of an array.
     *
     * @param type type code of the elements
     * @param length length of the array
     * @param off index of the first element
     * @param count number of elements
     * @return the buffer; null if the part is too long or outside the array, or the thread has none
     */
    public static BounceBuffer of(int type, int length, int off, int count) {
        if (count > elements(type, CAPACITY) || count < 0 || off < 0 || off > length - count
                || Backoff.isVirtual()) {
            return null;
        }
        BounceBuffer own = OWN.get();
        return own.address == 0 ? null : own;
    }

    /** Returns the number of elements of a type that as many octets have room for. */
    static int elements(int type, int octets) {
        return octets >> (SIZES >> (type << 2) & 15);
    }

    /**
     * Copies elements of an array to the buffer.
     *
     * @param array the array
     * @param type its type code
     * @param off index of the first element
     * @param count number of elements
     */
    public void put(Object array, int type, int off, int count) {
        switch (type) {
            case Types.BYTE:
                octets.put(0, (byte[]) array, off, count);
                return;
            case Types.BOOLEAN:
                putBooleans((boolean[]) array, off, count);
                return;
            case Types.CHAR:
                putChars((char[]) array, off, count);
                return;
            case Types.SHORT:
                putShorts((short[]) array, off, count);
                return;
            case Types.INT:
                putInts((int[]) array, off, count);
                return;
            case Types.LONG:
                putLongs((long[]) array, off, count);
                return;
            case Types.FLOAT:
                putFloats((float[]) array, off, count);
                return;
            default:
                putDoubles((double[]) array, off, count);
        }
    }

    /**
     * Copies elements of the buffer to an array.
     *
     * @param array the array
     * @param type its type code
     * @param off index of the first element
     * @param count number of elements
     */
    public void get(Object array, int type, int off, int count) {
        switch (type) {
            case Types.BYTE:
                octets.get(0, (byte[]) array, off, count);
                return;
            case Types.BOOLEAN:
                getBooleans((boolean[]) array, off, count);
                return;
            case Types.CHAR:
                getChars((char[]) array, off, count);
                return;
            case Types.SHORT:
                getShorts((short[]) array, off, count);
                return;
            case Types.INT:
                getInts((int[]) array, off, count);
                return;
            case Types.LONG:
                getLongs((long[]) array, off, count);
                return;
            case Types.FLOAT:
                getFloats((float[]) array, off, count);
                return;
            default:
                getDoubles((double[]) array, off, count);
        }
    }

    private void putBooleans(boolean[] array, int off, int count) {
        for (int k = 0; k < count; k++) {
            octets.put(k, (byte) (array[off + k] ? 1 : 0));
        }
    }

    private void getBooleans(boolean[] array, int off, int count) {
        for (int k = 0; k < count; k++) {
            array[off + k] = octets.get(k) != 0;
        }
    }

    private void putChars(char[] array, int off, int count) {
        CharBuffer chars = chars();
        if (count <= FEW) {
            for (int k = 0; k < count; k++) {
                chars.put(k, array[off + k]);
            }
        } else {
            chars.put(0, array, off, count);
        }
    }

    private void getChars(char[] array, int off, int count) {
        CharBuffer chars = chars();
        if (count <= FEW) {
            for (int k = 0; k < count; k++) {
                array[off + k] = chars.get(k);
            }
        } else {
            chars.get(0, array, off, count);
        }
    }

    private void putShorts(short[] array, int off, int count) {
        ShortBuffer shorts = shorts();
        if (count <= FEW) {
            for (int k = 0; k < count; k++) {
                shorts.put(k, array[off + k]);
            }
        } else {
            shorts.put(0, array, off, count);
        }
    }

    private void getShorts(short[] array, int off, int count) {
        ShortBuffer shorts = shorts();
        if (count <= FEW) {
            for (int k = 0; k < count; k++) {
                array[off + k] = shorts.get(k);
            }
        } else {
            shorts.get(0, array, off, count);
        }
    }

    private void putInts(int[] array, int off, int count) {
        IntBuffer ints = ints();
        if (count <= FEW) {
            for (int k = 0; k < count; k++) {
                ints.put(k, array[off + k]);
            }
        } else {
            ints.put(0, array, off, count);
        }
    }

    private void getInts(int[] array, int off, int count) {
        IntBuffer ints = ints();
        if (count <= FEW) {
            for (int k = 0; k < count; k++) {
                array[off + k] = ints.get(k);
            }
        } else {
            ints.get(0, array, off, count);
        }
    }

    private void putLongs(long[] array, int off, int count) {
        LongBuffer longs = longs();
        if (count <= FEW) {
            for (int k = 0; k < count; k++) {
                longs.put(k, array[off + k]);
            }
        } else {
            longs.put(0, array, off, count);
        }
    }

    private void getLongs(long[] array, int off, int count) {
        LongBuffer longs = longs();
        if (count <= FEW) {
            for (int k = 0; k < count; k++) {
                array[off + k] = longs.get(k);
            }
        } else {
            longs.get(0, array, off, count);
        }
    }

    private void putFloats(float[] array, int off, int count) {
        FloatBuffer floats = floats();
        if (count <= FEW) {
            for (int k = 0; k < count; k++) {
                floats.put(k, array[off + k]);
            }
        } else {
            floats.put(0, array, off, count);
        }
    }

    private void getFloats(float[] array, int off, int count) {
        FloatBuffer floats = floats();
        if (count <= FEW) {
            for (int k = 0; k < count; k++) {
                array[off + k] = floats.get(k);
            }
        } else {
            floats.get(0, array, off, count);
        }
    }

    private void putDoubles(double[] array, int off, int count) {
        DoubleBuffer doubles = doubles();
        if (count <= FEW) {
            for (int k = 0; k < count; k++) {
                doubles.put(k, array[off + k]);
            }
        } else {
            doubles.put(0, array, off, count);
        }
    }

    private void getDoubles(double[] array, int off, int count) {
        DoubleBuffer doubles = doubles();
        if (count <= FEW) {
            for (int k = 0; k < count; k++) {
                array[off + k] = doubles.get(k);
            }
        } else {
            doubles.get(0, array, off, count);
        }
    }

    // ---- The views, each made at its first use: most programs use one or two of them

    private CharBuffer chars() {
        return chars == null ? chars = octets.asCharBuffer() : chars;
    }

    private ShortBuffer shorts() {
        return shorts == null ? shorts = octets.asShortBuffer() : shorts;
    }

    private IntBuffer ints() {
        return ints == null ? ints = octets.asIntBuffer() : ints;
    }

    private LongBuffer longs() {
        return longs == null ? longs = octets.asLongBuffer() : longs;
    }

    private FloatBuffer floats() {
        return floats == null ? floats = octets.asFloatBuffer() : floats;
    }

    private DoubleBuffer doubles() {
        return doubles == null ? doubles = octets.asDoubleBuffer() : doubles;
    }
}
