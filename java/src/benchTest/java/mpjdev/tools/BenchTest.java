package mpjdev.tools;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import mpjdev.Comm;
import mpjdev.Fork;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The benchmark program: its options, its cases, and the contents of their messages. */
@Timeout(120)
class BenchTest {
    @Test
    void shouldReadOptions() {
        Options options = Options.of("rate", "--sizes", "8,1k,2M", "--time", "0.25", "--threads", "3", "--json");
        assertEquals(List.of(Case.RATE_ARRAYS, Case.RATE_DIRECT, Case.RATE_BUFFERS, Case.RATE_REQUESTS, Case.BUSY), options.cases);
        assertEquals(List.of(8, 1024, 2 << 20), options.sizes);
        assertEquals(0.25, options.seconds);
        assertEquals(3, options.threads);
        assertTrue(options.json);
        assertEquals(List.of(), Options.of("empty").cases);
        assertEquals(List.of(Case.STRIDED), Options.of("strided").cases);
        assertEquals(Path.of("a", "b"), Options.of("serve", "a/b").socket);
        assertEquals(List.of(Case.RATE_ARRAYS, Case.RATE_DIRECT, Case.RATE_BUFFERS, Case.RATE_REQUESTS),
                Options.of("rate", "--over", "aeron-udp").cases);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "speed | speed is not a case",
        "rate --sizes 7 | a multiple of 8",
        "rate --sizes 8,x | x is not a number of octets",
        "rate --sizes 1g | a multiple of 8 from 8 to",
        "rate --time -1 | --time: -1 is not a number from 0 to 3600",
        "rate --time NaN | --time: NaN is not",
        "rate --threads 0 | --threads: 0 is not",
        "rate --threads | --threads needs a value",
        "rate --over atm | there is no peer atm",
        "rate --fast 1 | there is no option --fast",
        "serve | serve needs a value",
    })
    void shouldRejectInvalidOptionsWithAReason(String line, String text) {
        Exception e = assertThrows(IllegalArgumentException.class, () -> Options.of(line.split(" ")));
        assertTrue(e.getMessage().contains(text), e.getMessage());
    }

    /** Every case ends, also with idle ranks. A case that computes takes 120 ms. */
    @ParameterizedTest
    @EnumSource(Case.class)
    void shouldRunEveryCase(Case what) throws Exception {
        int times = what == Case.SEND_COMPUTE || what == Case.RECV_COMPUTE ? 1 : 3;
        for (int ranks : new int[] {1, 2, 3}) {
            Comm.<Exception>runThreads(ranks, world -> {
                try (Rank rank = new Rank(world)) {
                    for (int octets : new int[] {8, 4096}) {
                        if (ranks > 1 || (what != Case.RING && what != Case.ALLTOALL)) {
                            Answer answer = rank.run(new RunCommand(what.word, octets, times));
                            assertTrue(answer.nanos() >= 0 && answer.extra() >= 0, what + ": " + answer);
                        }
                    }
                }
            });
        }
    }

    /** Windows of large messages are shorter, here and in {@code protocol.rs}. */
    @Test
    void shouldCountTheMessagesOfAWindow() {
        int mib = 1 << 20;
        int[][] expected = {{8, 64}, {4 * mib, 64}, {4 * mib + 8, 63}, {16 * mib, 16}, {256 * mib, 1}, {512 * mib, 1}};
        for (int[] pair : expected) {
            assertEquals(pair[1], Case.RATE_ARRAYS.perTime(pair[0], 2), pair[0] + " octets");
        }
        assertEquals(5, Case.RING.perTime(8, 5));
        assertEquals(2, Case.ARRAYS.perTime(8, 5));
    }

    /** The receiver gets the contents of the array. */
    @Test
    void shouldReceiveTheContentsOfArrays() throws Exception {
        int octets = 1024;
        Comm.<Exception>runThreads(2, world -> {
            double[] numbered = new double[octets];
            Arrays.setAll(numbered, i -> i);
            for (Case what : List.of(Case.ARRAYS, Case.DIRECT, Case.STRIDED, Case.STRIDED_DIRECT, Case.RANDOM,
                    Case.RANDOM_DIRECT, Case.MPI, Case.COLUMN, Case.INDEXED)) {
                try (Work.WithArray work = (Work.WithArray) what.work(world, octets)) {
                    System.arraycopy(numbered, 0, work.array, 0, world.id() == 0 ? work.array.length : 0);
                    work.run(1);
                    double[] expected = Arrays.copyOf(numbered, work.array.length);
                    // The array has the elements of a message, and as many others as lie between them.
                    int step = work.array.length / (octets / Double.BYTES);
                    for (int i = 0; world.id() == 1 && i < expected.length; i++) {
                        expected[i] = i % step == 0 ? expected[i] : 0;
                    }
                    assertArrayEquals(expected, work.array, what.word);
                }
            }
            try (ShapedTrips.Sum work = new ShapedTrips.Sum(world, octets)) {
                work.run(3);
                int n = octets / Double.BYTES;
                assertEquals(n * (n - 1) / 2 + 2 * n, work.sum());
            }
            try (DirectTrips.Sum work = new DirectTrips.Sum(world, octets)) {
                work.run(3);
                int n = octets / Double.BYTES;
                assertEquals(n * (n - 1) / 2 + 2 * n, work.sum());
            }
        });
    }

    @Test
    void shouldPrintJson() throws Exception {
        String out = new Fork().run(Bench.class, "pingpong", "--threads", "2", "--sizes", "8", "--time", "0", "--json").ok();
        assertTrue(out.startsWith("{\"rows\": [\n  {\"case\": \"arrays\", \"octets\": 8, \"ranks\": 2, \"contestants\": "
                + "[{\"name\": \"Java local\", \"median\": "), out);
        assertTrue(out.endsWith("}]}\n]}\n"), out);
        Fork.Result wrong = new Fork().run(Bench.class, "pingpong", "--size", "8");
        assertEquals(2, wrong.status);
        assertTrue(wrong.output.contains("no option --size"), wrong.output);
        assertTrue(new Fork().run(Bench.class, "--help").ok().contains("--threads N"));
    }

    @Test
    void shouldMeasureProcessesThatTheLauncherStarts() throws Exception {
        String out = program("mpjdev.command", "run", "-n", "3", java(), "--enable-native-access=ALL-UNNAMED", "-cp",
                System.getProperty("java.class.path"), Bench.class.getName(), "ring", "--sizes", "8,4k", "--time", "0");
        assertEquals(2, out.lines().filter(line -> line.startsWith("ring, one hop ")).count(), out);
        assertTrue(out.contains(" 4 KiB  "), out);
    }

    @Test
    void shouldMeasureRanksOverDatagrams() throws Exception {
        String out = program("mpjdev.command", "run", "--transport", "udp", "-n", "2", java(), "--enable-native-access=ALL-UNNAMED", "-cp",
                System.getProperty("java.class.path"), Bench.class.getName(), "pingpong", "--sizes", "8,64k", "--time", "0",
                "--json");
        for (String row : List.of("\"arrays\", \"octets\": 8,", "\"buffers\", \"octets\": 65536,")) {
            assertTrue(out.contains("{\"case\": " + row + " \"ranks\": 2, \"contestants\": [{\"name\": \"Java udp\""), out);
        }
    }

    /** Proves that the counters of the ranks are in the JSON of each row. */
    @Test
    void shouldReportCountersOfUdpRanks() throws Exception {
        String out = program("mpjdev.bench", "rate", "--java", "--class-path", System.getProperty("java.class.path"),
                "--transport", "udp", "--sizes", "8", "--time", "0", "--json");
        assertEquals(4, out.split("\"Java udp\"", -1).length - 1, out);
        assertEquals(8, out.split("\"counters\": \\{", -1).length - 1, out);
        assertTrue(out.contains("\"send_calls\": ") && !out.contains("\"send_calls\": 0,"), out);
    }

    /** Proves that mpjdev-bench and this program speak the same protocol. */
    @Test
    void shouldTakeTurnsWithTheCommand() throws Exception {
        String out = program("mpjdev.bench", "pingpong", "--java", "--class-path", System.getProperty("java.class.path"),
                "--no-peer", "--sizes", "8", "--time", "0", "--json");
        assertTrue(out.contains("\"Java local\"") && out.contains("\"Java shm\""), out);
    }

    /** Proves that ranks in Java take turns with C, and that each row has its figure. */
    @Test
    void shouldMeasureCollectiveCallsInTurns() throws Exception {
        String out = program("mpjdev.bench", "collectives", "--class-path", System.getProperty("java.class.path"),
                "--time", "0", "--ranks", "2,3", "--rows", "barrier,of 1 double,1000 doubles,of 4 KiB,Scan of 1 KiB", "--json");
        for (String title : List.of("2 ranks, Barrier", "3 ranks, Alltoall of 4 KiB a pair",
                "2 ranks, Allreduce of 1000 doubles by a user function", "3 ranks, garbage of Allreduce of 1 double, B")) {
            int at = out.indexOf("\"title\": \"" + title + "\"");
            assertTrue(at >= 0, title + ": " + out);
        }
        assertTrue(out.contains("\"name\": \"Java shm\"") && out.contains("\"name\": \"Java shm, predefined\""), out);
    }

    /**
     * Proves that the rank of MPJ Express makes every call with package mpi alone: the class path of this one
     * has no public class of mpjdev.
     */
    @Test
    void shouldMeasureCollectiveCallsBesideMpjExpress(@TempDir Path home) throws Exception {
        Files.createDirectory(home.resolve("lib"));
        Files.copy(Path.of(System.getProperty("mpjdev.mpj")), home.resolve("lib/mpj.jar"));
        Files.writeString(home.resolve("launcher"), System.getProperty("mpjdev.command"));
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().putValue("Manifest-Version", "1.0");
        manifest.getMainAttributes().putValue("Main-Class", StarterStub.class.getName());
        manifest.getMainAttributes().putValue("Class-Path",
                StarterStub.class.getProtectionDomain().getCodeSource().getLocation().toString());
        new JarOutputStream(Files.newOutputStream(home.resolve("lib/starter.jar")), manifest).close();
        String out = program("mpjdev.bench", "collectives", "--class-path", System.getProperty("java.class.path"),
                "--time", "0", "--ranks", "2", "--rows", "MPJ Express", "--mpj-express", home.toString(), "--json");
        for (String call : List.of("Barrier", "Bcast of 1 MiB", "Allreduce of 8192 doubles", "Alltoall of 4 KiB a pair",
                "Allgather of 1 KiB a rank", "Gather of 256 KiB a rank", "Scatter of 1 KiB a rank",
                "Reduce_scatter of 256 KiB a rank", "Scan of 1 KiB a rank")) {
            assertTrue(out.contains("\"title\": \"2 ranks beside MPJ Express, " + call + '"'), call + ": " + out);
        }
        assertEquals(18, out.split("\"name\": \"MPJ Express\"", -1).length - 1, out);
        assertEquals(18, out.split("\"name\": \"Java shm\"", -1).length - 1, out);
    }

    /** Proves that counting is switched between turns: the ranks of mpjrun have a profile. */
    @Test
    void shouldMeasureTheCostOfAProfile() throws Exception {
        String out = program("mpjdev.bench", "profile", "--class-path", System.getProperty("java.class.path"), "--jobs",
                "1", "--turns", "3");
        assertTrue(out.contains("## Cost of a profile") && out.contains("a call of a round trip"), out);
        assertTrue(out.contains("Medians of 1 jobs") && out.contains("at most 15"), out);
    }

    /** Proves that Allreduce combines the values of all ranks, by the predefined sum and by a function. */
    @Test
    void shouldCombineTheValuesOfAllRanks() throws Exception {
        int ranks = 3;
        double[] expected = {ranks, ranks};
        Comm.<Exception>runThreads(ranks, world -> {
            for (Case what : List.of(Case.MPI_ALLREDUCE, Case.MPI_ALLREDUCE_USER)) {
                CollectiveWork work = (CollectiveWork) what.work(world, expected.length * Double.BYTES);
                work.run(2);
                assertArrayEquals(expected, work.calls.result(), what.word);
                assertTrue(work.extra > 0 && work.nanos >= work.extra, what.word);
            }
        });
    }

    /** Proves that Aeron takes turns with mpjdev ranks if it was resolved. */
    @ParameterizedTest
    @CsvSource({"shm, Aeron IPC", "udp, Aeron UDP"})
    void shouldTakeTurnsWithAeron(String transport, String name) throws Exception {
        assumeTrue(System.getProperty("java.class.path").contains("aeron-all"), "Aeron could not be resolved");
        String out = program("mpjdev.bench", "rate", "--peer", "aeron", "--class-path", System.getProperty("java.class.path"),
                "--transport", transport, "--sizes", "8,64k,1m", "--time", "0", "--json");
        assertEquals(8, out.split('"' + name + '"', -1).length - 1, out);
    }

    /** Proves that arrays arrive over a peer as over mpjdev, also in fragments. */
    @ParameterizedTest
    @ValueSource(strings = {"aeron-ipc", "aeron-udp"})
    void shouldReceiveTheContentsOfArraysOverAeron(String peer) throws Exception {
        assumeTrue(System.getProperty("java.class.path").contains("aeron-all"), "Aeron could not be resolved");
        new Fork().with("--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED").run(PeerCheck.class, peer).ok();
    }

    /** Proves that arrays arrive over the baseline, and that it takes turns with mpjdev ranks. */
    @Test
    void shouldReceiveTheContentsOfArraysOverTheBaseline() throws Exception {
        String library = System.getProperty(BaselineNative.PROPERTY);
        new Fork().with("-D" + BaselineNative.PROPERTY + '=' + library).run(PeerCheck.class, "baseline").ok();
        String out = program("mpjdev.bench", "rate", "--peer", "baseline", "--class-path", System.getProperty("java.class.path"),
                "--baseline", library, "--transport", "shm", "--sizes", "8,64k,1m", "--time", "0", "--json");
        assertEquals(12, out.split("\"baseline\"", -1).length - 1, out);
    }

    private static String java() {
        return Path.of(System.getProperty("java.home"), "bin", "java").toString();
    }

    /** Output of a program whose path is in a system property. */
    private static String program(String property, String... words) throws Exception {
        List<String> line = new java.util.ArrayList<>(List.of(words));
        line.add(0, System.getProperty(property));
        Path out = Files.createTempFile("mpjdev-test", ".out");
        Path err = Files.createTempFile("mpjdev-test", ".err");
        try {
            ProcessBuilder builder = new ProcessBuilder(line).redirectInput(Path.of("/dev/null").toFile())
                    .redirectOutput(out.toFile()).redirectError(err.toFile());
            builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
            Process process = builder.start();
            assertTrue(process.waitFor(100, TimeUnit.SECONDS), "it does not end");
            assertEquals(0, process.exitValue(), Files.readString(err));
            return Files.readString(out);
        } finally {
            Files.delete(out);
            Files.delete(err);
        }
    }
}
