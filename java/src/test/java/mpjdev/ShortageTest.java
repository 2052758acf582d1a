package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Shortage of address space, which {@code ulimit -v} limits: a join collects garbage once, and a failed
 * allocation throws an error of Java and does not end the JVM.
 *
 * <p>Each program leaves some MiB free: the JVM itself ends when it finds none.
 */
@Timeout(180)
class ShortageTest {
    private static final int MIB = 1 << 20;
    private static final int KIB = 1 << 10;
    /** KiB of address space of a process. A JVM takes less than half of it, with a heap of 256 MiB. */
    private static final int LIMIT = 6 << 20;
    private static final String LIMITED = limited(LIMIT);
    /** Without a compiler the JVM needs no memory of the system while it runs a loop. */
    private static final String INTERPRETED = "-Xint";

    private static String limited(int kib) {
        return "ulimit -v " + kib + "; exec \"$@\"";
    }

    /** Joins while mappings of a file hold the address space. They are in use, or unreachable. */
    static final class Mapped {
        private static final int PIECE = 16 * MIB;
        /** Address space that stays free: too little for the segment of a rank, which takes 512 MiB. */
        private static final int SPARE = 128 * MIB;

        private Mapped() {}

        public static void main(String[] args) throws Exception {
            // Load all classes and libraries first.
            Comm.init(args);
            Comm.WORLD.barrier();
            Comm.finish();
            List<MappedByteBuffer> mapped = map();
            int count = mapped.size();
            if (args[0].equals("dropped")) {
                mapped = null;
            }
            JoinInShortage.run(args);
            assertTrue(count > 10, "there was no shortage");
            System.out.println(mapped == null ? "joined" : "joined with " + mapped.size());
        }

        private static List<MappedByteBuffer> map() throws IOException {
            List<MappedByteBuffer> mapped = new ArrayList<>();
            Path file = Files.createTempFile("mpjdev-test", ".map");
            try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
                while (space() + (PIECE + SPARE) / KIB < LIMIT) {
                    mapped.add(channel.map(FileChannel.MapMode.READ_WRITE, 0, PIECE));
                }
            } finally {
                Files.delete(file);
            }
            return mapped;
        }

        /** Returns the KiB of address space of this process. */
        private static long space() throws IOException {
            String size = Files.readAllLines(Path.of("/proc/self/status")).stream()
                    .filter(line -> line.startsWith("VmSize:")).findFirst().orElseThrow();
            return Long.parseLong(size.replaceAll("\\D", ""));
        }
    }

    private static Job runMapped(String how) throws Exception {
        return new Mpjrun(2).with("--keep-going").by(LIMITED).run(Mapped.class, how);
    }

    @Test
    void shouldUnmapUnusedMemoryToJoin() throws Exception {
        Job job = runMapped("dropped");
        assertEquals(0, job.status, job::toString);
        assertEquals(List.of("joined", "joined"), job.lines(), job::toString);
    }

    @Test
    void shouldNameTheSharedMemoryThatCannotBeMapped() throws Exception {
        Job job = runMapped("kept");
        assertEquals(2, job.lines().size(), job::toString);
        String line = "shared memory: Cannot allocate memory (os error 12)";
        job.lines().forEach(said -> assertEquals(line, said, job::toString));
    }

    /** Names twenty million ranks of a communicator of two. */
    static final class LongList {
        private static final int COUNT = 20_000_000;

        private LongList() {}

        public static void main(String[] args) {
            Comm.init(args);
            int[] ids = new int[COUNT];
            assertThrows(BadArgumentException.class, () -> Comm.WORLD.create(ids));
            Comm.WORLD.barrier();
            Comm.finish();
            System.out.println("refused");
        }
    }

    /** Each rank copies three of the numbers: one more than there are ranks repeats one. */
    @Test
    void shouldRefuseACommunicatorOfMillionsOfRanks() throws Exception {
        Job job = new Mpjrun(2).by(LIMITED).run(LongList.class);
        assertEquals(0, job.status, job::toString);
        assertEquals(List.of("refused", "refused"), job.lines(), job::toString);
    }

    /** Rank 0 sends messages that no receive takes until no memory is left for another one. */
    static final class Flood {
        private Flood() {}

        public static void main(String[] args) {
            if (args[0].equals("threads")) {
                Comm.runThreads(2, Flood::run);
            } else {
                Comm.init(args);
                run(Comm.WORLD);
                Comm.finish();
            }
            System.out.println("done");
        }

        private static void run(Comm world) {
            // -Xcheck:jni copies a whole array for each part of it that is sent: longer ones take minutes.
            byte[] octets = new byte[MIB];
            List<Request> sends = new ArrayList<>();
            if (world.id() == 0) {
                OutOfMemoryError e = assertThrows(OutOfMemoryError.class, () -> {
                    while (true) {
                        sends.add(world.isend(octets, 0, octets.length, 1, 1));
                    }
                });
                System.out.println(e.getMessage());
                world.send(new int[] {sends.size()}, 0, 1, 1, 2);
            } else {
                int[] count = new int[1];
                world.recv(count, 0, 1, 0, 2);
                for (int i = 0; i < count[0]; i++) {
                    world.recv(octets, 0, octets.length, 0, 1);
                }
            }
            sends.forEach(Request::iwait);
        }
    }

    /** The property allows more message memory than the process can have: one and a half GiB. */
    @Test
    void shouldThrowWhenTheSystemHasNoMemoryForAMessage() throws Exception {
        String output = new Fork().with("-Xmx256m", "-Dmpjdev.memory=64g", INTERPRETED).by(limited(LIMIT / 3 * 2))
                .run(Flood.class, "threads").ok();
        assertTrue(output.matches("message memory: the system refuses [0-9]+ octets\ndone\n"), output);
    }

    /** The segments of both ranks take most of the address space, and one of them fills. */
    @ParameterizedTest
    @ValueSource(strings = {"shm", "tcp", "udp"})
    void shouldThrowWhenAProcessHasNoMemoryForAMessage(String transport) throws Exception {
        Job job = new Mpjrun(2).with("--transport", transport).by(LIMITED).jvm("-Dmpjdev.memory=900m", INTERPRETED)
                .run(Flood.class, "processes");
        assertEquals(0, job.status, job::toString);
        assertEquals(3, job.lines().size(), job::toString);
        assertTrue(job.out.contains("message memory: "), job::toString);
    }

    /** Sends and writes short arrays in a JVM that has no direct memory for a bounce buffer. */
    static final class NoBounceBuffer {
        private NoBounceBuffer() {}

        public static void main(String[] args) throws Exception {
            Comm.<Exception>runThreads(1, world -> {
                List<ByteBuffer> taken = new ArrayList<>();
                assertThrows(OutOfMemoryError.class, () -> {
                    while (true) {
                        taken.add(ByteBuffer.allocateDirect(KIB));
                    }
                });
                double[] received = new double[3];
                world.isend(new double[] {1, 2, 3}, 0, 3, 0, 1).iwait();
                assertEquals(3, world.recv(received, 0, 3, 0, 1).count());
                assertArrayEquals(new double[] {1, 2, 3}, received);
                try (WriteBuffer out = new WriteBuffer(64); ReadBuffer in = new ReadBuffer(64)) {
                    out.write(received, 1, 2);
                    world.send(out, 0, 2);
                    world.recv(in, 0, 2);
                    in.read(received, 0, 2);
                }
                assertArrayEquals(new double[] {2, 3, 3}, received);
                assertFalse(taken.isEmpty(), "it keeps the memory until here");
            });
            System.out.println("done");
        }
    }

    @Test
    void shouldSendShortArraysWithoutDirectMemory() throws Exception {
        assertEquals("done\n", new Fork().with("-XX:MaxDirectMemorySize=1m").run(NoBounceBuffer.class).ok());
    }

    /** Joins with more message memory than the process has address space. */
    static final class Large {
        private Large() {}

        public static void main(String[] args) {
            System.out.println(assertThrows(IllegalStateException.class, () -> Comm.init(args)).getMessage());
        }
    }

    @Test
    void shouldNameTheSegmentThatNoProcessCanHave() throws Exception {
        Job job = new Mpjrun(1).with("--keep-going").by(LIMITED).jvm("-Dmpjdev.memory=64g").run(Large.class);
        assertEquals(List.of("shared memory: Cannot allocate memory (os error 12)"), job.lines(), job::toString);
    }
}
