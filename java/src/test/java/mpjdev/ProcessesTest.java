package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import mpjdev.Mpjrun.Job;
import mpjdev.core.Native;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Ranks that are processes under the launcher, with the programs that also run as threads. */
@Timeout(180)
class ProcessesTest {
    /**
     * Sends arrays of all sizes around a ring, then objects, and calls split and barrier. An argument sets
     * the length of the longest arrays: {@code -Xcheck:jni} copies an array as a whole for each 256 KiB of
     * it that are written or read.
     */
    static final class Ring {
        private Ring() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            Comm world = Comm.WORLD;
            int me = world.id();
            int all = world.size();
            assertEquals(Comm.MODEL_MULTIPROCESS, Comm.getModel());
            int longest = args.length > 0 ? Integer.parseInt(args[0]) : 300_000;
            for (int n : new int[] {0, 1, 16, 1000, 100_000, longest}) {
                double[] mine = new double[n];
                Arrays.setAll(mine, i -> me * 1e9 + i);
                double[] got = new double[n];
                int capacity = Buffer.SECTION_OVERHEAD + n * Double.BYTES;
                try (WriteBuffer out = new WriteBuffer(capacity); ReadBuffer in = new ReadBuffer(capacity)) {
                    for (int round = 0; round < 3; round++) {
                        out.clear();
                        out.write(mine, 0, n);
                        Request sent = world.isend(out, (me + 1) % all, n % 1000);
                        Status status = world.recv(in, Comm.ANY_SOURCE, n % 1000);
                        assertEquals((me + all - 1) % all, status.source);
                        in.read(got, 0, n);
                        sent.iwait();
                        double[] expected = new double[n];
                        Arrays.setAll(expected, i -> status.source * 1e9 + i);
                        assertArrayEquals(expected, got);
                    }
                }
            }
            try (ObjectWriteBuffer out = new ObjectWriteBuffer(64); ObjectReadBuffer in = new ObjectReadBuffer(64)) {
                out.write(new Object[] {"from " + me, new byte[5000]}, 0, 2);
                Request sent = world.issend(out, (me + 1) % all, 7);
                world.recv(in, (me + all - 1) % all, 7);
                Object[] got = new Object[2];
                in.read(got, 0, 2);
                assertEquals("from " + (me + all - 1) % all, got[0]);
                sent.iwait();
                // A received message can be sent on.
                world.isend(in, me, 8);
                world.recv(in, me, 8);
                in.read(got, 0, 2);
                assertEquals(5000, ((byte[]) got[1]).length);
            }
            Comm half = world.split(me % 2, me);
            half.barrier();
            world.barrier();
            System.out.println(me + " of " + all + " in " + half.size());
            Comm.finish();
        }
    }

    @Test
    void shouldRunAProgramAsProcesses() throws Exception {
        Job job = new Mpjrun(3).run(Ring.class);
        assertEquals(0, job.status, job.err);
        assertEquals(List.of("0 of 3 in 2", "1 of 3 in 1", "2 of 3 in 2"), job.lines(), job.err);
    }

    @ParameterizedTest
    @Tag("soak")
    @ValueSource(strings = {"shm", "tcp", "udp"})
    void shouldRunAProgramWithLongArraysAsProcesses(String transport) throws Exception {
        Job job = new Mpjrun(3).with("--transport", transport).run(Ring.class, "2000000");
        assertEquals(0, job.status, job.err);
        assertEquals(List.of("0 of 3 in 2", "1 of 3 in 1", "2 of 3 in 2"), job.lines(), job.err);
    }

    /** Rank 1 exits while rank 0 waits for it. */
    static final class Dying {
        private Dying() {}

        public static void main(String[] args) {
            Comm.init(args);
            Comm.WORLD.barrier();
            if (Comm.WORLD.id() == 1) {
                Runtime.getRuntime().halt(9);
            }
            try (ReadBuffer in = new ReadBuffer(64)) {
                Comm.WORLD.recv(in, 1, 0);
            } catch (PeerFailedException e) {
                System.out.println(e.getMessage());
            }
            Comm.finish();
        }
    }

    @Test
    void shouldFailTheWaitForARankThatExits() throws Exception {
        Job job = new Mpjrun(2).with("--keep-going").run(Dying.class);
        assertEquals(9, job.status, job.err);
        assertEquals("rank 1 has failed: its process exited with status 9\n", job.out, job.err);
        assertTrue(job.err.contains("exited with status 9") && job.err.contains("without Comm.finish"), job.err);
    }

    /** Throws before finish. */
    static final class Throwing {
        private Throwing() {}

        public static void main(String[] args) {
            Comm.init(args);
            if (Comm.WORLD.id() == 0) {
                throw new IllegalArgumentException("on purpose");
            }
            Comm.WORLD.barrier();
            Comm.finish();
        }
    }

    @Test
    void shouldEndAJobWhenARankThrows() throws Exception {
        Job job = new Mpjrun(2).run(Throwing.class);
        assertEquals(1, job.status, job.err);
        assertTrue(job.err.contains("on purpose") && job.err.contains("mpjrun: rank 0 (process "), job.err);
    }

    /** Sends from buffers that are older than the rank, before and after a clear. */
    static final class Older {
        private static final int COUNT = 100_000;
        private static final int OCTETS = COUNT * Double.BYTES;

        private Older() {}

        public static void main(String[] args) throws Exception {
            double[] array = new double[COUNT];
            Arrays.setAll(array, i -> i);
            int capacity = Buffer.SECTION_OVERHEAD + OCTETS;
            try (WriteBuffer out = new WriteBuffer(capacity); ObjectWriteBuffer objects = new ObjectWriteBuffer(8)) {
                out.write(array, 0, COUNT);
                objects.write(new Object[] {array}, 0, 1);
                long before = Native.usedMemory();
                assertTrue(before >= 2 * OCTETS, "private memory: " + before);
                Comm.init(args);
                exchange(out, objects, array);
                out.clear();
                objects.clear();
                out.write(array, 0, COUNT);
                objects.write(new Object[] {array}, 0, 1);
                // At most the messages of the last exchange are still in private memory.
                assertTrue(Native.usedMemory() < OCTETS, "private memory: " + Native.usedMemory());
                exchange(out, objects, array);
            }
            Comm.finish();
        }

        private static void exchange(WriteBuffer out, ObjectWriteBuffer objects, double[] array) throws Exception {
            Comm world = Comm.WORLD;
            int other = 1 - world.id();
            double[] got = new double[COUNT];
            try (ReadBuffer in = new ReadBuffer(out.capacity()); ObjectReadBuffer object = new ObjectReadBuffer(8)) {
                Request first = world.isend(out, other, 1);
                Request second = world.isend(objects, other, 2);
                world.recv(in, other, 1);
                in.read(got, 0, COUNT);
                assertArrayEquals(array, got);
                world.recv(object, other, 2);
                Object[] one = new Object[1];
                object.read(one, 0, 1);
                assertArrayEquals(array, (double[]) one[0]);
                first.iwait();
                second.iwait();
            }
            world.barrier();
        }
    }

    @Test
    void shouldMoveOlderBuffersToSharedMemoryAtClear() throws Exception {
        Job job = new Mpjrun(2).run(Older.class);
        assertEquals(0, job.status, job::toString);
    }
}
