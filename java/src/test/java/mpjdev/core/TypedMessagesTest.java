package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.reflect.Array;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Messages of datatypes between arrays of one rank, compared with {@link Native#typeElements}. */
class TypedMessagesTest {
    private static final Class<?>[] CLASSES = {byte.class, char.class, short.class, boolean.class, int.class,
        long.class, float.class, double.class};
    private static final int TAG = 7;

    private final Random random = new Random(18);
    private final NativeStatus status = new NativeStatus();
    private long world;

    @BeforeEach
    void start() {
        world = Native.worldOfOne();
    }

    @AfterEach
    void finish() {
        Native.finish(world);
        Native.freeComm(world);
    }

    private static int code(Object array) {
        for (int code = 0; code < CLASSES.length; code++) {
            if (array.getClass().getComponentType() == CLASSES[code]) {
                return code;
            }
        }
        throw new AssertionError(array.getClass());
    }

    private Object randomArray(int code, int length) {
        Object array = Array.newInstance(CLASSES[code], length);
        for (int i = 0; i < length; i++) {
            int value = random.nextInt();
            switch (code) {
                case Types.BYTE -> Array.setByte(array, i, (byte) value);
                case Types.CHAR -> Array.setChar(array, i, (char) value);
                case Types.SHORT -> Array.setShort(array, i, (short) value);
                case Types.BOOLEAN -> Array.setBoolean(array, i, value < 0);
                case Types.INT -> Array.setInt(array, i, value);
                case Types.LONG -> Array.setLong(array, i, random.nextLong());
                case Types.FLOAT -> Array.setFloat(array, i, value / 3f);
                default -> Array.setDouble(array, i, value / 3d);
            }
        }
        return array;
    }

    private static Object copy(Object array) {
        int length = Array.getLength(array);
        Object copy = Array.newInstance(array.getClass().getComponentType(), length);
        System.arraycopy(array, 0, copy, 0, length);
        return copy;
    }

    private static void assertSame(Object wanted, Object found, String what) {
        for (int i = 0; i < Array.getLength(wanted); i++) {
            if (!Array.get(wanted, i).equals(Array.get(found, i))) {
                assertEquals(Array.get(wanted, i), Array.get(found, i), what + ", element " + i);
            }
        }
    }

    /** Types of all forms: a run, nests, short runs, long runs, with overlaps and against the order. */
    private static long[] types(long old) {
        int[] blocks = new int[40];
        int[] displacements = new int[40];
        for (int k = 0; k < 40; k++) {
            blocks[k] = 1 + k % 3;
            displacements[k] = (k * 17 + k % 2) % 40 * 4;
        }
        long vector = Native.typeVector(old, 5, 2, 4, false);
        long shorts = Native.typeIndexed(old, blocks, 40, displacements, 40, false);
        long longs = Native.typeIndexed(old, new int[] {40, 30, 20}, 3, new int[] {90, 0, 35}, 3, false);
        return new long[] {
            Native.typeContiguous(old, 3), vector, Native.typeVector(old, 4, 1, -3, true),
            Native.typeVector(old, 4, 3, 2, true), Native.typeVector(vector, 3, 1, 21, true),
            shorts, longs, Native.typeIndexed(old, new int[] {2, 2, 2}, 3, new int[] {4, 3, 0}, 3, true),
            Native.typeStruct(new int[] {1, 2, 1}, 3, new int[] {30, 0, 200}, 3,
                    new long[] {longs, vector, -1 - Native.UPPER_MARK}, 3),
        };
    }

    private static int[] elements(long type, int off, int count, int length) {
        int[] elements = new int[Native.typeElements(type, off, count, length, new int[0], 0)];
        Native.typeElements(type, off, count, length, elements, elements.length);
        return elements;
    }

    private void sendAndCompare(long type, Object array, int off, int count) {
        int[] wanted = elements(type, off, count, Array.getLength(array));
        Object to = Array.newInstance(array.getClass().getComponentType(), wanted.length);
        long request = Native.isendTyped(world, type, array, Array.getLength(array), code(array), off, count, 0,
                TAG, false);
        int n = (int) Native.recvArrayFrom(world, to, wanted.length, code(to), 0, wanted.length, 0, TAG);
        if (request != 0) {
            Native.await(request, -1, status);
        }
        assertEquals(wanted.length, n);
        for (int k = 0; k < n; k++) {
            assertEquals(Array.get(array, wanted[k]), Array.get(to, k));
        }
    }

    /** Receives {@code n} elements into items: blocking, and by a request. */
    private void receiveAndCompare(long type, Object array, int off, int count, int n) {
        int length = Array.getLength(array);
        int code = code(array);
        Object from = randomArray(code, n);
        Object wanted = copy(array);
        int[] elements = elements(type, off, count, length);
        for (int k = 0; k < n; k++) {
            System.arraycopy(from, k, wanted, elements[k], 1);
        }
        Object found = copy(array);
        long sent = Native.isendArray(world, from, n, code, 0, n, 0, TAG, false);
        long got = Native.recvTypedFrom(world, type, found, length, code, off, count, 0, TAG);
        assertEquals(n, (int) got);
        assertSame(wanted, found, "recvTyped of " + n);
        Object later = copy(array);
        long posted = Native.irecvTyped(world, type, later, length, code, off, count, Native.ANY_SOURCE, Native.ANY_TAG,
                status);
        long again = Native.isendArray(world, from, n, code, 0, n, 0, TAG, false);
        assertEquals(TAG, (int) Native.awaitArray(posted, later, length, code, -1, status));
        assertSame(wanted, later, "irecvTyped of " + n);
        Object arrived = copy(array);
        long first = Native.isendArray(world, from, n, code, 0, n, 0, TAG, false);
        long started = Native.irecvTyped(world, type, arrived, length, code, off, count, 0, TAG, status);
        assertEquals(TAG, (int) Waits.awaitArray(started, arrived, length, code, status));
        assertSame(wanted, arrived, "irecvTyped of " + n + " that have arrived");
        for (long request : new long[] {sent, again, first}) {
            if (request != 0) {
                Native.await(request, -1, status);
            }
        }
    }

    @Test
    void shouldMoveEachFormOfEachElementTypeInOrder() {
        for (int code = 0; code < CLASSES.length; code++) {
            long[] types = types(-1 - code);
            for (long type : types) {
                for (int count = 0; count <= 3; count++) {
                    Object array = randomArray(code, 900);
                    sendAndCompare(type, array, 100, count);
                    int all = elements(type, 100, count, 900).length;
                    for (int n : new int[] {0, 1, all / 3, all / 2, all - 1, all}) {
                        if (n >= 0 && n <= all) {
                            receiveAndCompare(type, array, 100, count, n);
                        }
                    }
                }
                Native.freeType(type);
            }
        }
    }

    @Test
    void shouldMoveLongMessagesOfEachForm() {
        for (int code : new int[] {Types.BOOLEAN, Types.INT, Types.DOUBLE}) {
            for (long type : types(-1 - code)) {
                int[] info = new int[5];
                Native.typeInfo(type, info, 5);
                int count = 120_000 / info[1];
                int length = 400 + count * Math.abs(info[3] - info[2]);
                int off = 200 + (info[3] < info[2] ? length - 400 : 0);
                Object array = randomArray(code, length);
                sendAndCompare(type, array, off, count);
                receiveAndCompare(type, array, off, count, count * info[1]);
                receiveAndCompare(type, array, off, count, count * info[1] / 2 + 1);
                Native.freeType(type);
            }
        }
    }

    @Test
    void shouldExchangeItemsOfTwoTypesInOneArray() {
        int[] array = {0, 1, 2, 3, 4, 5, 6, 7};
        long even = Native.typeVector(-1 - Types.INT, 4, 1, 2, true);
        long reverse = Native.typeVector(-1 - Types.INT, 4, 1, -1, true);
        long envelope = Native.sendrecvTyped(world, even, array, 8, Types.INT, 0, 1, 0, TAG, reverse, array, 8, Types.INT,
                7, 1, 0, TAG, status);
        assertEquals(TAG, (int) envelope);
        assertArrayEquals(new int[] {0, 1, 2, 3, 6, 4, 2, 0}, array);
    }

    @Test
    void shouldRefuseItemsOutsideTheArrayBeforeAnythingIsSent() {
        int[] array = new int[9];
        long column = Native.typeVector(-1 - Types.INT, 3, 1, 4, true);
        Exception refused = assertThrows(ArrayIndexOutOfBoundsException.class,
                () -> Native.sendTyped(world, column, array, 9, Types.INT, 1, 1, 0, TAG, false));
        assertEquals("the items reach from element 1 to 9, outside an array of length 9", refused.getMessage());
        Exception other = assertThrows(IllegalArgumentException.class,
                () -> Native.sendTyped(world, column, new long[9], 9, Types.LONG, 0, 1, 0, TAG, false));
        assertEquals("the array cannot be used: its elements are not of the base type of the datatype",
                other.getMessage());
        assertEquals(Native.PENDING, Native.iprobe(world, 0, TAG, status));
    }

    @Test
    void shouldReportLongerMessagesAndLeaveTheArray() {
        int[] array = new int[20];
        long column = Native.typeVector(-1 - Types.INT, 3, 1, 4, true);
        Native.sendArray(world, new int[] {1, 2, 3, 4}, 4, Types.INT, 0, 4, 0, TAG, false);
        NativeFailure refused = assertThrows(NativeFailure.class,
                () -> Native.recvTyped(world, column, array, 20, Types.INT, 0, 1, 0, TAG, status));
        assertEquals(NativeFailure.TRUNCATED, refused.code());
        assertArrayEquals(new int[20], array);
    }
}
