package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import mpjdev.Mpjrun.Job;
import mpjdev.core.Native;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Messages in both directions between elements that an index list or a patch selects. */
@Timeout(180)
class SendrecvTest {
    private static final int TAG = 5;
    /** Rows of the patches: inline, by reference, longer than what is sent ahead. */
    private static final int[] ROWS = {0, 1, 30, 2000, 20_000};
    private static final int COLUMNS = 7;
    private static final int STRIDE = 9;
    private static final int OFF = 20;

    /** Elements of a patch of 7 columns from right to left, in an array that has room for both ends. */
    private static int[] patch(int rows) {
        int[] all = new int[rows * COLUMNS];
        Arrays.setAll(all, k -> OFF + STRIDE * (k / COLUMNS) - 2 * (k % COLUMNS));
        return all;
    }

    /** Calls the overload for these arrays: by index lists, or by the patches that have the same elements. */
    private static Status sendrecv(Comm world, boolean byPatch, Object from, Object to, int rows, int peer)
            throws Exception {
        int[] indexes = patch(rows);
        int[] shape = {rows, COLUMNS, STRIDE, -2}; // extents, then strides
        Class<?> array = from.getClass();
        Class<?> i = int.class;
        Class<?> is = int[].class;
        try {
            if (byPatch) {
                return (Status) Comm.class
                        .getMethod("sendrecvPatch", array, i, i, i, i, is, i, i, array, i, i, i, i, is, i, i)
                        .invoke(world, from, OFF, 2, 0, 2, shape, peer, TAG, to, OFF, 2, 0, 2, shape, peer, TAG);
            }
            return (Status) Comm.class.getMethod("sendrecvIndexed", array, i, i, is, i, i, array, i, i, is, i, i)
                    .invoke(world, from, indexes.length, 0, indexes, peer, TAG, to, indexes.length, 0, indexes,
                            Comm.ANY_SOURCE, TAG);
        } catch (InvocationTargetException e) {
            throw (Exception) e.getCause();
        }
    }

    /** All types and lengths, with each form at each end. */
    static void exchange(Comm world) throws Exception {
        int me = world.id();
        for (int rows : ROWS) {
            int[] selected = patch(rows);
            for (Type type : AnyArray.TYPES) {
                for (int form = 0; form < 4; form++) {
                    int length = STRIDE * rows + 2 * OFF;
                    Object[] sent = {AnyArray.random(type, length, new Random(rows)),
                        AnyArray.random(type, length, new Random(rows + 1))};
                    Object expected = AnyArray.make(type, length);
                    for (int at : selected) {
                        System.arraycopy(sent[1 - me], at, expected, at, 1);
                    }
                    Object got = AnyArray.make(type, length);
                    Status status = sendrecv(world, (form >> me & 1) == 0, sent[me], got, rows, 1 - me);
                    String name = type + " " + rows + " " + form;
                    assertTrue(AnyArray.same(expected, got), name);
                    assertEquals(selected.length, status.count(), name);
                    assertEquals(type, status.type(), name);
                    assertEquals(1 - me, status.source, name);
                }
            }
        }
    }

    /** Runs the exchange in a process that is a rank. */
    static final class Program {
        private Program() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            exchange(Comm.WORLD);
            Comm.WORLD.barrier();
            assertEquals(0, Native.openRequests());
            System.out.println("done");
            Comm.finish();
        }
    }

    private static void check(Job job) {
        assertEquals(0, job.status, job::toString);
        assertEquals(List.of("done", "done"), job.lines(), job::toString);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldExchangeElementsBetweenThreads(boolean split) throws Exception {
        Wait.<Exception>job(split, 2, SendrecvTest::exchange);
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "tcp", "udp"})
    void shouldExchangeElementsBetweenProcesses(String transport) throws Exception {
        Mpjrun run = new Mpjrun(2);
        check((transport.equals("shm") ? run : run.with("--transport", transport)).run(Program.class));
    }

    @ParameterizedTest
    @MethodSource("mpjdev.Mpirun#launchers")
    void shouldExchangeElementsUnderAnMpi(List<String> launcher) throws Exception {
        check(Mpirun.job(launcher, 2).run(Program.class));
    }

    @Test
    void shouldSendNothingWhenAnArgumentIsWrong() {
        Comm.runThreads(1, world -> {
            int[] array = {1, 2, 3};
            int[] good = {0, 1, 2};
            int[] bad = {0, 1, 3};
            int[] line = {3, 1, 2, 1}; // an extent and a stride that fit, two that do not
            Executable[] bounds = {() -> world.sendrecvIndexed(array, 3, 0, bad, 0, TAG, array, 3, 0, good, 0, TAG),
                () -> world.sendrecvIndexed(array, 3, 0, good, 0, TAG, array, 3, 0, bad, 0, TAG),
                () -> world.sendrecvIndexed(array, 3, 1, good, 0, TAG, array, 3, 0, good, 0, TAG),
                () -> world.sendrecvIndexed(array, 3, 0, good, 0, TAG, array, 3, -1, good, 0, TAG),
                () -> world.sendrecvIndexed(array, -1, 0, good, 0, TAG, array, 3, 0, good, 0, TAG),
                () -> world.sendrecvIndexed(array, 3, 0, good, 0, TAG, array, -1, 0, good, 0, TAG),
                () -> world.sendrecvPatch(array, 1, 1, 0, 1, line, 0, TAG, array, 0, 1, 0, 1, line, 0, TAG),
                () -> world.sendrecvPatch(array, 0, 1, 0, 1, line, 0, TAG, array, 2, 1, 2, 3, line, 0, TAG),
                () -> world.sendrecvPatch(array, 0, 1, 0, 1, line, 0, TAG, array, -1, 1, 0, 1, line, 0, TAG),
                () -> world.sendrecvPatch(array, 0, 1, 4, 1, line, 0, TAG, array, 0, 1, 0, 1, line, 0, TAG)};
            for (Executable call : bounds) {
                assertThrows(ArrayIndexOutOfBoundsException.class, call);
            }
            Executable[] ranks = {() -> world.sendrecvIndexed(array, 3, 0, good, 1, TAG, array, 3, 0, good, 0, TAG),
                () -> world.sendrecvIndexed(array, 3, 0, good, 0, TAG, array, 3, 0, good, 1, TAG),
                () -> world.sendrecvIndexed(array, 3, 0, good, 0, -1, array, 3, 0, good, 0, TAG),
                () -> world.sendrecvIndexed(array, 3, 0, good, 0, TAG, array, 3, 0, good, 0, -3),
                () -> world.sendrecvPatch(array, 0, 1, 0, 1, line, -1, TAG, array, 0, 1, 0, 1, line, 0, TAG),
                () -> world.sendrecvPatch(array, 0, 1, 0, 1, line, 0, TAG, array, 0, 1, 0, 1, line, -5, TAG)};
            for (Executable call : ranks) {
                assertThrows(BadArgumentException.class, call);
            }
            int[] none = null;
            assertThrows(NullPointerException.class,
                    () -> world.sendrecvIndexed(array, 0, 0, good, 0, TAG, none, 0, 0, good, 0, TAG));
            assertThrows(NullPointerException.class,
                    () -> world.sendrecvPatch(array, 0, 1, 0, 1, line, 0, TAG, array, 0, 1, 0, 1, none, 0, TAG));
            assertArrayEquals(new int[] {1, 2, 3}, array);
            assertNull(world.iprobe(Comm.ANY_SOURCE, Comm.ANY_TAG), "nothing was sent");
        });
    }

    @Test
    void shouldSendFromTheElementsThatItReceivesInto() {
        Comm.runThreads(1, world -> {
            long[] array = {1, 2, 3, 4};
            world.sendrecvIndexed(array, 4, 0, new int[] {0, 1, 2, 3}, 0, TAG, array, 4, 0, new int[] {3, 2, 1, 0}, 0,
                    TAG);
            assertArrayEquals(new long[] {4, 3, 2, 1}, array);
            int[] line = {4, 1, -1}; // extent, strides up and down
            world.sendrecvPatch(array, 0, 1, 0, 1, line, 0, TAG, array, 3, 1, 0, 2, line, 0, TAG);
            assertArrayEquals(new long[] {1, 2, 3, 4}, array);
        });
    }

    @Test
    void shouldChangeTheFirstElementsWhenTheMessageIsShorter() {
        Comm.runThreads(1, world -> {
            double[] to = new double[5];
            Status status = world.sendrecvIndexed(new double[] {7, 8}, 1, 0, new int[] {1}, 0, TAG, to, 3, 1,
                    new int[] {9, 4, 2, 0}, 0, TAG);
            assertEquals(1, status.count());
            assertArrayEquals(new double[] {0, 0, 0, 0, 8}, to);
        });
    }

    @Test
    void shouldSendItsMessageWhenTheReceiveFails() {
        Comm.runThreads(1, world -> {
            int[] to = new int[2];
            int[] indexes = {0, 1, 2};
            int[] line = {3, 2, 1}; // extents of both ends, stride
            int[] from = {1, 2, 3};
            world.send(from, 0, 3, 0, TAG);
            assertThrows(TruncationException.class,
                    () -> world.sendrecvIndexed(from, 3, 0, indexes, 0, TAG + 1, to, 2, 0, indexes, 0, TAG));
            world.send(new float[1], 0, 1, 0, TAG);
            assertThrows(ContentMismatchException.class,
                    () -> world.sendrecvPatch(from, 0, 1, 0, 2, line, 0, TAG + 2, to, 0, 1, 1, 2, line, 0, TAG));
            assertArrayEquals(new int[2], to);
            int[] received = new int[3];
            for (int tag = TAG + 1; tag <= TAG + 2; tag++) {
                assertEquals(3, world.recv(received, 0, 3, 0, tag).count());
                assertArrayEquals(from, received);
            }
        });
    }
}
