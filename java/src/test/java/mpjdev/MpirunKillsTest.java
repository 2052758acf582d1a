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
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** What becomes of a job under the launcher of an MPI when one of its processes is killed, or the launcher is asked to end. */
@Timeout(180)
class MpirunKillsTest {
    static Stream<List<String>> launchers() {
        return MpirunTest.launchers();
    }

    private static final String SAID = "process ";

    /** Says its process, and waits for what never comes; with an argument rank 0 kills rank 1 meanwhile. */
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
                    // Before this rank waits or when it does: both must do.
                    assertTrue(ProcessHandle.of(process[0]).orElseThrow().destroyForcibly());
                }
                world.recv(in, 1 - world.id(), 1);
                System.out.println("came back");
            }
        }
    }

    @ParameterizedTest
    @MethodSource("launchers")
    void shouldEndTheJobOfAProcessThatIsKilled(List<String> launcher) throws Exception {
        Job job = MpirunTest.job(launcher, 2).within(30).run(Waiting.class, "kill");
        assertNotEquals(0, job.status, job::toString);
        assertTrue(job.err.contains("signal 9") || job.out.contains("signal 9"), job::toString);
        assertTrue(!job.out.contains("came back"), job::toString);
        List<ProcessHandle> ranks = job.lines().stream().flatMap(MpirunKillsTest::process).toList();
        Wait.until("all ranks are gone, " + job, () -> ranks.stream().noneMatch(ProcessHandle::isAlive));
    }

    static Stream<Arguments> endings() {
        return launchers().flatMap(launcher -> Stream.of(false, true).map(kill -> Arguments.of(launcher, kill)));
    }

    @ParameterizedTest
    @MethodSource("endings")
    void shouldLeaveNothingOfALauncherThatIsAskedToEndOrKilled(List<String> launcher, boolean kill) throws Exception {
        List<String> command = MpirunTest.job(launcher, 2).command(Waiting.class);
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
            Wait.until("all processes are gone, " + read(err), () -> all.stream().noneMatch(ProcessHandle::isAlive));
        } finally {
            all.forEach(ProcessHandle::destroyForcibly);
            mpirun.destroyForcibly().waitFor();
            Files.delete(err);
        }
    }

    /** The process that a rank has said that it is, if it is still there. */
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
