package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The capture of a message by its send: later changes of the buffer belong to the next message. */
@Timeout(60)
class CaptureTest {
    /** Sizes: inside a queue cell, by reference, and above all that is stored inline. */
    private static final int[] COUNTS = {1, 100, 5000};

    private static int[] values(int count, int seed) {
        int[] values = new int[count];
        for (int i = 0; i < count; i++) {
            values[i] = seed * 1_000_003 + i;
        }
        return values;
    }

    /** Sends in one of the four ways and keeps the request. */
    private static void send(Comm world, int way, Buffer b, List<Request> requests) {
        switch (way) {
            case 0:
                world.send(b, 1, 0);
                break;
            case 1:
                requests.add(world.isend(b, 1, 0));
                break;
            case 2:
                requests.add(world.issend(b, 1, 0));
                break;
            default:
                world.ssend(b, 1, 0);
                break;
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldSendTheStateOfTheSendDespiteLaterChanges(boolean split) throws Exception {
        Wait.job(split, 2, world -> {
            if (world.id() == 0) {
                List<Request> requests = new ArrayList<>();
                for (int way = 0; way < 4; way++) {
                    for (int count : COUNTS) {
                        ObjectWriteBuffer out = new ObjectWriteBuffer(8 + 4 * count + 12);
                        out.write(values(count, 1), 0, count);
                        out.write(new Object[] {"one" + count}, 0, 1);
                        send(world, way, out, requests);
                        send(world, way, out, requests);
                        out.clear();
                        out.write(values(count, 2), 0, count);
                        send(world, way, out, requests);
                        out.ensureCapacity(10 * count + 100);
                        out.write(values(2 * count, 3), 0, 2 * count);
                        send(world, way, out, requests);
                        out.close();
                    }
                }
                Request.iwaitall(requests.toArray(new Request[0]));
                return;
            }
            for (int way = 0; way < 4; way++) {
                for (int count : COUNTS) {
                    try (ObjectReadBuffer in = new ObjectReadBuffer(10 * count + 100)) {
                        for (int message = 0; message < 4; message++) {
                            world.recv(in, 0, 0);
                            int[] got = new int[message == 3 ? 2 * count : count];
                            in.read(got, 0, got.length);
                            assertArrayEquals(values(got.length, Math.max(1, message)), got);
                            if (message < 2) {
                                Object[] objects = new Object[1];
                                in.read(objects, 0, 1);
                                assertEquals("one" + count, objects[0]);
                            }
                            assertEquals(-1, in.nextCount());
                        }
                    }
                }
            }
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldContinueTheMessageWhenWrittenAfterASend(boolean split) throws Exception {
        Wait.job(split, 2, world -> {
            List<String> shared = new ArrayList<>(List.of("shared"));
            int rounds = 20;
            if (world.id() == 0) {
                List<Request> requests = new ArrayList<>();
                try (ObjectWriteBuffer out = new ObjectWriteBuffer(1 << 14)) {
                    for (int round = 0; round < rounds; round++) {
                        out.write(values(50, round), 0, 50);
                        out.write(new Object[] {shared}, 0, 1);
                        send(world, round % 3, out, requests);
                    }
                }
                Request.iwaitall(requests.toArray(new Request[0]));
                return;
            }
            try (ObjectReadBuffer in = new ObjectReadBuffer(1 << 14)) {
                for (int round = 0; round < rounds; round++) {
                    world.recv(in, 0, 0);
                    assertEquals(2 * (round + 1), in.sectionCount());
                    Object first = null;
                    for (int section = 0; section <= round; section++) {
                        int[] got = new int[50];
                        in.read(got, 0, 50);
                        assertArrayEquals(values(50, section), got);
                        Object[] object = new Object[1];
                        in.read(object, 0, 1);
                        assertEquals(shared, object[0]);
                        first = section == 0 ? object[0] : first;
                        assertSame(first, object[0], "one message, one stream");
                    }
                }
            }
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldDropEarlierSectionsWhenAMessageBegins(boolean split) throws Exception {
        Wait.job(split, 2, world -> {
            List<String> shared = new ArrayList<>(List.of("shared"));
            if (world.id() == 0) {
                try (ObjectWriteBuffer out = new ObjectWriteBuffer(64)) {
                    for (int i = 0; i < 3; i++) {
                        out.clear();
                        out.write(new Object[] {shared, shared}, 0, 2);
                        shared.add("more");
                        out.flush();
                        world.send(out, 1, 0);
                    }
                }
                return;
            }
            try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
                Object last = null;
                for (int i = 0; i < 3; i++) {
                    world.recv(in, 0, 0);
                    Object[] got = new Object[2];
                    in.read(got, 0, 2);
                    assertSame(got[0], got[1]);
                    assertEquals(1 + i, ((List<?>) got[0]).size(), "each message has the state of its send");
                    assertNotSame(last, got[0]);
                    last = got[0];
                }
            }
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldBeginAtTheFirstSectionAfterAReceive(boolean split) throws Exception {
        Wait.job(split, 2, world -> {
            if (world.id() == 0) {
                try (ObjectWriteBuffer out = new ObjectWriteBuffer(128)) {
                    for (int i = 0; i < 4; i++) {
                        out.clear();
                        out.write(new Object[] {"object" + i, "other" + i}, 0, 2);
                        out.write(new int[] {i}, 0, 1);
                        world.send(out, 1, 0);
                    }
                }
                return;
            }
            try (ObjectReadBuffer in = new ObjectReadBuffer(128)) {
                Object[] objects = new Object[2];
                int[] ints = new int[1];
                for (int i = 0; i < 4; i++) {
                    Request request = i % 2 == 0 ? null : world.irecv(in, 0, 0);
                    Status status = request == null ? world.recv(in, 0, 0) : request.iwait();
                    assertEquals(Type.OBJECT, status.type());
                    in.read(objects, 0, 2);
                    assertArrayEquals(new Object[] {"object" + i, "other" + i}, objects);
                    in.reset();
                    in.read(objects, 0, 2);
                    assertEquals("other" + i, objects[1]);
                    if (i > 1) {
                        in.read(ints, 0, 1);
                        assertEquals(i, ints[0]);
                    }
                    if (i == 3) {
                        in.reset();
                    }
                }
                assertEquals(Type.OBJECT, in.nextType());
            }
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldForwardTheMessageOfAReadBuffer(boolean split) throws Exception {
        Wait.job(split, 3, world -> {
            int next = (world.id() + 1) % 3;
            int before = (world.id() + 2) % 3;
            for (ByteOrder order : new ByteOrder[] {ByteOrder.BIG_ENDIAN, ByteOrder.LITTLE_ENDIAN}) {
                for (int count : COUNTS) {
                    try (ObjectReadBuffer in = new ObjectReadBuffer(4 * count + 100);
                            ObjectWriteBuffer out = new ObjectWriteBuffer(4 * count + 100, order)) {
                        if (world.id() == 0) {
                            out.write(values(count, 4), 0, count);
                            out.write(new Object[] {List.of("x".repeat(count)), null}, 0, 2);
                            world.send(out, next, 0);
                            world.recv(in, before, 0);
                        } else {
                            world.recv(in, before, 0);
                            int[] got = new int[count];
                            // The whole message is sent on, however much of it was read.
                            if (world.id() == 1) {
                                in.read(got, 0, count);
                            }
                            world.send(in, next, 0);
                            world.isend(in, next, 1).iwait();
                            in.reset();
                        }
                        int[] got = new int[count];
                        in.read(got, 0, count);
                        assertArrayEquals(values(count, 4), got);
                        Object[] objects = new Object[2];
                        in.read(objects, 0, 2);
                        assertEquals(List.of("x".repeat(count)), objects[0]);
                        if (world.id() != 1) {
                            world.recv(in, before, 1);
                            assertEquals(2, in.sectionCount());
                        }
                        if (world.id() == 2) {
                            // A loaded message is sent on too.
                            in.load(new Naive(order).section(Type.SHORT, new short[] {7}).toByteArray());
                            world.send(in, 1, 2);
                        } else if (world.id() == 1) {
                            world.recv(in, 2, 2);
                            short[] shorts = new short[1];
                            in.read(shorts, 0, 1);
                            assertEquals(7, shorts[0]);
                        }
                    }
                }
            }
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldContinueAMessageThatAWriteBufferReceived(boolean split) throws Exception {
        ByteOrder foreign =
                ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN;
        Wait.job(split, 2, world -> {
            int other = 1 - world.id();
            for (int count : COUNTS) {
                if (world.id() == 0) {
                    try (WriteBuffer out = new WriteBuffer(4 * count + 12, foreign);
                            ReadBuffer in = new ReadBuffer(8 * count + 100)) {
                        out.write(values(count, 5), 0, count);
                        world.send(out, other, 0);
                        world.recv(in, other, 0);
                        assertEquals(2, in.sectionCount());
                        int[] got = new int[count];
                        in.read(got, 0, count);
                        assertArrayEquals(values(count, 5), got);
                        in.read(got, 0, count);
                        assertArrayEquals(values(count, 6), got);
                        // The additions of the receiver have not changed the buffer of the sender.
                        assertEquals(16 + 8 + (4 * count + 7) / 8 * 8, out.toByteArray().length);
                    }
                } else {
                    try (ObjectWriteBuffer both = new ObjectWriteBuffer(8 * count + 100)) {
                        both.write(new Object[] {"gone"}, 0, 1);
                        world.recv(both, other, 0);
                        both.write(values(count, 6), 0, count);
                        // The byte order of the message stays.
                        assertEquals(foreign == ByteOrder.BIG_ENDIAN ? 0 : 1, both.toByteArray()[0]);
                        world.send(both, other, 0);
                        both.clear();
                        assertEquals(foreign == ByteOrder.BIG_ENDIAN ? 1 : 0, both.toByteArray()[0]);
                    }
                }
            }
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldRejectObjectsForAReceivedMessageWithObjects(boolean split) throws Exception {
        Wait.job(split, 2, world -> {
            int other = 1 - world.id();
            try (ObjectWriteBuffer out = new ObjectWriteBuffer(64); ObjectReadBuffer in = new ObjectReadBuffer(64)) {
                if (world.id() == 0) {
                    out.write(new Object[] {"theirs"}, 0, 1);
                    world.send(out, other, 0);
                    world.recv(in, other, 0);
                    Object[] got = new Object[1];
                    in.read(got, 0, 1);
                    assertEquals("theirs", got[0]);
                    in.read(new int[1], 0, 1);
                    world.recv(in, other, 0);
                    in.read(got, 0, 1);
                    assertEquals("mine", got[0]);
                } else {
                    world.recv(out, other, 0);
                    byte[] before = out.toByteArray();
                    IllegalStateException e =
                            assertThrows(IllegalStateException.class, () -> out.write(new Object[] {"mine"}, 0, 1));
                    assertTrue(e.getMessage().contains("clear"), e.getMessage());
                    assertArrayEquals(before, out.toByteArray());
                    out.write(new int[] {1}, 0, 1);
                    world.send(out, other, 0);
                    out.clear();
                    out.write(new Object[] {"mine"}, 0, 1);
                    world.send(out, other, 0);
                }
            }
        });
    }
}
