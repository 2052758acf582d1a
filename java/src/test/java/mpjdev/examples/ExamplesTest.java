package mpjdev.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Collectors;
import mpjdev.Comm;
import mpjdev.Fork;
import mpjdev.Mpjrun;
import mpjdev.Wait;
import mpjdev.examples.Decomposition.Part;
import mpjdev.examples.Decomposition.Side;
import mpjdev.examples.Traffic.Kind;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Results of the examples, also for numbers of ranks that do not divide the sizes. */
class ExamplesTest {
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final ByteArrayOutputStream err = new ByteArrayOutputStream();

    private int run(String... args) {
        return MainJob.run(args, new PrintStream(out, true, StandardCharsets.UTF_8),
                new PrintStream(err, true, StandardCharsets.UTF_8));
    }

    @Test
    void shouldPassAllChecksOfTheMainJobAndRestoreItsProperty() {
        assertEquals(0, run("--threads", "4", "--size", "20"), () -> out + "" + err);
        String text = out.toString(StandardCharsets.UTF_8);
        assertTrue(text.contains("all checks passed"), text);
        assertFalse(text.contains("FAILED"), text);
        assertEquals("", err.toString(StandardCharsets.UTF_8));
        assertEquals(null, System.getProperty("mpjdev.messageOriented"));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 4})
    void shouldPassAllChecksOfTheMainJobAsProcesses(int ranks) throws Exception {
        Mpjrun.Job job = new Mpjrun(ranks).run(MainJob.class, "--size", "20");
        assertEquals(0, job.status, job::toString);
        assertTrue(job.out.contains("each a process"), job::toString);
        assertTrue(job.out.endsWith("all checks passed\n"), job::toString);
        assertFalse(job.out.contains("FAILED"), job::toString);
        assertEquals("", job.err);
    }

    @Test
    void shouldExchangeTheSameMessagesAsProcessesAndAsThreads() throws Exception {
        assertEquals(0, run("--threads", "3", "--size", "31"), () -> out + "" + err);
        Mpjrun.Job job = new Mpjrun(3).run(MainJob.class, "--size", "31");
        assertEquals(exchanged(out.toString(StandardCharsets.UTF_8)), exchanged(job.out), job::toString);
    }

    /** The lines that do not depend on time: the checks and the table of messages. */
    private static String exchanged(String text) {
        return text.lines().filter(line -> line.matches("  right: .*|  .* [0-9,]+ +[0-9,]+ +[0-9,]+ +[0-9,]+"))
                .collect(Collectors.joining("\n"));
    }

    @Test
    void shouldFailTheMainJobWhenOneRankFails() throws Exception {
        // The block of one rank needs 128 MiB.
        Mpjrun.Job job = new Mpjrun(4).jvm("-Xmx24m").run(MainJob.class, "--size", "8192");
        assertEquals(1, job.status, job::toString);
        assertTrue(job.err.contains("OutOfMemoryError"), job::toString);
        assertTrue(job.err.contains("mpjrun: rank "), job::toString);
        assertFalse(job.out.contains("all checks passed"), job::toString);
    }

    @Test
    void shouldRejectWrongArgumentsInProcesses() throws Exception {
        Mpjrun.Job job = new Mpjrun(2).run(MainJob.class, "--size", "0");
        assertEquals(2, job.status, job::toString);
        assertTrue(job.err.contains("MainJob: --size needs a number, 1 to 8192, not 0"), job::toString);
    }

    @Test
    void shouldSayHelloFromProcessesAndFromThreads() throws Exception {
        Mpjrun.Job job = new Mpjrun(3).run(Hello.class);
        assertEquals(0, job.status, job::toString);
        assertEquals("rank 1 received primes [2, 3, 5]\n", job.out);
        assertEquals(job.out, new Fork().run(HelloThreads.class).ok());
    }

    @ParameterizedTest
    @CsvSource({"1,1", "1,5", "2,1", "2,2", "3,10", "4,1", "4,2", "4,13", "5,3", "6,7", "7,9", "9,4", "12,31"})
    void shouldSolveBitForBitAsTheSequentialSolver(int ranks, int size) throws Exception {
        Laplace problem = new Laplace(size);
        Progress silent = new Progress(new PrintStream(out), false);
        Traffic all = new Traffic();
        Comm.runThreads(ranks, world -> {
            Traffic own = new Traffic();
            Solution parallel = new ParallelSolver(world, problem, own).solve(silent);
            own.collect(world, all);
            if (world.id() == 0) {
                Solution sequential = SequentialSolver.solve(problem, silent);
                assertEquals(0, parallel.differences(sequential));
                assertEquals(sequential.sweeps(), parallel.sweeps());
                assertEquals(sequential.change(), parallel.change());
                assertTrue(parallel.converged());
                assertTrue(parallel.error(problem) <= problem.errorMax());
            }
        });
        assertTrue(all.isComplete());
    }

    @Test
    void shouldDetectOneWrongBitInTheSolution() {
        Solution solution = SequentialSolver.solve(new Laplace(8), new Progress(new PrintStream(out), false));
        double[] other = solution.values().clone();
        other[37] = Math.nextUp(other[37]);
        assertEquals(1, solution.differences(new Solution(other, solution.sweeps(), solution.change(), 0)));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 8})
    void shouldSendObjectsAroundTheRingAsOneMessageAndAsTwo(int ranks) throws Exception {
        Traffic all = new Traffic();
        System.setProperty("mpjdev.messageOriented", "true");
        try {
            Comm.runThreads(ranks, world -> {
                Traffic own = new Traffic();
                Token last = new ObjectRing(world, own, new Progress(new PrintStream(out), false)).run();
                own.collect(world, all);
                if (world.id() == 0) {
                    assertEquals(ObjectRing.expectedStamp(ranks), last.stamp());
                }
            });
        } finally {
            System.clearProperty("mpjdev.messageOriented");
        }
        assertTrue(all.isComplete());
        int half = ObjectRing.rounds(ranks) * ranks / 2;
        assertEquals(half, all.asOne(Kind.ROOMY));
        assertEquals(half, all.asTwo(Kind.TIGHT));
    }

    @ParameterizedTest
    @CsvSource({"1,1", "4,2", "6,100", "7,3", "36,5", "256,512"})
    void shouldAssignEveryPointToOneRankWithSymmetricNeighbours(int ranks, int size) {
        Decomposition d = Decomposition.of(ranks, size);
        boolean[] taken = new boolean[size * size];
        for (int rank = 0; rank < ranks; rank++) {
            Part part = d.part(rank);
            assertEquals(rank < d.active(), part.rows() * part.columns() > 0);
            for (int i = 0; i < part.rows() * part.columns(); i++) {
                int row = part.row() - 1 + i / part.columns();
                int at = row * size + part.column() - 1 + i % part.columns();
                assertFalse(taken[at]);
                taken[at] = true;
            }
            for (Side side : Side.values()) {
                int other = d.neighbour(rank, side);
                if (other >= 0) {
                    assertEquals(rank, d.neighbour(other, side.opposite()));
                }
            }
        }
        for (boolean is : taken) {
            assertTrue(is);
        }
    }

    @Test
    void shouldRewriteTheProgressLineOnATerminalOnly() throws Exception {
        Progress progress = new Progress(new PrintStream(out, true), true);
        Wait.until("a line is due", () -> {
            progress.sweeps("x", 10, 1);
            return out.size() > 0;
        });
        progress.end();
        String text = out.toString(StandardCharsets.UTF_8);
        assertTrue(text.startsWith("\r  x: sweep 10,") && text.endsWith(" \r") && !text.contains("\n"), text);
    }

    @ParameterizedTest
    @CsvSource({"--threads,0", "--threads,257", "--size,many", "--size,8193", "--speed,9"})
    void shouldRejectWrongArgumentsWithAText(String name, String value) {
        assertEquals(2, run(name, value));
        String text = err.toString(StandardCharsets.UTF_8);
        assertTrue(text.contains(name) && text.contains("usage:"), text);
        assertEquals("", out.toString(StandardCharsets.UTF_8));
    }

    @Test
    void shouldRejectAnOptionWithoutItsNumberAndPrintHelp() {
        assertEquals(2, run("--size"));
        assertEquals(0, run("--help"));
        assertEquals(Options.USAGE, out.toString(StandardCharsets.UTF_8).strip());
    }

    @Test
    void shouldShowTheHelloProgramInTheReadme() throws IOException {
        String program = Files.readString(Path.of("java/src/examples/java/mpjdev/examples/Hello.java"));
        assertTrue(Files.readString(Path.of("README.md")).contains(program), "README.md does not show Hello.java");
    }
}
