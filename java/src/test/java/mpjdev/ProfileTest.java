package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Profiles of jobs, which count exactly what their programs call. */
@Timeout(180)
class ProfileTest {
    /** Octets of a message with one section of ten ints. */
    private static final int MESSAGE = 8 + 10 * Integer.BYTES;

    @TempDir
    Path folder;

    /** Makes known calls in two threads of each rank. */
    static final class Counted {
        private Counted() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            Comm world = Comm.WORLD;
            int next = (world.id() + 1) % world.size();
            int previous = (world.id() + world.size() - 1) % world.size();
            int[] ints = new int[10];
            for (int round = 0; round < 5; round++) {
                world.send(ints, 0, 10, next, 1);
                world.recv(ints, 0, 10, previous, 1);
            }
            Thread other = new Thread(() -> {
                Request sent = world.isend(ints, 0, 10, next, 2);
                world.sendrecv(ints, 0, 10, next, 3, new int[10], 0, 10, previous, 3);
                sent.iwait();
            });
            other.start();
            other.join();
            world.probe(previous, 2);
            world.irecv(ints, 0, 10, previous, 2).iwait();
            world.barrier();
            world.barrier();
            world.bcast(ints, 0, 10, 0);
            Comm.finish();
        }
    }

    private String read(String name) throws Exception {
        return Files.readString(folder.resolve(name));
    }

    /** Checks the calls of a rank of {@link Counted}. */
    private void checkCounts(int rank) throws Exception {
        String profile = read("rank-" + rank + ".json");
        int next = (rank + 1) % 3;
        int previous = (rank + 2) % 3;
        assertCount(profile, "Send", next, 5, 5 * MESSAGE, 0);
        assertCount(profile, "Recv", previous, 5, 0, 5 * MESSAGE);
        assertCount(profile, "Isend", next, 1, MESSAGE, 0);
        assertCount(profile, "Sendrecv", previous, 1, MESSAGE, MESSAGE);
        assertCount(profile, "Finalize", null, 1, null, null);
        assertCount(profile, "Barrier", null, 2, null, null);
        assertCount(profile, "Bcast", null, 1, rank == 0 ? 2 * MESSAGE : 0, rank == 0 ? 0 : MESSAGE);
        assertTrue(profile.contains("\"threads\":2,"), profile);
    }

    /** Checks a count. A null is any number, and as a peer none. */
    private static void assertCount(String profile, String call, Integer peer, int count, Integer sent,
            Integer received) {
        String line = "\"call\":\"" + call + "\",\"peer\":" + peer + ",\"count\":" + count + ",\"ns\":\\d+,\"sent\":"
                + (sent == null ? "\\d+" : sent) + ",\"received\":" + (received == null ? "\\d+" : received) + "}";
        assertTrue(Pattern.compile(line).matcher(profile).find(), line + " is not in " + profile);
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "tcp", "udp"})
    void shouldCountTheCallsOfEachRank(String transport) throws Exception {
        Job job = new Mpjrun(3).with("--transport", transport, "--profile", folder.toString(), "--trace")
                .run(Counted.class);
        assertEquals(0, job.status, job::toString);
        for (int rank = 0; rank < 3; rank++) {
            checkCounts(rank);
        }
        assertTrue(job.err.contains("profile of 3 of 3 ranks") && job.err.contains("slowest waits"), job::toString);
        assertTrue(read("profile.json").contains("\"size\":3,") && read("profile.json").contains("\"missing\":[]"));
        assertTrue(read("profile.html").contains("<title>rank 0 to rank 1: "));
        String sendrecv = "\"args\":{\"peer\":2,\"received\":" + MESSAGE + ",\"sent\":" + MESSAGE + "}";
        assertTrue(read("trace.json").contains(sendrecv), read("trace.json"));
    }

    /** Gathers ten ints of each rank at all. */
    static final class Gathered {
        private Gathered() {}

        public static void main(String[] args) {
            Comm.init(args);
            for (int round = 0; round < 3; round++) {
                Comm.WORLD.allgather(new int[10], 0, new int[20], 0, 10);
            }
            Comm.finish();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "tcp", "udp"})
    void shouldCountTheVectorsOfACollectiveCall(String transport) throws Exception {
        Job job = new Mpjrun(2).with("--transport", transport, "--profile", folder.toString()).run(Gathered.class);
        assertEquals(0, job.status, job::toString);
        for (int rank = 0; rank < 2; rank++) {
            String profile = read("rank-" + rank + ".json");
            assertCount(profile, "Allgather", null, 3, 3 * MESSAGE, 3 * MESSAGE);
            assertTrue(profile.contains("\"messages_sent\":3,\"sent\":" + 3 * MESSAGE), profile);
        }
    }

    @ParameterizedTest
    @MethodSource("mpjdev.Mpirun#launchers")
    void shouldCountTheCallsUnderTheLauncherOfAnMpi(List<String> launcher) throws Exception {
        Job job = Mpirun.job(launcher, 3).variable("MPJDEV_PROFILE", folder.toString()).run(Counted.class);
        assertEquals(0, job.status, job::toString);
        for (int rank = 0; rank < 3; rank++) {
            checkCounts(rank);
        }
        Process report = new ProcessBuilder(System.getProperty("mpjdev.command"), "profile", folder.toString())
                .redirectErrorStream(true).start();
        String table = new String(report.getInputStream().readAllBytes());
        assertTrue(report.waitFor(60, TimeUnit.SECONDS));
        assertTrue(report.exitValue() == 0 && table.startsWith("profile of 3 of 3 ranks"), table);
        assertTrue(Files.exists(folder.resolve("profile.html")) && !Files.exists(folder.resolve("trace.json")));
    }

    /** Rank 2 kills itself, and the others, which wait for it, throw. */
    static final class Failing {
        private Failing() {}

        public static void main(String[] args) {
            Comm.init(args);
            Comm.WORLD.barrier();
            if (Comm.WORLD.id() == 2) {
                Runtime.getRuntime().halt(9);
            }
            try (ReadBuffer in = new ReadBuffer(64)) {
                Comm.WORLD.recv(in, 2, 0);
            }
        }
    }

    @Test
    void shouldKeepTheProfilesOfAJobThatFails() throws Exception {
        Job job = new Mpjrun(3).with("--keep-going", "--profile", folder.toString()).run(Failing.class);
        assertEquals(9, job.status, job::toString);
        assertTrue(job.err.contains("profile of 2 of 3 ranks") && job.err.contains("no profile of rank 2"),
                job::toString);
        assertCount(read("rank-0.json"), "Recv", null, 1, 0, 0);
        assertFalse(Files.exists(folder.resolve("rank-2.json")));
    }

    @Test
    void shouldRunWithoutAProfileThatCannotBeWritten() throws Exception {
        Job job = new Mpjrun(3).variable("MPJDEV_PROFILE", folder.resolve("none").toString()).run(Counted.class);
        assertEquals(0, job.status, job::toString);
        assertTrue(job.err.contains("the profile of this rank is lost: " + folder.resolve("none")), job::toString);
        job = new Mpjrun(3).variable("MPJDEV_PROFILE", folder.toString()).variable("MPJDEV_TRACE", "all")
                .run(Counted.class);
        assertEquals(0, job.status, job::toString);
        assertTrue(job.err.contains("no profile of rank 0: MPJDEV_TRACE is \"all\""), job::toString);
    }
}
