package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.NotSerializableException;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/** Writes of objects: one stream for each message, and failed writes that add nothing. */
@Timeout(60)
class ObjectWriteBufferTest {
    /** An object that runs an action while it is written. */
    static final class Acting implements Serializable {
        private static final long serialVersionUID = 1L;
        private final transient Act act;

        Acting(Act act) {
            this.act = act;
        }

        private void writeObject(ObjectOutputStream out) throws IOException {
            out.defaultWriteObject();
            out.writeObject("written before the act");
            act.run();
        }

        private void readObject(java.io.ObjectInputStream in) throws IOException, ClassNotFoundException {
            in.defaultReadObject();
            in.readObject();
        }

        /** The action. */
        interface Act {
            void run() throws IOException;
        }
    }

    @Test
    void shouldWriteOneStreamOfOneObjectEach() throws Exception {
        Object[] objects = {"a", null, 5, List.of("x", "y"), new int[] {1, 2}};
        for (ByteOrder order : new ByteOrder[] {ByteOrder.BIG_ENDIAN, ByteOrder.LITTLE_ENDIAN}) {
            try (ObjectWriteBuffer out = new ObjectWriteBuffer(64, order)) {
                out.write(new int[] {7}, 0, 1);
                out.write(objects, 1, 3);
                out.write(objects, 4, 1);
                out.flush();
                byte[] expected = new Naive(order).section(Type.INT, new int[] {7}).objects(3).objects(1)
                        .secondary(Naive.serialised(objects[1], objects[2], objects[3], objects[4])).toByteArray();
                assertArrayEquals(expected, out.toByteArray());
                assertEquals(3, out.sectionCount());
            }
        }
    }

    @Test
    void shouldTakeElementsByIndexAndByPatch() throws Exception {
        Object[] source = {"0", "1", "2", "3", "4", "5", "6", "7"};
        try (ObjectWriteBuffer out = new ObjectWriteBuffer(64)) {
            out.gather(source, 3, 1, new int[] {9, 5, 0, 5});
            out.strGather(source, 7, 2, 0, 2, new int[] {2, 2, -4, -1});
            out.strGather(source, 2, 0, 0, 0, new int[0]);
            out.strGather(new Object[0], 0, 1, 0, 1, new int[] {0, 1});
            byte[] expected = new Naive(ByteOrder.nativeOrder()).objects(3).objects(4).objects(1).objects(0)
                    .secondary(Naive.serialised("5", "0", "5", "7", "6", "3", "2", "2")).toByteArray();
            // Equal texts are the same objects on both sides, because all are constants.
            assertArrayEquals(expected, out.toByteArray());
        }
    }

    @Test
    void shouldBeginTheStreamWithAnEmptySection() throws Exception {
        try (ObjectWriteBuffer out = new ObjectWriteBuffer(8)) {
            out.write(new Object[0], 0, 0);
            assertEquals("[0, 0, 0, 4, -84, -19, 0, 5]",
                    java.util.Arrays.toString(tail(new Naive(ByteOrder.BIG_ENDIAN).objects(0)
                            .secondary(Naive.serialised()).toByteArray())));
            assertArrayEquals(Naive.serialised(), java.util.Arrays.copyOfRange(out.toByteArray(), 24, 28));
        }
    }

    private static byte[] tail(byte[] octets) {
        return java.util.Arrays.copyOfRange(octets, octets.length - 8, octets.length);
    }

    @Test
    void shouldUseOnlyTheHeaderOfTheCapacity() throws Exception {
        try (ObjectWriteBuffer out = new ObjectWriteBuffer(16)) {
            out.write(new Object[] {"x".repeat(100_000)}, 0, 1);
            out.write(new Object[] {"y".repeat(100_000)}, 0, 1);
            byte[] before = out.toByteArray();
            Acting never = new Acting(() -> {
                throw new AssertionError("the capacity is checked before objects are serialised");
            });
            BufferOverflowException e =
                    assertThrows(BufferOverflowException.class, () -> out.write(new Object[] {never}, 0, 1));
            assertTrue(e.getMessage().contains("8 octets needed") && e.getMessage().contains("0 available"),
                    e.getMessage());
            assertArrayEquals(before, out.toByteArray());
        }
    }

    @Test
    void shouldRejectWrongRangesOfObjects() throws Exception {
        Object[] source = new Object[10];
        int max = Integer.MAX_VALUE;
        try (ObjectWriteBuffer out = new ObjectWriteBuffer(64)) {
            out.write(new Object[] {"x"}, 0, 1);
            byte[] before = out.toByteArray();
            for (Executable call : new Executable[] {() -> out.write(source, -1, 1), () -> out.write(source, 0, 11),
                () -> out.write(source, 0, -1), () -> out.write(source, max, max),
                () -> out.gather(source, 1, 0, new int[] {10}), () -> out.gather(source, 1, 0, new int[] {-1}),
                () -> out.gather(source, 2, 0, new int[] {0}), () -> out.gather(source, -1, 0, new int[] {0}),
                () -> out.gather(source, 1, -1, new int[] {0}),
                () -> out.strGather(source, 0, 1, 0, 1, new int[] {11, 1}),
                () -> out.strGather(source, 0, 1, 0, 1, new int[] {2, -1}),
                () -> out.strGather(source, -1, 0, 0, 0, new int[0]),
                () -> out.strGather(source, 10, 0, 0, 0, new int[0]),
                () -> out.strGather(source, 0, 2, 0, 1, new int[] {1, 1})}) {
                ArrayIndexOutOfBoundsException e = assertThrows(ArrayIndexOutOfBoundsException.class, call);
                assertTrue(e.getMessage().matches(".*[0-9].*"), e.getMessage());
                assertArrayEquals(before, out.toByteArray());
            }
            assertThrows(IllegalArgumentException.class,
                    () -> out.strGather(source, 0, 1, 0, 1, new int[] {-1, 1}));
            assertThrows(IllegalArgumentException.class,
                    () -> out.strGather(source, 0, 2, 0, 2, new int[] {max, max, 0, 0}));
            assertArrayEquals(before, out.toByteArray());
        }
    }

    // ---- Writes that fail

    private static void refuses(ObjectWriteBuffer out, Class<? extends Throwable> expected, Object bad)
            throws Exception {
        byte[] before = out.toByteArray();
        int sections = out.sectionCount();
        Object[] objects = {"fine", "x".repeat(20_000), bad, "never"};
        Throwable e = assertThrows(Throwable.class, () -> out.write(objects, 0, 4));
        assertSame(expected, e.getClass(), e.toString());
        assertArrayEquals(before, out.toByteArray(), "changed by a write that threw " + e);
        assertEquals(sections, out.sectionCount());
        assertThrows(expected, () -> out.gather(objects, 2, 0, new int[] {0, 2}));
        assertThrows(expected, () -> out.strGather(objects, 0, 1, 0, 1, new int[] {4, 1}));
        assertArrayEquals(before, out.toByteArray());
    }

    @Test
    void shouldRollBackASectionWithAnUnserialisableObject() throws Exception {
        try (ObjectWriteBuffer out = new ObjectWriteBuffer(64)) {
            out.write(new int[] {1}, 0, 1);
            // It is the first section of the message, so no stream has begun.
            refuses(out, NotSerializableException.class, new Object());
            out.write(new Object[] {"good"}, 0, 1);
            refuses(out, NotSerializableException.class, new Object());
            refuses(out, NotSerializableException.class, List.of("deep", new Object()));
        }
    }

    @Test
    void shouldRollBackASectionWhoseObjectThrows() throws Exception {
        try (ObjectWriteBuffer out = new ObjectWriteBuffer(64)) {
            out.write(new Object[] {"good"}, 0, 1);
            refuses(out, ArithmeticException.class, new Acting(() -> {
                throw new ArithmeticException("mine");
            }));
            refuses(out, java.io.InvalidObjectException.class, new Acting(() -> {
                throw new StackOverflowError("mine");
            }));
            refuses(out, IOException.class, new Acting(() -> {
                throw new IOException("mine");
            }));
        }
    }

    @Test
    void shouldShareReferencesAgainAfterAFailure() throws Exception {
        List<String> shared = new ArrayList<>(List.of("shared"));
        Comm.runThreads(2, world -> {
            if (world.id() == 0) {
                try (ObjectWriteBuffer out = new ObjectWriteBuffer(100)) {
                    out.write(new Object[] {shared}, 0, 1);
                    assertThrows(NotSerializableException.class,
                            () -> out.write(new Object[] {shared, "lost", new Object()}, 0, 3));
                    world.send(out, 1, 0);
                    out.write(new Object[] {shared, "lost"}, 0, 2);
                    out.write(new Object[] {shared}, 0, 1);
                    world.send(out, 1, 0);
                    out.clear();
                    assertThrows(NotSerializableException.class, () -> out.write(new Object[] {new Object()}, 0, 1));
                    out.write(new Object[] {shared}, 0, 1);
                    world.send(out, 1, 0);
                }
                return;
            }
            try (ObjectReadBuffer in = new ObjectReadBuffer(100)) {
                Object[] one = new Object[1];
                Object[] two = new Object[2];
                world.recv(in, 0, 0);
                in.read(one, 0, 1);
                assertEquals(shared, one[0]);
                assertEquals(-1, in.nextCount());
                world.recv(in, 0, 0);
                in.read(one, 0, 1);
                in.read(two, 0, 2);
                assertEquals(shared, two[0]);
                assertNotSame(one[0], two[0], "after a failure objects are sent in full again");
                assertEquals("lost", two[1]);
                in.read(one, 0, 1);
                assertSame(two[0], one[0], "later writes share objects again");
                world.recv(in, 0, 0);
                in.read(one, 0, 1);
                assertEquals(shared, one[0]);
                assertEquals(-1, in.nextCount());
            }
        });
    }

    @Test
    void shouldRejectAnObjectThatWritesIntoItsOwnBuffer() throws Exception {
        try (ObjectWriteBuffer out = new ObjectWriteBuffer(64); ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            out.write(new Object[] {"good"}, 0, 1);
            refuses(out, IllegalStateException.class, new Acting(() -> out.write(new Object[] {"inside"}, 0, 1)));
            out.write(new Object[] {"after"}, 0, 1);
            in.load(out.toByteArray());
            Object[] got = new Object[2];
            in.read(got, 0, 1);
            in.read(got, 1, 1);
            assertArrayEquals(new Object[] {"good", "after"}, got);
        }
    }

    @Test
    void shouldStayReadableAfterAnyActionOfAnObjectOnItsBuffer() throws Exception {
        Comm.runThreads(1, world -> {
            ObjectWriteBuffer[] buffer = new ObjectWriteBuffer[1];
            Acting.Act[] acts = {() -> buffer[0].clear(), () -> buffer[0].write(new int[] {3}, 0, 1),
                () -> buffer[0].ensureCapacity(500), () -> buffer[0].restoreCapacity(), () -> buffer[0].toByteArray(),
                () -> buffer[0].sectionCount(), () -> buffer[0].flush(), () -> world.send(buffer[0], 0, 1),
                () -> world.isend(buffer[0], 0, 1), () -> world.recv(buffer[0], 0, 2), () -> buffer[0].close()};
            for (int i = 0; i < acts.length; i++) {
                try (ObjectWriteBuffer out = new ObjectWriteBuffer(400);
                        ObjectReadBuffer in = new ObjectReadBuffer(400);
                        WriteBuffer small = new WriteBuffer(16)) {
                    buffer[0] = out;
                    world.send(small, 0, 2);
                    out.write(new Object[] {"good"}, 0, 1);
                    boolean failed = false;
                    try {
                        out.write(new Object[] {"x".repeat(9000), new Acting(acts[i]), "y".repeat(9000)}, 0, 3);
                    } catch (IllegalStateException e) {
                        failed = true;
                    }
                    if (i == acts.length - 1) {
                        assertTrue(failed, "the buffer is closed");
                        break;
                    }
                    if (!failed) {
                        drain(out, in);
                    }
                    out.clear();
                    out.write(new Object[] {"later"}, 0, 1);
                    in.load(out.toByteArray());
                    Object[] got = new Object[1];
                    in.read(got, 0, 1);
                    assertEquals("later", got[0], "act " + i);
                    for (Status s = world.iprobe(0, Comm.ANY_TAG); s != null; s = world.iprobe(0, Comm.ANY_TAG)) {
                        try (ObjectReadBuffer sent = new ObjectReadBuffer(s.size())) {
                            world.recv(sent, 0, s.tag);
                        }
                    }
                } catch (Throwable t) {
                    throw new AssertionError("act " + i + ": " + t, t);
                }
            }
        });
    }

    private static void drain(ObjectWriteBuffer out, ObjectReadBuffer in) throws Exception {
        in.load(out.toByteArray());
        while (in.nextType() != null) {
            if (in.nextType() == Type.OBJECT) {
                in.read(new Object[in.nextCount()], 0, in.nextCount());
            } else {
                AnyArray.read(in, AnyArray.make(in.nextType(), in.nextCount()), 0, in.nextCount());
            }
        }
    }
}
