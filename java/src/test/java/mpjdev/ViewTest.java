package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.ReadOnlyBufferException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import mpjdev.core.Native;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Views: elements in a view are sent, and a view that is used too late harms no other buffer. */
@Timeout(120)
class ViewTest {
    private static final ByteOrder[] ORDERS = {ByteOrder.BIG_ENDIAN, ByteOrder.LITTLE_ENDIAN};
    private static final int LARGE = 1 << 20;

    @Test
    void shouldSendElementsOfAViewLikeWrittenElements() {
        Random random = new Random(1);
        for (ByteOrder order : ORDERS) {
            for (Type type : AnyArray.TYPES) {
                for (int n : new int[] {0, 1, 3, 8, 129}) {
                    Object array = AnyArray.random(type, n, random);
                    int capacity = (int) (2 * Buffer.requiredCapacity(type, n) + Buffer.requiredCapacity(type, 1));
                    try (WriteBuffer out = new WriteBuffer(capacity, order)) {
                        AnyArray.write(out, array, 0, n);
                        ByteBuffer view = out.view(type, n);
                        AnyArray.write(out, AnyArray.make(type, 1), 0, 1);
                        assertTrue(view.isDirect() && !view.isReadOnly());
                        assertEquals(order, view.order());
                        assertEquals(n * AnyArray.size(type), view.remaining());
                        assertEquals(view.capacity(), view.remaining());
                        for (int i = 0; i < n; i++) {
                            AnyArray.put(view, array, i);
                        }
                        assertEquals(3, out.sectionCount());
                        assertArrayEquals(new Naive(order).section(type, array).section(type, array)
                                .section(type, AnyArray.make(type, 1)).toByteArray(), out.toByteArray());
                    }
                }
            }
        }
    }

    @Test
    void shouldShowAMessageInItsByteOrder() throws Exception {
        Random random = new Random(2);
        for (ByteOrder order : ORDERS) {
            for (Type type : AnyArray.TYPES) {
                for (int n : new int[] {0, 1, 5, 100}) {
                    Object array = AnyArray.random(type, n, random);
                    byte[] message = new Naive(order).section(type, array).section(type, array).toByteArray();
                    try (ReadBuffer in = new ReadBuffer(message.length)) {
                        in.load(message);
                        ByteBuffer view = in.view(type, n);
                        assertTrue(view.isDirect() && view.isReadOnly());
                        assertEquals(order, view.order());
                        ByteBuffer expected = ByteBuffer.allocate(n * AnyArray.size(type)).order(order);
                        for (int i = 0; i < n; i++) {
                            AnyArray.put(expected, array, i);
                        }
                        assertEquals(expected.flip(), view);
                        Object again = AnyArray.make(type, n);
                        AnyArray.read(in, again, 0, n);
                        assertTrue(AnyArray.same(array, again));
                        assertThrows(BufferReadException.class, () -> in.view(type, n));
                        in.reset();
                        assertEquals(expected, in.view(type, n));
                    }
                }
            }
        }
    }

    @Test
    void shouldAlignElementsForTypedBuffers() throws Exception {
        try (WriteBuffer out = new WriteBuffer(64); ReadBuffer in = new ReadBuffer(64)) {
            ByteBuffer view = out.view(Type.DOUBLE, 5);
            assertEquals(0, view.alignmentOffset(0, 8));
            view.asDoubleBuffer().put(new double[] {1, 2, 3, 4, 5});
            in.load(out.toByteArray());
            DoubleBuffer doubles = in.view(Type.DOUBLE, 5).asDoubleBuffer();
            double sum = 0;
            while (doubles.hasRemaining()) {
                sum += doubles.get();
            }
            assertEquals(15, sum);
            assertThrows(ReadOnlyBufferException.class, () -> doubles.put(0, 0));
        }
    }

    @Test
    void shouldChangeNothingWhenAViewIsRejected() throws Exception {
        try (WriteBuffer out = new WriteBuffer(24); ReadBuffer in = new ReadBuffer(24)) {
            assertThrows(BufferOverflowException.class, () -> out.view(Type.INT, 5));
            assertThrows(BufferOverflowException.class, () -> out.view(Type.DOUBLE, Integer.MAX_VALUE));
            assertThrows(IllegalArgumentException.class, () -> out.view(Type.INT, -1));
            assertThrows(IllegalArgumentException.class, () -> out.view(Type.OBJECT, 1));
            assertThrows(NullPointerException.class, () -> out.view(null, 1));
            assertEquals(0, out.sectionCount());
            out.view(Type.INT, 4).putInt(0, 7).putInt(12, 9);
            assertThrows(BufferOverflowException.class, () -> out.view(Type.BYTE, 0));
            assertThrows(BufferReadException.class, () -> in.view(Type.INT, 4));
            in.load(out.toByteArray());
            assertThrows(TypeMismatchException.class, () -> in.view(Type.FLOAT, 4));
            assertThrows(SectionSizeMismatchException.class, () -> in.view(Type.INT, 3));
            assertThrows(IllegalArgumentException.class, () -> in.view(Type.INT, -4));
            assertThrows(IllegalArgumentException.class, () -> in.view(Type.OBJECT, 4));
            assertEquals(9, in.view(Type.INT, 4).getInt(12));
        }
        WriteBuffer closed = new WriteBuffer(24);
        closed.close();
        assertThrows(IllegalStateException.class, () -> closed.view(Type.INT, 1));
    }

    @Test
    void shouldReuseTheMemoryOfViews() throws Exception {
        Comm.runThreads(1, world -> {
            int n = LARGE / Double.BYTES;
            try (WriteBuffer out = new WriteBuffer(LARGE + 8); ReadBuffer in = new ReadBuffer(LARGE + 8)) {
                long before = Native.usedMemory();
                for (int round = 0; round < 2000; round++) {
                    out.clear();
                    DoubleBuffer doubles = out.view(Type.DOUBLE, n).asDoubleBuffer();
                    doubles.put(0, round).put(n - 1, -round);
                    world.send(out, 0, 0);
                    world.recv(in, 0, 0);
                    doubles = in.view(Type.DOUBLE, n).asDoubleBuffer();
                    assertEquals(round, doubles.get(0));
                    assertEquals(-round, doubles.get(n - 1));
                }
                long used = Native.usedMemory() - before;
                assertTrue(used <= 4 * LARGE, used + " octets, without a collection");
            }
        });
    }

    @Test
    void shouldKeepMessagesThatReceiversStillRead() throws Exception {
        Comm.runThreads(2, world -> {
            int n = LARGE / Integer.BYTES;
            int messages = 20;
            if (world.id() == 0) {
                try (WriteBuffer out = new WriteBuffer(LARGE + 8)) {
                    for (int i = 0; i < messages; i++) {
                        out.clear();
                        ByteBuffer view = out.view(Type.INT, n);
                        view.putInt(0, i).putInt(LARGE - 4, i);
                        world.send(out, 1, 0);
                    }
                    world.barrier();
                    out.clear();
                    out.view(Type.INT, n).putInt(0, -1).putInt(LARGE - 4, -1);
                    world.barrier();
                }
            } else {
                List<ReadBuffer> all = new ArrayList<>();
                for (int i = 0; i < messages; i++) {
                    ReadBuffer in = new ReadBuffer(LARGE + 8);
                    world.recv(in, 0, 0);
                    all.add(in);
                }
                world.barrier();
                world.barrier();
                for (int i = 0; i < messages; i++) {
                    ByteBuffer view = all.get(i).view(Type.INT, n);
                    assertEquals(i, view.getInt(0));
                    assertEquals(i, view.getInt(LARGE - 4));
                    all.get(i).close();
                }
            }
        });
    }

    @Test
    void shouldContinueASentMessage() throws Exception {
        Comm.runThreads(1, world -> {
            try (WriteBuffer out = new WriteBuffer(4096); ReadBuffer in = new ReadBuffer(4096);
                    ReadBuffer second = new ReadBuffer(4096)) {
                out.view(Type.BYTE, 2000).put(0, (byte) 1);
                world.isend(out, 0, 0);
                out.view(Type.BYTE, 1000).put(0, (byte) 2);
                world.isend(out, 0, 0);
                world.recv(in, 0, 0);
                world.recv(second, 0, 0);
                assertEquals(1, in.sectionCount());
                assertEquals(1, in.view(Type.BYTE, 2000).get(0));
                assertEquals(1, second.view(Type.BYTE, 2000).get(0));
                assertEquals(2, second.view(Type.BYTE, 1000).get(0));
            }
        });
    }

    @Test
    void shouldWithholdMemoryOfOldViewsFromOtherBuffers() throws Exception {
        List<ByteBuffer> old = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            WriteBuffer out = new WriteBuffer(5000);
            old.add(out.view(Type.BYTE, 4000));
            if (i % 2 == 0) {
                out.ensureCapacity(9000);
                old.add(out.view(Type.BYTE, 8000));
                out.restoreCapacity();
            }
            out.close();
        }
        List<WriteBuffer> fresh = new ArrayList<>();
        byte[] zeros = new byte[4000];
        for (int i = 0; i < 40; i++) {
            WriteBuffer out = new WriteBuffer(i % 2 == 0 ? 5000 : 9000);
            out.write(zeros, 0, zeros.length);
            fresh.add(out);
        }
        for (ByteBuffer view : old) {
            while (view.hasRemaining()) {
                view.put((byte) -1);
            }
        }
        byte[] expected = new Naive(ByteOrder.nativeOrder()).section(Type.BYTE, zeros).toByteArray();
        for (WriteBuffer out : fresh) {
            assertArrayEquals(expected, out.toByteArray());
            out.close();
        }
    }

    @Test
    void shouldReleaseMemoryWhenTheViewIsUnreachable() throws Exception {
        Wait.untilCollected("the memory of other tests is released", () -> Native.usedMemory() < LARGE);
        ByteBuffer[] views = new ByteBuffer[1];
        try (WriteBuffer out = new WriteBuffer(LARGE)) {
            // Derived buffers keep the memory too.
            views[0] = out.view(Type.BYTE, LARGE - 8).slice(10, 20);
        }
        System.gc();
        assertTrue(Native.usedMemory() >= LARGE, () -> Native.usedMemory() + " octets");
        views[0].put(0, (byte) 1);
        views[0] = null;
        Wait.untilCollected("the memory is released", () -> Native.usedMemory() < LARGE);
    }

    @Test
    void shouldRejectACopyOfAMessageOntoItself() throws Exception {
        try (WriteBuffer out = new WriteBuffer(64); ReadBuffer in = new ReadBuffer(64)) {
            ByteBuffer view = out.view(Type.INT, 8);
            out.clear();
            assertThrows(IllegalArgumentException.class, () -> out.write(view, Type.INT, 0, 8));
            assertEquals(0, out.sectionCount());
            out.write(new int[8], 0, 8);
            in.load(out.toByteArray());
            in.read(view, Type.INT, 0, 8);
            in.reset();
            ByteBuffer shown = in.view(Type.INT, 8);
            out.clear();
            out.write(shown, Type.INT, 0, 8);
            assertArrayEquals(new Naive(ByteOrder.nativeOrder()).section(Type.INT, new int[8]).toByteArray(),
                    out.toByteArray());
        }
    }

    /** Reads views of memory that the pool has freed or reused, and writes views of closed buffers. */
    static final class Late {
        private Late() {}

        public static void main(String[] args) throws Exception {
            List<ByteBuffer> seen = new ArrayList<>();
            List<ByteBuffer> written = new ArrayList<>();
            for (int octets : new int[] {100, 5000, 100_000, LARGE, 3 * LARGE}) {
                byte[] message;
                try (WriteBuffer out = new WriteBuffer(octets + 16)) {
                    ByteBuffer view = out.view(Type.BYTE, octets);
                    view.put(octets - 1, (byte) 3);
                    message = out.toByteArray();
                    written.add(view);
                }
                try (ReadBuffer in = new ReadBuffer(octets + 16)) {
                    in.load(message);
                    seen.add(in.view(Type.BYTE, octets));
                }
                // The pool frees all unused memory.
                exhaust();
                written.removeIf(view -> view.capacity() >= LARGE);
            }
            long sum = 0;
            for (ByteBuffer view : seen) {
                for (int i = 0; i < view.capacity(); i += 64) {
                    sum += view.get(i);
                }
            }
            for (ByteBuffer view : written) {
                for (int i = 0; i < view.capacity(); i++) {
                    view.put(i, (byte) i);
                }
            }
            seen.clear();
            exhaust();
            System.out.println(sum != Long.MIN_VALUE ? "done" : "never");
        }

        private static void exhaust() {
            List<WriteBuffer> held = new ArrayList<>();
            try {
                while (true) {
                    WriteBuffer b = new WriteBuffer(LARGE / 3);
                    held.add(b);
                    b.write(new byte[1], 0, 1);
                }
            } catch (OutOfMemoryError e) {
                held.forEach(WriteBuffer::close);
            }
        }
    }

    @Test
    void shouldSurviveViewsThatAreUsedTooLate() throws Exception {
        assertEquals("done", new Fork().with("-Dmpjdev.memory=16m").run(Late.class).ok().strip());
    }

    /**
     * Two processes rewrite and sum 16 MiB in place, with memory for two such messages each: one is read
     * while the next is written.
     */
    static final class PingPong {
        private static final int OCTETS = 16 << 20;

        private PingPong() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            Comm world = Comm.WORLD;
            int n = OCTETS / Double.BYTES;
            ByteBuffer late = null;
            ByteBuffer mine = null;
            try (WriteBuffer out = new WriteBuffer(OCTETS + 8); ReadBuffer in = new ReadBuffer(OCTETS + 8)) {
                for (int round = 0; round < 12; round++) {
                    if (round % 2 == world.id()) {
                        out.clear();
                        mine = out.view(Type.DOUBLE, n);
                        DoubleBuffer doubles = mine.asDoubleBuffer();
                        for (int i = 0; i < n; i++) {
                            doubles.put(i, round + i);
                        }
                        world.send(out, 1 - world.id(), round);
                    } else {
                        world.recv(in, 1 - world.id(), round);
                        late = in.view(Type.DOUBLE, n);
                        DoubleBuffer doubles = late.asDoubleBuffer();
                        double sum = 0;
                        for (int i = 0; i < n; i++) {
                            sum += doubles.get(i);
                        }
                        assertEquals((double) n * round + (n - 1.0) * n / 2, sum);
                    }
                }
            }
            world.barrier();
            Comm.finish();
            System.gc();
            // The sender may have ended. The content is unspecified, and reads of it succeed.
            double last = late.getDouble(OCTETS - 8);
            mine.putDouble(0, last);
            System.out.println("done");
        }
    }

    @Test
    void shouldExchangeLargeMessagesInPlaceBetweenProcesses() throws Exception {
        Mpjrun.Job job = new Mpjrun(2).jvm("-Dmpjdev.memory=48m").run(PingPong.class);
        assertEquals(0, job.status, job::toString);
        assertEquals("done\ndone\n", job.out);
        assertFalse(job.err.contains("Exception"), job.err);
    }

    /** Ranks send and receive through views, in turns. */
    static final class ManyViews {
        private ManyViews() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            Comm world = Comm.WORLD;
            int other = 1 - world.id();
            try (WriteBuffer out = new WriteBuffer(LARGE + 8); ReadBuffer in = new ReadBuffer(LARGE + 8)) {
                long before = Native.usedMemory();
                for (int round = 0; round < 200; round++) {
                    if (round % 2 == world.id()) {
                        out.clear();
                        out.view(Type.BYTE, LARGE).put(0, (byte) round);
                        world.send(out, other, 0);
                    } else {
                        world.recv(in, other, 0);
                        assertEquals((byte) round, in.view(Type.BYTE, LARGE).get(0));
                    }
                }
                long used = Native.usedMemory() - before;
                assertTrue(used <= 8 * LARGE, used + " octets, without a collection");
            }
            Comm.finish();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "tcp", "udp"})
    void shouldReuseTheMemoryOfViewsBetweenProcesses(String transport) throws Exception {
        Mpjrun run = new Mpjrun(2);
        Mpjrun.Job job = (transport.equals("shm") ? run : run.with("--transport", transport)).run(ManyViews.class);
        assertEquals(0, job.status, job::toString);
        assertEquals("done\ndone\n", job.out);
    }

    @Test
    void shouldShowOctetsOfBooleansUnchanged() throws Exception {
        byte[] message = new Naive(ByteOrder.nativeOrder()).section(Type.BOOLEAN, new boolean[] {true, false}).toByteArray();
        message[16] = 2;
        try (ReadBuffer in = new ReadBuffer(64)) {
            in.load(message);
            ByteBuffer view = in.view(Type.BOOLEAN, 2);
            assertEquals(2, view.get(0));
            in.reset();
            boolean[] read = new boolean[2];
            in.read(read, 0, 2);
            assertTrue(Arrays.equals(new boolean[] {true, false}, read));
        }
    }
}
