package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Joining of a job: repeated, interrupted and rejected. */
@Timeout(180)
class JoiningTest {
    /** Joins and finishes several times, with buffers from before, during and after each join. */
    static final class Rounds {
        private static final int COUNT = 50_000;

        private Rounds() {}

        public static void main(String[] args) throws Exception {
            double[] mine = new double[COUNT];
            double[] got = new double[COUNT];
            int capacity = Buffer.SECTION_OVERHEAD + COUNT * Double.BYTES;
            Comm before = null;
            try (WriteBuffer oldest = new WriteBuffer(capacity); ReadBuffer in = new ReadBuffer(capacity)) {
                oldest.write(mine, 0, COUNT);
                for (int round = 0; round < 4; round++) {
                    Comm.init(args);
                    Comm stale = before;
                    if (stale != null) {
                        assertThrows(NotInitializedException.class, stale::barrier);
                    }
                    int seed = 10 * round + Comm.WORLD.id();
                    Arrays.setAll(mine, i -> seed + i);
                    oldest.clear();
                    oldest.write(mine, 0, COUNT);
                    pass(oldest, in, got, seed);
                    try (WriteBuffer young = new WriteBuffer(capacity)) {
                        young.write(mine, 0, COUNT);
                        pass(young, in, got, seed);
                    }
                    before = Comm.WORLD.dup();
                    Comm.finish();
                }
            }
            before = null;
            // One file of each kind belongs to the last join. The others close when their communicators are
            // garbage.
            Wait.untilCollected("the memory of earlier joins is released", () -> segments() <= 2 * 4);
            System.out.println("done");
        }

        private static void pass(WriteBuffer out, ReadBuffer in, double[] got, int seed) throws Exception {
            Comm world = Comm.WORLD;
            Request sent = world.isend(out, 1 - world.id(), 3);
            world.recv(in, 1 - world.id(), 3);
            in.read(got, 0, COUNT);
            sent.iwait();
            double[] expected = new double[COUNT];
            int theirs = seed + 1 - 2 * world.id();
            Arrays.setAll(expected, i -> theirs + i);
            assertArrayEquals(expected, got);
        }

        /**
         * Returns the number of files of shared memory that this process has mapped, each perhaps in parts.
         */
        private static long segments() throws Exception {
            return Files.readAllLines(Path.of("/proc/self/maps")).stream()
                    .filter(line -> line.contains("memfd:mpjdev-")).map(line -> line.split(" +")[4]).distinct().count();
        }
    }

    @Test
    void shouldJoinAgainAfterFinish() throws Exception {
        Job job = new Mpjrun(2).run(Rounds.class);
        assertEquals(0, job.status, job::toString);
        assertEquals(List.of("done", "done"), job.lines());
    }

    /** Rank 1 ends after its first finish. */
    static final class Leaving {
        private Leaving() {}

        public static void main(String[] args) {
            Comm.init(args);
            int me = Comm.WORLD.id();
            Comm.finish();
            if (me != 1) {
                PeerFailedException e = assertThrows(PeerFailedException.class, () -> Comm.init(args));
                System.out.println(e.rank() + ": " + e.getMessage());
            }
        }
    }

    @Test
    void shouldNameTheRankThatDoesNotJoinAgain() throws Exception {
        Job job = new Mpjrun(3).run(Leaving.class);
        assertEquals(0, job.status, job::toString);
        String line = "1: the ranks did not all join: rank 1 has ended without Comm.init";
        assertEquals(Collections.nCopies(2, line), job.lines());
    }

    /**
     * Rank 0 is interrupted while it waits for rank 1, and rank 1 waits for that interrupt. Then both join
     * and exchange numbers.
     */
    static final class Interrupted {
        /** The variables of mpjrun, Open MPI and MPICH that hold the rank of a process. */
        private static final List<String> VARIABLES = List.of("MPJDEV_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK");
        private static final int COUNT = 2;

        private Interrupted() {}

        private static String rank() {
            return VARIABLES.stream().map(System::getenv).filter(Objects::nonNull).findFirst().orElseThrow();
        }

        public static void main(String[] args) throws Exception {
            Path file = Path.of(args[0]);
            if (rank().equals("1")) {
                Wait.until("rank 0 is interrupted", () -> Files.exists(file));
            } else {
                Thread main = Thread.currentThread();
                Thread other = new Thread(() -> {
                    try {
                        Wait.until("it waits", () -> Arrays.stream(main.getStackTrace())
                                .anyMatch(frame -> frame.getMethodName().equals("processWorld")));
                    } catch (Exception e) {
                        throw new AssertionError(e);
                    }
                    main.interrupt();
                });
                other.start();
                assertThrows(InterruptedOperationException.class, () -> Comm.init(args));
                other.join();
                assertTrue(Thread.interrupted(), "the flag stays set");
                Files.createFile(file);
            }
            Comm.init(args);
            Comm world = Comm.WORLD;
            int other = 1 - world.id();
            int[] got = new int[COUNT];
            world.sendrecv(new int[] {world.id(), COUNT}, 0, COUNT, other, 1, got, 0, COUNT, other, 1);
            assertArrayEquals(new int[] {other, COUNT}, got);
            world.barrier();
            Comm.finish();
            System.out.println("done");
        }
    }

    @Test
    void shouldJoinAfterAnInterruptedInit() throws Exception {
        interrupt(new Mpjrun(2));
    }

    /** Over a C MPI the join continues without the thread that was interrupted, and its next call gets it. */
    @ParameterizedTest
    @MethodSource("mpjdev.Mpirun#launchers")
    void shouldJoinAfterAnInterruptedInitUnderAnMpi(List<String> launcher) throws Exception {
        interrupt(Mpirun.job(launcher, 2));
    }

    private static void interrupt(Mpjrun mpjrun) throws Exception {
        Path folder = Files.createTempDirectory("mpjdev-test");
        Path file = folder.resolve("interrupted");
        try {
            Job job = mpjrun.run(Interrupted.class, file.toString());
            assertEquals(0, job.status, job::toString);
            assertEquals(List.of("done", "done"), job.lines(), job::toString);
        } finally {
            Files.deleteIfExists(file);
            Files.delete(folder);
        }
    }

    /**
     * Rank 0 is interrupted repeatedly while it joins, and retries. Rank 1 joins at the time of a check for
     * interrupts.
     */
    static final class Racing {
        /** Times of rank 1 around the check for interrupts of a waiting rank, which is each 20 ms. */
        private static final int EARLIEST_US = 18_500;
        private static final int LATEST_US = 21_500;

        private Racing() {}

        public static void main(String[] args) throws Exception {
            int rounds = Integer.parseInt(args[0]);
            boolean interrupts = System.getenv("MPJDEV_RANK").equals("0");
            AtomicBoolean joins = new AtomicBoolean();
            if (interrupts) {
                interruptWhile(joins, Thread.currentThread());
            }
            Random random = new Random(1);
            for (int round = 0; round < rounds; round++) {
                if (!interrupts) {
                    LockSupport.parkNanos(1000L * (EARLIEST_US + random.nextInt(LATEST_US - EARLIEST_US)));
                }
                boolean joined = false;
                while (!joined) {
                    joins.set(true);
                    try {
                        Comm.init(args);
                        joined = true;
                    } catch (InterruptedOperationException e) {
                        assertTrue(Thread.interrupted(), "the flag stays set");
                    }
                }
                // A late interrupt ends the next blocking call.
                synchronized (joins) {
                    joins.set(false);
                    Thread.interrupted();
                }
                Comm.WORLD.barrier();
                Comm.finish();
            }
            System.out.println("done");
        }

        private static void interruptWhile(AtomicBoolean joins, Thread thread) {
            Thread other = new Thread(() -> {
                Random random = new Random(2);
                while (true) {
                    LockSupport.parkNanos(1000L * random.nextInt(3000));
                    synchronized (joins) {
                        if (joins.get()) {
                            thread.interrupt();
                        }
                    }
                }
            });
            other.setDaemon(true);
            other.start();
        }
    }

    @Test
    void shouldJoinAllRanksOrNoneWhenOneIsInterrupted() throws Exception {
        race(60, 15);
    }

    @Test
    @Tag("soak")
    void shouldJoinAllRanksOrNoneWhenOneIsInterruptedAtManyMoments() throws Exception {
        race(3000, 500);
    }

    private static void race(int rounds, int connectedRounds) throws Exception {
        for (String transport : List.of("auto", "tcp", "udp")) {
            int count = transport.equals("auto") ? rounds : connectedRounds;
            Job job = new Mpjrun(2).with("--transport", transport).run(Racing.class, "" + count);
            assertEquals(0, job.status, job::toString);
            assertEquals(List.of("done", "done"), job.lines());
        }
    }

    /** Starts a program that also tries to join. */
    static final class Parent {
        private Parent() {}

        public static void main(String[] args) throws Exception {
            if (args.length == 0) {
                Comm.init(args);
                String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
                new ProcessBuilder(java, "--enable-native-access=ALL-UNNAMED", "-cp", System.getProperty("java.class.path"),
                        Parent.class.getName(), "child").inheritIO().start().waitFor();
                Comm.WORLD.barrier();
                Comm.finish();
            } else {
                System.out.println(assertThrows(IllegalStateException.class, () -> Comm.init(args)).getMessage());
            }
        }
    }

    @Test
    void shouldGiveAProgramOfARankARemedy() throws Exception {
        Job job = new Mpjrun(1).run(Parent.class);
        assertEquals(0, job.status, job::toString);
        assertTrue(job.out.startsWith("the environment says that this process is rank 0 of a job, but descriptor "), job::toString);
        assertTrue(job.out.endsWith("A program that a rank starts is no rank: without the variables MPJDEV_CONTROL, MPJDEV_RANK "
                + "and MPJDEV_SIZE it runs alone, as rank 0 of 1. A program between mpjrun and a rank must leave the descriptor "
                + "open\n"), job::toString);
    }

    /** A shell starts the program and closes no descriptor. */
    @Test
    void shouldRejectAProgramStartedAfterARank() throws Exception {
        Job job = new Mpjrun(1).by("\"$@\" first; \"$@\" second").run(Behind.class);
        assertEquals(0, job.status, job::toString);
        assertEquals(List.of("first", "the launcher refuses this process as rank 0: another process is this rank already; a program "
                + "that a rank starts is no rank: without the variables MPJDEV_CONTROL, MPJDEV_RANK and MPJDEV_SIZE it runs "
                + "alone, as rank 0 of 1"), job.lines());
    }

    /** Joins if it is the first process to do so. */
    static final class Behind {
        private Behind() {}

        public static void main(String[] args) {
            if (args[0].equals("first")) {
                Comm.init(args);
                Comm.finish();
                System.out.println("first");
            } else {
                System.out.println(assertThrows(IllegalStateException.class, () -> Comm.init(args)).getMessage());
            }
        }
    }

    /** Makes the ranks wait for each other once. */
    static final class Barrier {
        private Barrier() {}

        public static void main(String[] args) throws ClassNotFoundException {
            Comm.init(args);
            // Native code loads it when it has no room.
            Class.forName("mpjdev.core.Upcalls");
            Comm.WORLD.barrier();
            Comm.finish();
        }
    }

    /** The first lambda of a process takes 10 ms. */
    @Test
    void shouldJoinWithoutALambda() throws Exception {
        Job job = new Mpjrun(2).jvm("-Xlog:class+load").run(Barrier.class);
        assertEquals(0, job.status, job::toString);
        assertTrue(job.lines().stream().anyMatch(line -> line.contains(" mpjdev.core.Upcalls ")), job::toString);
        assertEquals(List.of(), job.lines().stream().filter(line -> line.contains("$$Lambda")
                && line.contains(" mpjdev.")).toList());
    }
}
