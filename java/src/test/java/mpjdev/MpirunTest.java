package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Programs of {@link ProcessesTest} and others under the launcher of an MPI, which carries their messages.
 */
@Timeout(180)
@Execution(ExecutionMode.CONCURRENT)
class MpirunTest {
    @ParameterizedTest
    @MethodSource("mpjdev.Mpirun#launchers")
    void shouldRunAProgramUnderTheLauncherOfAnMpi(List<String> launcher) throws Exception {
        Job job = Mpirun.job(launcher, 3).run(ProcessesTest.Ring.class);
        assertEquals(0, job.status, job::toString);
        assertEquals(List.of("0 of 3 in 2", "1 of 3 in 1", "2 of 3 in 2"), job.lines(), job::toString);
    }

    @ParameterizedTest
    @MethodSource("mpjdev.Mpirun#launchers")
    void shouldJoinAgainAfterFinish(List<String> launcher) throws Exception {
        Job job = Mpirun.job(launcher, 2).run(SitesTest.Again.class);
        assertEquals(0, job.status, job::toString);
        assertEquals(List.of("0 of 2, again", "1 of 2, again"), job.lines(), job::toString);
    }

    @ParameterizedTest
    @MethodSource("mpjdev.Mpirun#launchers")
    void shouldEndTheJobOfAThrowingRankWithItsText(List<String> launcher) throws Exception {
        Job job = Mpirun.job(launcher, 2).run(ProcessesTest.Throwing.class);
        assertNotEquals(0, job.status, job::toString);
        assertTrue(job.err.contains("IllegalArgumentException: on purpose"), job::toString);
        assertTrue(job.err.contains("mpjdev: rank 0 ends the job: uncaught in thread main"), job::toString);
    }

    /** Ends without finish while the other rank waits for it. */
    static final class Leaving {
        private Leaving() {}

        public static void main(String[] args) {
            Comm.init(args);
            if (Comm.WORLD.id() == 1) {
                System.exit(0);
            }
            Comm.WORLD.barrier();
            Comm.finish();
        }
    }

    @ParameterizedTest
    @MethodSource("mpjdev.Mpirun#launchers")
    void shouldEndTheJobOfARankThatExitsWithoutFinish(List<String> launcher) throws Exception {
        Job job = Mpirun.job(launcher, 2).run(Leaving.class);
        assertNotEquals(0, job.status, job::toString);
        String said = "mpjdev: rank 1 ends the job: its process ends without Comm.finish";
        assertTrue(job.err.contains(said), job::toString);
    }
}
