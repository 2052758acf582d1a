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
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** How processes become ranks: again, late, or not at all. */
@Timeout(180)
class JoiningTest {
    /** Joins and finishes several times, with buffers of all ages. */
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
            // One file of each kind belongs to the last round; the others are closed when their communicators are garbage.
            Wait.untilCollected("the memory of the rounds is given back", () -> segments() <= 2 * 4);
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

        /** Files of shared memory that this process has mapped, each perhaps in parts. */
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

    /** Rank 1 ends after its first round. */
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
        String line = "1: the ranks of the job do not come together: rank 1 has ended without Comm.init";
        assertEquals(Collections.nCopies(2, line), job.lines());
    }

    /** Rank 0 is interrupted while it waits for rank 1, which waits for that. */
    static final class Interrupted {
        private Interrupted() {}

        public static void main(String[] args) throws Exception {
            Path file = Path.of(args[0]);
            if (System.getenv("MPJDEV_RANK").equals("1")) {
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
                assertTrue(Thread.interrupted(), "the flag stays");
                Files.createFile(file);
            }
            Comm.init(args);
            Comm.WORLD.barrier();
            Comm.finish();
            System.out.println("done");
        }
    }

    @Test
    void shouldLetARankThatWaitsForTheOthersBeInterruptedAndTryAgain() throws Exception {
        Path folder = Files.createTempDirectory("mpjdev-test");
        Path file = folder.resolve("interrupted");
        try {
            Job job = new Mpjrun(2).run(Interrupted.class, file.toString());
            assertEquals(0, job.status, job::toString);
            assertEquals(List.of("done", "done"), job.lines());
        } finally {
            Files.deleteIfExists(file);
            Files.delete(folder);
        }
    }
}
