package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A receive that is started when its message has arrived makes no request, unless the message fails. */
class ArrivedReceiveTest {
    private static final int TAG = 5;

    private final NativeStatus status = new NativeStatus();
    private final int[] array = new int[2];
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

    private void send(int tag, int... data) {
        Native.sendArray(world, data, data.length, Types.INT, 0, data.length, 0, tag, false);
    }

    private long receive(int source, int tag) {
        return Native.irecvArray(world, array, 2, Types.INT, 0, 2, source, tag, status);
    }

    private int codeOfTheWaitFor(long request) {
        assertTrue(request > 0, "no message was stored");
        NativeFailure thrown = assertThrows(NativeFailure.class,
                () -> Native.awaitArray(request, array, 2, Types.INT, -1, status));
        assertArrayEquals(new int[2], array);
        return thrown.code();
    }

    @Test
    void shouldStoreAnArrivedMessage() {
        send(TAG, 7, 8);
        send(TAG + 1, 9);
        assertEquals(~(long) TAG, receive(0, TAG));
        assertArrayEquals(new int[] {7, 8}, array);
        assertEquals(2, status.setType(Types.INT));
        assertEquals(~(long) (TAG + 1), receive(Native.ANY_SOURCE, Native.ANY_TAG));
        assertArrayEquals(new int[] {9, 8}, array);
        assertEquals(1, status.setType(Types.INT));
    }

    @Test
    void shouldTakeAMessageBehindOthers() {
        send(TAG + 1, 1);
        send(TAG, 2);
        assertEquals(~(long) TAG, receive(0, TAG));
        assertEquals(~(long) (TAG + 1), receive(0, TAG + 1));
        assertEquals(1, array[0]);
    }

    @Test
    void shouldLeaveAMessageThatIsTooLongToTheRequest() {
        send(TAG, 1, 2, 3, 4, 5, 6);
        assertEquals(NativeFailure.TRUNCATED, codeOfTheWaitFor(receive(0, TAG)));
    }

    /** Its padded length fits. */
    @Test
    void shouldLeaveAMessageOfOneElementTooManyToTheRequest() {
        byte[] one = new byte[1];
        Native.sendArray(world, new byte[] {1, 2}, 2, Types.BYTE, 0, 2, 0, TAG, false);
        long request = Native.irecvArray(world, one, 1, Types.BYTE, 0, 1, 0, TAG, status);
        assertTrue(request > 0, "no message was stored");
        NativeFailure thrown = assertThrows(NativeFailure.class,
                () -> Native.awaitArray(request, one, 1, Types.BYTE, -1, status));
        assertEquals(NativeFailure.TRUNCATED, thrown.code());
        assertEquals(0, one[0]);
    }

    @Test
    void shouldLeaveAMessageOfAnotherTypeToTheRequest() {
        Native.sendArray(world, new float[] {1}, 1, Types.FLOAT, 0, 1, 0, TAG, false);
        assertEquals(NativeFailure.TYPE_MISMATCH, codeOfTheWaitFor(receive(0, TAG)));
    }

    @Test
    void shouldLeaveAnArrivedMessageToAnEarlierReceive() {
        int[] earlier = new int[2];
        long first = Native.irecvArray(world, earlier, 2, Types.INT, 0, 2, 0, Native.ANY_TAG, status);
        assertTrue(first > 0, "nothing has arrived");
        send(TAG, 7);
        long second = receive(0, TAG);
        assertTrue(second > 0, "the message is not its own");
        assertEquals(TAG, (int) Native.awaitArray(first, earlier, 2, Types.INT, -1, status));
        assertEquals(7, earlier[0]);
        send(TAG, 8);
        assertEquals(TAG, (int) Native.awaitArray(second, array, 2, Types.INT, -1, status));
        assertEquals(8, array[0]);
    }
}
