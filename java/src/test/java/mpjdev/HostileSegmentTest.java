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

/** A process that corrupts shared memory: the others end with an error or lose nothing. */
class HostileSegmentTest {
    /** Rank 1 scribbles; ranks 0 and 2 exchange messages with it and with each other. */
    static final class Traffic {
        private static final int[] SIZES = {1, 20, 1000, 20_000};
        private static final int ROUNDS = 20_000;

        private static volatile boolean isOver;

        private Traffic() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            int me = Comm.WORLD.id();
            Comm.WORLD.barrier();
            Thread scribbler = new Thread(() -> scribble(Long.parseLong(args[0])));
            if (me == 1) {
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
            // Finish unmaps the segment.
            isOver = true;
            scribbler.join();
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
                // The scribbler may have corrupted its own queues.
                Comm.WORLD.irecv(in, from, 1).iwait(5, TimeUnit.SECONDS);
                long[] got = new long[n];
                try {
                    in.read(got, 0, n);
                } catch (IOException e) {
                    assertEquals(1, from, "damaged message of a correct rank: " + e.getMessage());
                }
                if (from != 1) {
                    Arrays.setAll(numbers, i -> from * 1_000_000_007L + round + i);
                    assertArrayEquals(numbers, got);
                }
                sent.iwait(5, TimeUnit.SECONDS);
            }
        }

        /** Writes random octets into the segment of this process, through the file of its memory. */
        private static void scribble(long seed) {
            Random random = new Random(seed);
            try (RandomAccessFile memory = new RandomAccessFile("/proc/self/mem", "rw")) {
                String mine = Files.readAllLines(Path.of("/proc/self/maps")).stream()
                        .filter(line -> line.contains("rw-s") && line.contains("memfd:mpjdev-rank-1"))
                        .findFirst().orElseThrow();
                long start = Long.parseLong(mine.substring(0, mine.indexOf('-')), 16);
                while (!isOver) {
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

    /**
     * Rank 1 keeps the doorbells of rank 2 cleared; rank 0 sends to rank 2 for the first time, and finishes.
     */
    static final class ClearedBells {
        /** Offset of the doorbells of rank 2 on the shared page: rust/transport/src/shm/layout.rs. */
        private static final int DOORBELLS = Long.BYTES * (16 + 16 * 2 + 2);

        private ClearedBells() {}

        public static void main(String[] args) throws Exception {
            Path folder = Path.of(args[0]);
            Path cleared = folder.resolve("cleared");
            Path sent = folder.resolve("sent");
            Path received = folder.resolve("received");
            Comm.init(args);
            long[] number = {42};
            switch (Comm.WORLD.id()) {
                case 0:
                    Wait.until("the doorbells are cleared", () -> Files.exists(cleared));
                    try (WriteBuffer out = new WriteBuffer(Buffer.SECTION_OVERHEAD + Long.BYTES)) {
                        out.write(number, 0, 1);
                        Comm.WORLD.send(out, 2, 1);
                    }
                    Comm.finish();
                    Files.createFile(sent);
                    break;
                case 1:
                    clear(cleared, received);
                    Comm.finish();
                    break;
                default:
                    Wait.until("rank 0 has finished", () -> Files.exists(sent));
                    try (ReadBuffer in = new ReadBuffer(Buffer.SECTION_OVERHEAD + Long.BYTES)) {
                        Comm.WORLD.recv(in, 0, 1);
                        in.read(number, 0, 1);
                        System.out.println("rank 2 got " + number[0]);
                    } finally {
                        Files.createFile(received);
                    }
                    Comm.finish();
                    break;
            }
        }

        private static void clear(Path begun, Path end) throws Exception {
            String page = Files.readAllLines(Path.of("/proc/self/maps")).stream()
                    .filter(line -> line.contains("rw-s") && line.contains("memfd:mpjdev-job")).findFirst().orElseThrow();
            long start = Long.parseLong(page.substring(0, page.indexOf('-')), 16);
            try (RandomAccessFile memory = new RandomAccessFile("/proc/self/mem", "rw")) {
                for (int i = 0; i % 1000 != 0 || !Files.exists(end); i++) {
                    memory.seek(start + DOORBELLS);
                    memory.writeLong(0);
                    if (i == 0) {
                        Files.createFile(begun);
                    }
                }
            }
        }
    }

    @Test
    void shouldDeliverAMessageWhoseDoorbellAnotherRankClears() throws Exception {
        Path folder = Files.createTempDirectory("mpjdev-test");
        try {
            Job job = new Mpjrun(3).run(ClearedBells.class, folder.toString());
            assertEquals(0, job.status, job::toString);
            assertEquals("rank 2 got 42\n", job.out);
        } finally {
            for (String name : new String[] {"cleared", "sent", "received"}) {
                Files.deleteIfExists(folder.resolve(name));
            }
            Files.delete(folder);
        }
    }

    @Test
    void shouldEndTheJobAndCrashNoOtherRank() throws Exception {
        runJobs(0, 4);
    }

    @Test
    @Tag("soak")
    void shouldEndManyJobsAndCrashNoOtherRank() throws Exception {
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
        assertTrue(named, "at least one job names the damage");
    }
}
