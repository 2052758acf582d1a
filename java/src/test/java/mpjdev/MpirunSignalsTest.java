package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Signals of the JVM over an MPI that may install handlers too. Compiled code detects a null pointer, the end
 * of a stack and a safepoint by SIGSEGV, and a division by zero by SIGFPE, while other threads exchange
 * messages and a collector runs.
 */
@Tag("jdk")
class MpirunSignalsTest {
    private static final int SOAK_TIMES = 20;

    static Stream<Arguments> collectors() {
        return each("UseG1GC", "UseZGC", "UseParallelGC", "UseSerialGC");
    }

    static Stream<Arguments> collectorsWithThreads() {
        return each("UseG1GC", "UseZGC");
    }

    private static Stream<Arguments> each(String... collectors) {
        return Mpirun.launchers().flatMap(launcher -> Stream.of(collectors).map(c -> Arguments.of(launcher, c)));
    }

    /**
     * Threads that exchange arrays and objects with those of the other rank, beside threads that raise
     * signals.
     */
    static final class Traffic {
        private static final int PAIRS = 3;
        private static final int[] OCTETS = {8, 400, 5_000, 65_536, 1 << 20};
        /** Least number of signals of each kind: more than it takes until code is compiled. */
        private static final int SIGNALS = 20_000;
        private static final int OVERFLOWS = 50;
        private static final int BATCH = 500;
        /** Stack size of the thread that overflows its stack. */
        private static final long STACK = 256 << 10;

        private static volatile int zero;
        private static volatile Traffic none;
        private static volatile Object garbage;

        private final AtomicInteger exchanging = new AtomicInteger(PAIRS);
        private final AtomicReference<Throwable> failure = new AtomicReference<>();
        private int field;

        private Traffic() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            new Traffic().run(Integer.parseInt(args[0]));
            Comm.finish();
            System.out.println("right");
        }

        private void run(int rounds) throws Exception {
            Comm world = Comm.WORLD;
            List<Thread> threads = new ArrayList<>();
            threads.add(thread("nulls", () -> signal(SIGNALS, BATCH, NullPointerException.class, () -> none.field)));
            threads.add(thread("zeros", () -> signal(SIGNALS, BATCH, ArithmeticException.class, () -> BATCH / zero)));
            threads.add(thread("stack", () -> signal(OVERFLOWS, 1, StackOverflowError.class, () -> deep(0))));
            threads.add(thread("polls", this::poll));
            for (int pair = 0; pair < PAIRS; pair++) {
                int tag = pair;
                threads.add(thread("pair " + tag, () -> exchange(world, tag, rounds)));
            }
            threads.forEach(Thread::start);
            for (Thread thread : threads) {
                thread.join();
            }
            if (failure.get() != null) {
                throw new AssertionError(failure.get());
            }
        }

        private Thread thread(String name, Callable<?> body) {
            return new Thread(null, () -> {
                try {
                    body.call();
                } catch (Throwable e) {
                    failure.compareAndSet(null, e);
                }
                if (name.startsWith("pair")) {
                    exchanging.decrementAndGet();
                }
            }, name, STACK);
        }

        private boolean isExchanging() {
            return exchanging.get() > 0;
        }

        /**
         * Raises a signal at least {@code least} times and while messages are exchanged, and checks the
         * exception of each.
         */
        private Void signal(int least, int batch, Class<? extends Throwable> expected, Callable<Integer> body) throws Exception {
            for (int done = 0; done < least || isExchanging(); done++) {
                Throwable thrown = null;
                try {
                    body.call();
                } catch (RuntimeException | StackOverflowError e) {
                    thrown = e;
                }
                assertEquals(expected, thrown == null ? null : thrown.getClass());
                if (done % batch == batch - 1) {
                    Thread.yield();
                }
            }
            return null;
        }

        private static int deep(int depth) {
            return deep(depth + 1) + 1;
        }

        /** Runs loops that stop at safepoints only, and makes garbage. */
        private Void poll() {
            long sum = 0;
            do {
                for (long i = 0; i < 1_000_000; i++) {
                    sum += i ^ sum;
                }
                for (int i = 0; i < 50; i++) {
                    garbage = new int[20_000];
                }
                System.gc();
            } while (isExchanging());
            garbage = sum;
            return null;
        }

        private Void exchange(Comm world, int tag, int rounds) throws Exception {
            int peer = 1 - world.id();
            try (ObjectWriteBuffer out = new ObjectWriteBuffer(1 << 21); ObjectReadBuffer in = new ObjectReadBuffer(1 << 21)) {
                for (int round = 0; round < rounds; round++) {
                    long[] array = numbers(OCTETS[(round + tag) % OCTETS.length] / Long.BYTES, world.id(), round);
                    long[] wanted = numbers(array.length, peer, round);
                    boolean asObject = round % 2 == 0;
                    out.clear();
                    if (asObject) {
                        out.write(new Object[] {"round " + round, array}, 0, 2);
                    } else {
                        out.write(array, 0, array.length);
                    }
                    Request sent = round % 3 == 0 ? world.issend(out, peer, tag) : world.isend(out, peer, tag);
                    world.recv(in, peer, tag);
                    long[] got = new long[array.length];
                    if (asObject) {
                        Object[] objects = new Object[2];
                        in.read(objects, 0, 2);
                        assertEquals("round " + round, objects[0]);
                        got = (long[]) objects[1];
                    } else {
                        in.read(got, 0, got.length);
                    }
                    assertArrayEquals(wanted, got);
                    sent.iwait();
                }
            }
            return null;
        }

        private static long[] numbers(int count, int rank, int round) {
            long[] numbers = new long[count];
            Arrays.setAll(numbers, i -> (rank * 1000L + round) * 0x9e3779b97f4a7c15L + i);
            return numbers;
        }
    }

    /** {@code -Xcheck:jni} checks that the signal handlers are still those of the JVM. */
    private static void run(List<String> launcher, String collector, int rounds) throws Exception {
        Job job = Mpirun.job(launcher, 2).jvm("-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+" + collector,
                "-XX:+ErrorFileToStderr", "-XX:-CreateCoredumpOnCrash").run(Traffic.class, "" + rounds);
        assertEquals(0, job.status, job::toString);
        assertEquals(List.of("right", "right"), job.lines(), job::toString);
    }

    @ParameterizedTest
    @MethodSource("collectors")
    @Timeout(180)
    void shouldKeepTheSignalHandlersOfTheJvm(List<String> launcher, String collector) throws Exception {
        run(launcher, collector, 20);
    }

    @Tag("soak")
    @ParameterizedTest
    @MethodSource("collectorsWithThreads")
    @Timeout(3000)
    void shouldKeepTheSignalHandlersOfTheJvmInManyRuns(List<String> launcher, String collector) throws Exception {
        for (int time = 0; time < SOAK_TIMES; time++) {
            run(launcher, collector, 60);
        }
    }
}
