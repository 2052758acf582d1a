package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Completion of several requests in one native call. */
class CompleteRequestsTest {
    private static final int TAG = 7;

    private final int[][] arrays = {new int[2], new int[2], new int[2]};
    private long world;
    private long[] requests;
    private Object[] objects;
    private long[] results;

    @BeforeEach
    void start() {
        world = Native.worldOfOne();
        requests = new long[3];
        objects = new Object[3];
        results = new long[6];
        for (int i = 0; i < 3; i++) {
            requests[i] = Native.irecvArray(world, arrays[i], 2, Types.INT, 0, 2, 0, TAG + i, new NativeStatus());
            objects[i] = arrays[i];
        }
    }

    @AfterEach
    void finish() {
        for (long request : requests) {
            Native.freeRequest(request);
        }
        Native.finish(world);
        Native.freeComm(world);
    }

    private void send(int tag, int... data) {
        Native.sendArray(world, data, data.length, Types.INT, 0, data.length, 0, TAG + tag, false);
    }

    private int complete(int how, boolean blocking) {
        return Native.completeRequests(requests, 3, objects, 3, results, 6, how, blocking);
    }

    private void assertResults(long first, long second, long third) {
        assertArrayEquals(new long[] {first, second, third}, new long[] {results[0], results[2], results[4]});
    }

    @Test
    void shouldCompleteAllOrNone() {
        send(1, 4, 5);
        send(2, 6);
        assertEquals(0, complete(Native.ALL, false));
        assertResults(Native.PENDING, Native.PENDING, Native.PENDING);
        send(0, 1, 2);
        assertEquals(3, complete(Native.ALL, true));
        assertResults(TAG, TAG + 1, TAG + 2);
        // Size in the upper half, elements in the lower one.
        assertArrayEquals(new long[] {16L << 32 | 2, 16L << 32 | 2, 16L << 32 | 1}, new long[] {results[1], results[3], results[5]});
        assertArrayEquals(new int[][] {{1, 2}, {4, 5}, {6, 0}}, arrays);
        assertThrows(IllegalStateException.class, () -> complete(Native.ALL, true));
    }

    @Test
    void shouldCompleteTheFirstOrEachThatIsDone() {
        assertEquals(0, complete(Native.ANY, false));
        assertEquals(0, complete(Native.SOME, false));
        send(1, 4, 5);
        send(2, 6);
        assertEquals(1, complete(Native.ANY, true));
        assertResults(Native.PENDING, TAG + 1, Native.PENDING);
        requests[1] = 0;
        send(0, 1);
        assertEquals(2, complete(Native.SOME, true));
        assertResults(TAG, Native.PENDING, TAG + 2);
        requests = new long[3];
        assertEquals(0, complete(Native.ALL, true));
    }

    @Test
    void shouldStoreTheExceptionOfAFailedReceiveInPlaceOfItsArray() {
        send(0, 1);
        send(1, 4, 5, 6);
        requests[2] = 0;
        assertEquals(2, complete(Native.ALL, true));
        assertResults(TAG, Native.FAILED, Native.PENDING);
        assertSame(arrays[0], objects[0]);
        assertEquals(NativeFailure.TRUNCATED, ((NativeFailure) objects[1]).code());
        assertArrayEquals(new int[2], arrays[1]);
    }

    @Test
    void shouldRefuseAnArrayOfAnotherLengthAndNone() {
        objects[0] = new int[3];
        objects[1] = null;
        for (int i = 0; i < 3; i++) {
            send(i, 1);
        }
        assertEquals(3, complete(Native.ALL, true));
        assertResults(Native.FAILED, Native.FAILED, TAG + 2);
        assertEquals(IllegalStateException.class, objects[0].getClass());
        assertEquals(IllegalStateException.class, objects[1].getClass());
    }

    @Test
    void shouldRefuseTooFewPlacesAndRequestsOfAnotherRank() {
        assertThrows(IllegalArgumentException.class,
                () -> Native.completeRequests(requests, 3, objects, 2, results, 6, Native.ALL, false));
        assertThrows(IllegalArgumentException.class,
                () -> Native.completeRequests(requests, 3, objects, 3, results, 5, Native.ALL, false));
        assertThrows(NullPointerException.class,
                () -> Native.completeRequests(requests, 3, null, 3, results, 6, Native.ALL, false));
        long other = Native.worldOfOne();
        long mine = requests[2];
        requests[2] = Native.irecvArray(other, arrays[2], 2, Types.INT, 0, 2, 0, TAG, new NativeStatus());
        assertThrows(NativeFailure.class, () -> complete(Native.ANY, false));
        Native.freeRequest(requests[2]);
        requests[2] = mine;
        Native.finish(other);
        Native.freeComm(other);
    }
}
