package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** A process that scribbles over the shared memory that it owns, in the midst of traffic: the others end with an error. */
class HostileSegmentTest {
    /** Rank 1 scribbles, ranks 0 and 2 exchange messages with it and with each other. */
    static final class Traffic {
        private static final int[] SIZES = {1, 20, 1000, 20_000};
        private static final int ROUNDS = 20_000;

        private Traffic() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            int me = Comm.WORLD.id();
            Comm.WORLD.barrier();
            if (me == 1) {
                Thread scribbler = new Thread(() -> scribble(Long.parseLong(args[0])));
                scribbler.setDaemon(true);
                scribbler.start();
            }
            String end = "all rounds";
            try {
                for (int round = 0; round < ROUNDS; round++) {
                    exchange(me, (me + 1) % 3, (me + 2) % 3, SIZES[round % SIZES.length], round);
                }
            } catch (MPJDevException e) {
                end = e.getMessage();
            }
            System.out.println("rank " + me + " ends: " + end);
            try {
                Comm.finish();
            } catch (MPJDevException e) {
                System.out.println("rank " + me + " finishes: " + e.getMessage());
            }
        }

        private static void exchange(int me, int to, int from, int n, int round) throws IOException {
            int capacity = Buffer.SECTION_OVERHEAD + n * Long.BYTES;
            long[] numbers = new long[n];
            Arrays.setAll(numbers, i -> me * 1_000_000_007L + round + i);
            try (WriteBuffer out = new WriteBuffer(capacity); ReadBuffer in = new ReadBuffer(capacity)) {
                out.write(numbers, 0, n);
                Request sent = Comm.WORLD.isend(out, to, 1);
                // Who scribbles may have silenced itself.
                Comm.WORLD.irecv(in, from, 1).iwait(5, TimeUnit.SECONDS);
                long[] got = new long[n];
                try {
                    in.read(got, 0, n);
                } catch (IOException e) {
                    assertEquals(1, from, "damage of an honest rank's message: " + e.getMessage());
                }
                if (from != 1) {
                    Arrays.setAll(numbers, i -> from * 1_000_000_007L + round + i);
                    assertArrayEquals(numbers, got);
                }
                sent.iwait(5, TimeUnit.SECONDS);
            }
        }

        /** Writes nonsense into this process's own segment, through the file that is its memory. */
        private static void scribble(long seed) {
            Random random = new Random(seed);
            try (RandomAccessFile memory = new RandomAccessFile("/proc/self/mem", "rw")) {
                String mine = Files.readAllLines(Path.of("/proc/self/maps")).stream()
                        .filter(line -> line.contains("rw-s") && line.contains("memfd:mpjdev-rank-1"))
                        .findFirst().orElseThrow();
                long start = Long.parseLong(mine.substring(0, mine.indexOf('-')), 16);
                while (true) {
                    // Tables and queues more often than slabs; small and large numbers.
                    long reach = new long[] {1 << 12, 1 << 18, 1 << 20}[random.nextInt(3)];
                    memory.seek(start + (random.nextLong() & (reach - 8)));
                    memory.writeLong(Long.reverseBytes(random.nextLong() >>> random.nextInt(60)));
                    if (random.nextInt(4) == 0) {
                        Thread.yield();
                    }
                }
            } catch (IOException e) {
                System.out.println("rank 1 cannot scribble: " + e);
            }
        }
    }

    @Test
    void shouldEndTheJobAndCrashNobodyElse() throws Exception {
        runJobs(0, 4);
    }

    @Test
    @Tag("soak")
    void shouldEndManyJobsAndCrashNobodyElse() throws Exception {
        runJobs(100, 150);
    }

    private static void runJobs(int first, int behind) throws Exception {
        boolean named = false;
        for (int seed = first; seed < behind; seed++) {
            Job job = new Mpjrun(3).with("--keep-going").run(Traffic.class, "" + seed);
            for (int honest : new int[] {0, 2}) {
                assertEquals(1, job.lines().stream().filter(line -> line.startsWith("rank " + honest + " ends: ")).count(),
                        "seed " + seed + ": " + job);
                assertFalse(job.err.contains("rank " + honest + " (") && job.err.contains("was killed"),
                        "seed " + seed + ": " + job);
            }
            assertFalse(job.out.contains("cannot scribble"), job.out);
            named |= job.out.contains("the shared memory of rank 1 is damaged: ");
        }
        assertTrue(named, "a damage is named in one job at least");
    }
}
