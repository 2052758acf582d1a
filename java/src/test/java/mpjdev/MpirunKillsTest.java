package mpjdev;

import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Jobs under the launcher of an MPI in which a process is killed, or the launcher gets a signal to end. */
@Timeout(180)
@Execution(ExecutionMode.CONCURRENT)
class MpirunKillsTest {
    static Stream<List<String>> launchers() {
        return Mpirun.launchers();
    }

    private static final String SAID = "process ";

    /**
     * Prints its process id and waits for a message that never arrives. With an argument rank 0 kills rank 1.
     */
    static final class Waiting {
        private Waiting() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            Comm world = Comm.WORLD;
            System.out.println(SAID + ProcessHandle.current().pid());
            try (WriteBuffer out = new WriteBuffer(24); ReadBuffer in = new ReadBuffer(24)) {
                long[] process = {ProcessHandle.current().pid()};
                if (world.id() == 1) {
                    out.write(process, 0, 1);
                    world.send(out, 0, 0);
                } else if (args.length > 0) {
                    world.recv(in, 1, 0);
                    in.read(process, 0, 1);
                    // The kill may come before this rank waits or while it waits.
                    assertTrue(ProcessHandle.of(process[0]).orElseThrow().destroyForcibly());
                }
                world.recv(in, 1 - world.id(), 1);
                System.out.println("came back");
            }
        }
    }

    @ParameterizedTest
    @MethodSource("launchers")
    void shouldEndTheJobOfAKilledProcess(List<String> launcher) throws Exception {
        Job job = Mpirun.job(launcher, 2).within(30).run(Waiting.class, "kill");
        assertNotEquals(0, job.status, job::toString);
        assertTrue(job.err.contains("signal 9") || job.out.contains("signal 9"), job::toString);
        assertTrue(!job.out.contains("came back"), job::toString);
        List<ProcessHandle> ranks = job.lines().stream().flatMap(MpirunKillsTest::process).toList();
        Wait.until("all ranks have ended, " + job, () -> ranks.stream().noneMatch(ProcessHandle::isAlive));
    }

    static Stream<Arguments> endings() {
        return launchers().flatMap(launcher -> Stream.of(false, true).map(kill -> Arguments.of(launcher, kill)));
    }

    @ParameterizedTest
    @MethodSource("endings")
    void shouldLeaveNoProcessAfterTheLauncherEnds(List<String> launcher, boolean kill) throws Exception {
        List<String> command = Mpirun.job(launcher, 2).command(Waiting.class);
        Path err = Files.createTempFile("mpjdev-test", ".err");
        Process mpirun = new ProcessBuilder(command).redirectInput(new File("/dev/null")).redirectError(err.toFile()).start();
        List<ProcessHandle> all = new ArrayList<>();
        try (BufferedReader out = mpirun.inputReader()) {
            while (all.size() < 2) {
                String line = out.readLine();
                assertNotNull(line, () -> read(err));
                process(line).forEach(all::add);
            }
            mpirun.descendants().forEach(all::add);
            if (kill) {
                mpirun.destroyForcibly();
            } else {
                mpirun.destroy();
            }
            assertTrue(mpirun.waitFor(30, TimeUnit.SECONDS), () -> "the launcher does not end: " + read(err));
            assertNotEquals(0, mpirun.exitValue(), () -> read(err));
            Wait.until("all processes have ended, " + read(err), () -> all.stream().noneMatch(ProcessHandle::isAlive));
        } finally {
            all.forEach(ProcessHandle::destroyForcibly);
            mpirun.destroyForcibly().waitFor();
            Files.delete(err);
        }
    }

    /** Returns the process whose id a rank has printed, if it still runs. */
    private static Stream<ProcessHandle> process(String line) {
        return line.startsWith(SAID) ? ProcessHandle.of(Long.parseLong(line.substring(SAID.length()))).stream() : Stream.empty();
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            return e.toString();
        }
    }
}
