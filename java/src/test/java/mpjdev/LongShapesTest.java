package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.Random;
import mpjdev.Mpjrun.Job;
import mpjdev.core.Native;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Long messages of runs, index lists and patches: they are packed after they were sent. */
@Timeout(180)
class LongShapesTest {
    private static final int TAG = 7;
    /** Tag of a message without elements: the other rank may continue. */
    private static final int GO = 8;
    /** Elements of a message: less than a part, several parts, several holds of the array. */
    private static final int[] COUNTS = {5000, 40_000, 200_000};
    /** Of each size, and one whose octets are converted. */
    private static final Type[] TYPES = {Type.BOOLEAN, Type.SHORT, Type.INT, Type.DOUBLE};

    /** The elements that a message is made of, or that it goes to. */
    private enum Shape {
        RUN, PICKED, PATCH, SMALL_BLOCKS;

        /** Their indices. */
        int[] indexes(int count) {
            int[] all = new int[count];
            switch (this) {
            case RUN -> Arrays.setAll(all, k -> 3 + k);
            case PICKED -> {
                Arrays.setAll(all, k -> 3 * k + 1);
                Random random = new Random(count);
                for (int k = count - 1; k > 0; k--) {
                    int other = random.nextInt(k + 1);
                    int index = all[k];
                    all[k] = all[other];
                    all[other] = index;
                }
            }
            case PATCH -> Arrays.setAll(all, k -> 2 + 3 * k);
            default -> Arrays.setAll(all, k -> 12 + 160 * (k / 50) + 15 * (k / 5 % 10) - 3 * (k % 5));
            }
            return all;
        }

        /** The length of the array. */
        int room(int count) {
            return count * 16 / 5 + 200;
        }

        /** Calls {@code send}, {@code isend}, {@code recv} or {@code irecv} for them. */
        Object call(Comm world, String name, Object array, int count, int other, int tag) throws Exception {
            String suffix = name.endsWith("send") ? "Gathered" : "Scattered";
            return switch (this) {
            case RUN -> ArrayMessagesTest.call(world, name, array, 3, count, other, tag);
            case PICKED -> ArrayMessagesTest.call(world, name + suffix, array, count, 0, indexes(count), other, tag);
            case PATCH ->
                ArrayMessagesTest.call(world, name + "Patch", array, 2, 1, 0, 1, new int[] {count, 3}, other, tag);
            default -> ArrayMessagesTest.call(world, name + "Patch", array, 12, 3, 0, 3,
                    new int[] {count / 50, 10, 5, 160, 15, -3}, other, tag);
            };
        }
    }

    private static void go(Comm world) {
        world.send(new byte[0], 0, 0, 1 - world.id(), GO);
    }

    private static void awaitGo(Comm world) {
        world.recv(new byte[0], 0, 0, 1 - world.id(), GO);
    }

    /** The array of which rank 0 sends elements. */
    private static Object source(Type type, int count) {
        return AnyArray.random(type, Shape.PATCH.room(count), new Random(count));
    }

    private static void check(Type type, int count, Shape from, Shape to, Object received) {
        Object expected = AnyArray.make(type, AnyArray.length(received));
        Object sent = source(type, count);
        int[] at = from.indexes(count);
        int[] target = to.indexes(count);
        for (int k = 0; k < count; k++) {
            System.arraycopy(sent, at[k], expected, target[k], 1);
        }
        assertTrue(AnyArray.same(expected, received), count + " x " + type + " from " + from + " to " + to);
    }

    /** Each shape to each shape: posted and late, by the source and by wildcards, after a probe. */
    static void exchange(Comm world) throws Exception {
        int turn = 0;
        for (int count : COUNTS) {
            for (Shape from : Shape.values()) {
                for (Shape to : Shape.values()) {
                    Type type = TYPES[turn % TYPES.length];
                    boolean isPosted = turn / TYPES.length % 2 == 0;
                    if (world.id() == 0) {
                        if (isPosted) {
                            awaitGo(world);
                        }
                        String name = turn % 3 == 0 ? "isend" : "send";
                        Object request = from.call(world, name, source(type, count), count, 1, TAG);
                        if (request != null) {
                            ((Request) request).iwait();
                        }
                    } else {
                        receive(world, type, count, from, to, isPosted, turn % 3 == 1);
                    }
                    turn++;
                }
            }
        }
    }

    private static void receive(Comm world, Type type, int count, Shape from, Shape to, boolean isPosted,
            boolean isWild) throws Exception {
        Object array = AnyArray.make(type, to.room(count));
        int source = isWild ? Comm.ANY_SOURCE : 0;
        int tag = isWild ? Comm.ANY_TAG : TAG;
        Object received;
        if (isPosted) {
            Object request = to.call(world, "irecv", array, count, source, tag);
            go(world);
            received = ((Request) request).iwait();
        } else {
            Status probed = world.probe(source, tag);
            assertEquals(Buffer.requiredCapacity(type, count), probed.size(), "the length is known at once");
            received = to.call(world, "recv", array, count, source, tag);
        }
        Status status = (Status) received;
        assertEquals(count, status.count());
        assertEquals(type, status.type());
        check(type, count, from, to, array);
    }

    /** A message that is too long changes nothing, and the next one is good. */
    static void truncation(Comm world) throws Exception {
        int count = COUNTS[1];
        for (Shape shape : Shape.values()) {
            if (world.id() == 0) {
                shape.call(world, "send", source(Type.INT, count), count, 1, TAG);
                shape.call(world, "send", source(Type.INT, count), count, 1, TAG);
                continue;
            }
            int[] array = new int[shape.room(count)];
            assertThrows(TruncationException.class, () -> shape.call(world, "recv", array, count - 50, 0, TAG));
            assertEquals(0, Arrays.stream(array).filter(element -> element != 0).count(), "nothing was stored");
            shape.call(world, "recv", array, count, 0, TAG);
            check(Type.INT, count, shape, shape, array);
        }
    }

    /** A synchronous send ends when its message is matched, whichever of both comes first. */
    static void synchronous(Comm world) throws Exception {
        for (int count : COUNTS) {
            double[] array = new double[Shape.RUN.room(count)];
            if (world.id() == 0) {
                double[] source = (double[]) source(Type.DOUBLE, count);
                awaitGo(world);
                world.ssend(source, 3, count, 1, TAG);
                Request late = world.issend(source, 3, count, 1, TAG);
                assertNull(late.itest(), "no receive matches it");
                go(world);
                late.iwait();
                continue;
            }
            Request posted = world.irecv(array, 3, count, 0, TAG);
            go(world);
            posted.iwait();
            check(Type.DOUBLE, count, Shape.RUN, Shape.RUN, array);
            awaitGo(world);
            Arrays.fill(array, 0);
            assertEquals(count, world.recv(array, 3, count, Comm.ANY_SOURCE, TAG).count());
            check(Type.DOUBLE, count, Shape.RUN, Shape.RUN, array);
        }
    }

    static void all(Comm world) throws Exception {
        exchange(world);
        truncation(world);
        synchronous(world);
    }

    /** Runs all programs above in a process that is a rank. */
    static final class Program {
        private Program() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            all(Comm.WORLD);
            Comm.WORLD.barrier();
            assertEquals(0, Native.openRequests());
            System.out.println("done");
            Comm.finish();
        }
    }

    @Test
    void shouldMoveLongShapesBetweenThreads() throws Exception {
        Comm.<Exception>runThreads(2, LongShapesTest::all);
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "tcp", "udp"})
    void shouldMoveLongShapesBetweenProcesses(String transport) throws Exception {
        Job job = new Mpjrun(2).with("--transport", transport).run(Program.class);
        assertEquals(0, job.status, job::toString);
        assertEquals(List.of("done", "done"), job.lines(), job::toString);
    }

    /** Copies of this length bypass the caches. */
    @Test
    void shouldMoveAnArrayThatIsStreamed() throws Exception {
        int length = (36 << 20) + 5;
        Comm.<Exception>runThreads(2, world -> {
            byte[] array = new byte[length];
            if (world.id() == 0) {
                for (int i = 0; i < length; i++) {
                    array[i] = (byte) (i * 31 >> 3);
                }
                world.send(array, 0, length, 1, TAG);
                return;
            }
            assertEquals(length, world.recv(array, 0, length, 0, TAG).count());
            for (int i = 0; i < length; i++) {
                if (array[i] != (byte) (i * 31 >> 3)) {
                    assertEquals((byte) (i * 31 >> 3), array[i], "octet " + i);
                }
            }
        });
    }

    /** Both ranks send at once; each receives elements while it may still have to send some. */
    @ParameterizedTest
    @ValueSource(ints = {5000, 200_000})
    void shouldExchangeLongShapesBothWays(int count) throws Exception {
        Comm.<Exception>runThreads(2, world -> {
            int other = 1 - world.id();
            int[] indexes = Shape.PICKED.indexes(count);
            double[] from = (double[]) source(Type.DOUBLE, count);
            double[] to = new double[from.length];
            world.sendrecvIndexed(from, count, 0, indexes, other, TAG, to, count, 0, indexes, other, TAG);
            check(Type.DOUBLE, count, Shape.PICKED, Shape.PICKED, to);
        });
    }
}
