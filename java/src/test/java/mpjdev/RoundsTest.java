package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import mpjdev.Mpjrun.Job;
import mpjdev.core.Native;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Leaks of processes that join repeatedly: they hold no more resources than after the first join, without a
 * collection.
 *
 * <p>The totals of a process are bounded too. All of its descriptors count. Of its mappings those count that
 * it has more than before the first join: a JVM has a hundred and more, which differ by version. A C MPI maps
 * dozens of libraries, so its ranks have no totals.
 */
class RoundsTest {
    private static final int LENGTH = 100_000;
    /** Largest totals of a process after any number of rounds with 4 ranks. */
    private static final int DESCRIPTORS_MAX = 80;
    private static final int MAPPINGS_MAX = 200;
    /** Checks of a long run. Each reads files of the system, and no collection frees what that allocates. */
    private static final int CHECKS = 100;
    private static final int CAPACITY = LENGTH + Buffer.SECTION_OVERHEAD;

    /** The system resources of a process. */
    private static final class Footprint {
        final List<String> descriptors;
        final long mappings;
        final long threads;
        /** KiB of address space. */
        final long space;
        /** All descriptors and mappings of the process, also those of the JVM. */
        final long allDescriptors;
        final long allMappings;

        private Footprint(List<String> descriptors, long mappings, long threads, long space, long allDescriptors, long allMappings) {
            this.descriptors = descriptors;
            this.mappings = mappings;
            this.threads = threads;
            this.space = space;
            this.allDescriptors = allDescriptors;
            this.allMappings = allMappings;
        }

        static Footprint now() {
            try {
                List<String> maps = Files.readAllLines(Path.of("/proc/self/maps"));
                long mappings = maps.stream().filter(line -> line.contains("memfd:mpjdev-")).count();
                long threads;
                try (var tasks = Files.list(Path.of("/proc/self/task"))) {
                    threads = tasks.filter(RoundsTest::isOurs).count();
                }
                String size = Files.readAllLines(Path.of("/proc/self/status")).stream()
                        .filter(line -> line.startsWith("VmSize:")).findFirst().orElseThrow();
                List<String> targets;
                try (var links = Files.list(Path.of("/proc/self/fd"))) {
                    targets = links.map(RoundsTest::target).toList();
                }
                List<String> descriptors = targets.stream().filter(RoundsTest::isOfTheLibrary).toList();
                long space = Long.parseLong(size.replaceAll("\\D", ""));
                return new Footprint(descriptors, mappings, threads, space, targets.size(), maps.size());
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        /** Asserts that resources have not grown. The JVM may have mapped some memory. */
        void check(Footprint first, String when) {
            assertTrue(descriptors.size() <= first.descriptors.size() && mappings <= first.mappings && threads <= first.threads
                    && space <= first.space + (256 << 10), () -> when + ": " + this + ", at first " + first);
        }

        /** Asserts the same for a program that starts a thread in each round. */
        void checkWithoutSpace(Footprint first, String when) {
            new Footprint(descriptors, mappings, threads, 0, allDescriptors, allMappings).check(first, when);
        }

        /** Asserts the totals of the process, which had {@code before} when it had not joined yet. */
        void checkTotals(Footprint before) {
            long added = allMappings - before.allMappings;
            assertTrue(allDescriptors <= DESCRIPTORS_MAX && added <= MAPPINGS_MAX, () -> this + ", before the first " + before);
        }

        @Override
        public String toString() {
            return descriptors.size() + " descriptors " + descriptors + ", " + mappings + " mappings, " + threads + " threads, " + space
                    + " KiB; in all " + allDescriptors + " descriptors and " + allMappings + " mappings";
        }
    }

    /**
     * Returns whether a thread of this process belongs to the library. A thread that has just ended does not.
     */
    private static boolean isOurs(Path task) {
        try {
            return Files.readString(task.resolve("comm")).startsWith("mpjdev-");
        } catch (IOException e) {
            return false;
        }
    }

    private static String target(Path link) {
        try {
            return Files.readSymbolicLink(link).toString();
        } catch (IOException e) {
            return "";
        }
    }

    /**
     * Returns whether the library opens descriptors of this kind. The JVM opens files at times, so files do
     * not count.
     */
    private static boolean isOfTheLibrary(String target) {
        return target.matches("(socket:|pipe:|anon_inode:|/memfd:).*");
    }

    /** Each rank sends to all others and receives from them, by buffers and by arrays. */
    private static void exchange(Comm world, WriteBuffer out, ReadBuffer in) {
        int size = world.size();
        int me = world.id();
        long[] array = new long[1000];
        for (int k = 1; k < size; k++) {
            Request sent = world.isend(out, (me + k) % size, 1);
            world.recv(in, (me + size - k) % size, 1);
            sent.iwait();
            for (int count : new int[] {1, array.length}) {
                world.sendrecv(array, 0, count, (me + k) % size, 2, array, 0, count, (me + size - k) % size, 2);
            }
        }
    }

    /** Joins, exchanges and finishes, and keeps references as a careless program does. */
    static final class Rounds {
        private Rounds() {}

        public static void main(String[] args) {
            int rounds = Integer.parseInt(args[0]);
            boolean careless = args.length > 1 && args[1].equals("careless");
            int interval = Math.max(1, rounds / CHECKS);
            byte[] data = new byte[LENGTH];
            List<Object> kept = new ArrayList<>();
            Footprint before = Footprint.now();
            Footprint first = null;
            WriteBuffer idle = new WriteBuffer(CAPACITY);
            for (int round = 0; round < rounds; round++) {
                Comm.init(args);
                try (WriteBuffer out = new WriteBuffer(CAPACITY); ReadBuffer in = new ReadBuffer(CAPACITY)) {
                    out.write(data, 0, LENGTH);
                    exchange(Comm.WORLD, out, in);
                    if (careless) {
                        kept.add(Comm.WORLD.dup());
                        ReadBuffer never = new ReadBuffer(CAPACITY);
                        kept.add(Comm.WORLD.irecv(never, Comm.ANY_SOURCE, 99));
                        kept.add(never);
                        Comm.WORLD.irecv(new ReadBuffer(16), Comm.ANY_SOURCE, 99).free();
                        if (round == 0) {
                            idle.write(data, 0, LENGTH);
                            idle.clear();
                        }
                    }
                }
                Comm.finish();
                if (round == 1) {
                    first = Footprint.now();
                } else if (first != null && (round % interval == 0 || round == rounds - 1)) {
                    Footprint.now().check(first, "after round " + round);
                }
            }
            Footprint last = Footprint.now();
            if (!Native.usesMpi()) {
                last.checkTotals(before);
            }
            kept.forEach(Rounds::use);
            System.out.println("level");
            System.out.println(rounds + " rounds: " + last + "; before the first " + before.allMappings + " mappings");
        }

        /** Asserts that objects of a finished rank behave as before. */
        private static void use(Object kept) {
            if (kept instanceof Comm) {
                Comm comm = (Comm) kept;
                assertTrue(comm.id() < comm.size());
                assertThrows(NotInitializedException.class, comm::barrier);
                assertThrows(NotInitializedException.class, comm::dup);
                assertThrows(NotInitializedException.class, () -> comm.iprobe(0, 1));
                try (WriteBuffer out = new WriteBuffer(16)) {
                    assertThrows(NotInitializedException.class, () -> comm.send(out, 0, 1));
                }
            } else if (kept instanceof Request) {
                assertThrows(NotInitializedException.class, ((Request) kept)::iwait);
            } else {
                ReadBuffer in = (ReadBuffer) kept;
                assertEquals(CAPACITY, in.capacity());
                in.close();
            }
        }
    }

    private static void run(int ranks, String transport, Class<?> main, String... args) throws Exception {
        run(new Mpjrun(ranks).jvm("-Xmx1g"), ranks, transport, main, args);
    }

    private static void run(Mpjrun run, int ranks, String transport, Class<?> main, String... args) throws Exception {
        Job job = (transport.equals("shm") ? run : run.with("--transport", transport)).run(main, args);
        assertEquals(0, job.status, job::toString);
        List<String> level = job.lines().stream().filter("level"::equals).toList();
        assertEquals(Collections.nCopies(ranks, "level"), level, job::toString);
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "tcp", "udp"})
    @Timeout(180)
    void shouldHaveNoMoreOpenFromTheSecondRoundOn(String transport) throws Exception {
        run(3, transport, Rounds.class, "30");
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "tcp", "udp"})
    @Timeout(180)
    void shouldHaveNoMoreOpenWhenTheProgramKeepsObjectsOfRounds(String transport) throws Exception {
        run(2, transport, Rounds.class, "20", "careless");
    }

    /**
     * The collector of these ranks frees nothing, so {@code finish} alone does. Over TCP a round takes twice
     * as long as over shared memory, so there are fewer.
     */
    @ParameterizedTest
    @CsvSource({"shm, 10000", "tcp, 2000", "udp, 10000"})
    @Tag("soak")
    @Timeout(900)
    void shouldHaveNoMoreOpenAfterThousandsOfRounds(String transport, String rounds) throws Exception {
        Mpjrun run = new Mpjrun(4).jvm("-XX:-UseSerialGC", "-XX:+UnlockExperimentalVMOptions", "-XX:+UseEpsilonGC", "-Xmx4g");
        run(run.within(840), 4, transport, Rounds.class, rounds);
    }

    @ParameterizedTest
    @MethodSource("mpjdev.Mpirun#launchers")
    @Timeout(180)
    void shouldHaveNoMoreOpenFromTheSecondRoundOnUnderAnMpi(List<String> launcher) throws Exception {
        Job job = Mpirun.job(launcher, 2).run(Rounds.class, "20");
        assertEquals(0, job.status, job::toString);
        assertEquals(2, job.lines().stream().filter("level"::equals).count(), job::toString);
    }

    /** Exchanges the messages of each round in another thread, which idles from then on. */
    static final class IdleThreads {
        private IdleThreads() {}

        public static void main(String[] args) throws Exception {
            Footprint first = null;
            byte[] data = new byte[LENGTH];
            for (int round = 0; round < Integer.parseInt(args[0]); round++) {
                Comm.init(args);
                ExecutorService pool = Executors.newSingleThreadExecutor(task -> {
                    Thread thread = new Thread(task);
                    thread.setDaemon(true);
                    return thread;
                });
                pool.submit(() -> {
                    try (WriteBuffer out = new WriteBuffer(CAPACITY); ReadBuffer in = new ReadBuffer(CAPACITY)) {
                        out.write(data, 0, LENGTH);
                        exchange(Comm.WORLD, out, in);
                    }
                }).get();
                Comm.finish();
                if (round == 1) {
                    first = Footprint.now();
                } else if (first != null) {
                    Footprint.now().checkWithoutSpace(first, "after round " + round);
                }
            }
            System.out.println("level");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "tcp", "udp"})
    @Timeout(180)
    void shouldReleaseARoundWhoseThreadsIdle(String transport) throws Exception {
        run(2, transport, IdleThreads.class, "15");
    }

    /** Runs jobs of threads in one process, one after the other. */
    static final class Threads {
        private Threads() {}

        public static void main(String[] args) throws Exception {
            int rounds = Integer.parseInt(args[0]);
            byte[] data = new byte[LENGTH];
            Footprint first = null;
            for (int round = 0; round < rounds; round++) {
                Comm.<Exception>runThreads(4, world -> {
                    try (WriteBuffer out = new WriteBuffer(CAPACITY); ReadBuffer in = new ReadBuffer(CAPACITY)) {
                        out.write(data, 0, LENGTH);
                        exchange(world, out, in);
                        world.dup().barrier();
                    }
                });
                if (round == 1) {
                    first = Footprint.now();
                } else if (first != null) {
                    Footprint.now().check(first, "after job " + round);
                }
            }
            System.out.println("level");
            System.out.println(rounds + " jobs: " + Footprint.now());
        }
    }

    @Test
    @Timeout(180)
    void shouldHaveNoMoreOpenAfterJobsOfThreads() throws Exception {
        String output = new Fork().run(Threads.class, "40").ok();
        assertTrue(output.startsWith("level"), output);
    }

    @Test
    @Tag("soak")
    @Timeout(900)
    void shouldHaveNoMoreOpenAfterTenThousandJobsOfThreads() throws Exception {
        String output = new Fork().run(Threads.class, "10000").ok();
        assertTrue(output.startsWith("level"), output);
    }

    /** Joins while files hold all descriptors but {@code spare}. The files are in use, or unreachable. */
    static final class Crowded {
        private Crowded() {}

        public static void main(String[] args) throws Exception {
            int spare = Integer.parseInt(args[1]);
            List<FileInputStream> files = new ArrayList<>();
            // Load all classes and libraries first.
            Comm.init(args);
            Comm.finish();
            try {
                while (true) {
                    files.add(new FileInputStream("/dev/null"));
                }
            } catch (IOException e) {
                // No descriptor is left.
            }
            for (int i = 0; i < spare; i++) {
                files.remove(files.size() - 1).close();
            }
            if (args[0].equals("dropped")) {
                files = null;
            }
            JoinInShortage.run(args);
            System.out.println(files == null ? "joined" : "joined with " + files.size());
        }
    }

    private static Job runCrowded(String how, int spare) throws Exception {
        Mpjrun run = new Mpjrun(2).with("--keep-going").by("ulimit -n 120; exec \"$@\"");
        return run.run(Crowded.class, how, "" + spare);
    }

    /**
     * Descriptors to spare: the JVM needs one to load a class; segments, sockets and pages of ranks need
     * about ten.
     */
    @ParameterizedTest
    @ValueSource(ints = {2, 6})
    @Timeout(180)
    void shouldCloseUnusedDescriptorsToJoin(int spare) throws Exception {
        Job job = runCrowded("dropped", spare);
        assertEquals(0, job.status, job::toString);
        assertEquals(List.of("joined", "joined"), job.lines(), job::toString);
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 6})
    @Timeout(180)
    void shouldNameTheNumberOfDescriptorsWhenTooFewAreFree(int spare) throws Exception {
        Job job = runCrowded("kept", spare);
        String line = ".*: this process has 1[0-9][0-9] descriptors open and may have 120 \\(ulimit -n\\): close files, or"
                + " raise the limit; joining a job takes up to two for each rank, and 32";
        assertEquals(2, job.lines().size(), job::toString);
        job.lines().forEach(said -> assertTrue(said.matches(line), job::toString));
    }

    /** Joins repeatedly while garbage holds nearly all descriptors. */
    static final class CrowdedAgain {
        private CrowdedAgain() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            Comm.finish();
            for (int round = 0; round < 6; round++) {
                List<FileInputStream> files = new ArrayList<>();
                try {
                    while (true) {
                        files.add(new FileInputStream("/dev/null"));
                    }
                } catch (IOException e) {
                    // No descriptor is left.
                }
                for (int i = 0; i < 4; i++) {
                    files.remove(files.size() - 1).close();
                }
                files = null;
                Comm.init(args);
                Comm.WORLD.barrier();
                Comm.finish();
            }
            System.out.println("joined");
        }
    }

    @Test
    @Timeout(180)
    void shouldCloseUnusedDescriptorsEachTimeItJoins() throws Exception {
        Job job = new Mpjrun(2).with("--keep-going").by("ulimit -n 120; exec \"$@\"").run(CrowdedAgain.class);
        assertEquals(0, job.status, job::toString);
        assertEquals(List.of("joined", "joined"), job.lines(), job::toString);
    }

    /** A finishing rank visits the buffers of the process while a thread without a rank uses one. */
    @Test
    @Timeout(180)
    void shouldKeepBuffersOfOtherThreadsWhenRanksFinish() throws Exception {
        AtomicBoolean isOver = new AtomicBoolean();
        CompletableFuture<Void> busy = CompletableFuture.runAsync(() -> {
            try (WriteBuffer out = new WriteBuffer(64)) {
                while (!isOver.get()) {
                    out.clear();
                    out.write(new int[2], 0, 2);
                }
            }
        });
        for (int job = 0; job < 300; job++) {
            Comm.runThreads(4, Comm::barrier);
        }
        isOver.set(true);
        busy.get();
    }
}
