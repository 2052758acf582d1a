package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The choice of the C MPI: the named one, or an error with a remedy; none in a job of mpjrun. */
@Timeout(180)
@Execution(ExecutionMode.CONCURRENT)
class MpirunLibrariesTest {
    private static final String LIBRARY = "MPJDEV_MPI_LIBRARY";
    private static final List<String> BOTH = List.of("0 of 2, again", "1 of 2, again");

    static Stream<List<String>> launchers() {
        return Mpirun.launchers();
    }

    private static Job named(List<String> launcher, String library) throws Exception {
        Job job = Mpirun.job(launcher, 2).within(30).variable(LIBRARY, library).run(ProcessesTest.Ring.class);
        assertNotEquals(0, job.status, job::toString);
        assertEquals("", job.out.replaceAll("(?s)\n=====.*", ""), job::toString);
        return job;
    }

    private static void assertUnusable(List<String> launcher, String library, String why) throws Exception {
        Job job = named(launcher, library);
        String said = "IllegalStateException: no C MPI that can be used; tried " + library + ": " + why
                + " (MPJDEV_MPI_LIBRARY names it: that has to be the path of the launcher's own MPI";
        assertTrue(job.err.contains(said), job::toString);
    }

    @ParameterizedTest
    @MethodSource("launchers")
    void shouldNameTheReasonWhyALibraryIsUnusable(List<String> launcher) throws Exception {
        assertUnusable(launcher, "/no/such/libmpi.so", "cannot open shared object file: No such file or directory");
        assertUnusable(launcher, "libm.so.6", "it is no MPI: it has no MPI_Get_library_version");
        Path text = Files.createTempFile("mpjdev-test", ".so");
        try {
            Files.writeString(text, "no library, but a text that is longer than the header of one: ".repeat(9));
            assertUnusable(launcher, text.toString(), "invalid ELF header");
        } finally {
            Files.delete(text);
        }
    }

    @ParameterizedTest
    @MethodSource("launchers")
    void shouldRejectTheMpiOfAnotherLauncher(List<String> launcher) throws Exception {
        List<String> other = launchers().filter(one -> !one.equals(launcher)).findFirst().orElseThrow();
        Mpirun.job(other, 1);
        Job job = named(launcher, other.get(0).contains("openmpi") ? "libmpi.so.40" : "libmpich.so.12");
        String name = launcher.get(0).contains("openmpi") ? "Open MPI's mpirun" : "a launcher with PMI, such as MPICH's mpiexec";
        assertTrue(job.err.contains("sees a job of 1 where " + name + " has started 2: it belongs to another launcher; start"
                + " the ranks by its own one, or let MPJDEV_MPI_LIBRARY name the library of this one"), job::toString);
    }

    @Test
    void shouldStayARankOfMpjrunDespiteVariablesOfAnotherLauncher() throws Exception {
        Mpjrun job = new Mpjrun(2);
        for (String left : List.of("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_FD")) {
            job.variable(left, "5");
        }
        for (String left : List.of("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")) {
            job.variable(left, "7");
        }
        Job ended = job.variable("MPJDEV_TRANSPORT", "mpi").variable(LIBRARY, "/no/such/libmpi.so").run(SitesTest.Again.class);
        assertEquals(0, ended.status, ended::toString);
        assertEquals(BOTH, ended.lines(), ended::toString);
    }

    @ParameterizedTest
    @MethodSource("launchers")
    void shouldRunAJobOfMpjrunWithinAProcessOfAnMpi(List<String> launcher) throws Exception {
        String mpjrun = System.getProperty("mpjdev.command");
        Job job = Mpirun.job(launcher, 1).by("exec '" + mpjrun + "' run -n 2 --timeout 100 \"$@\"").run(SitesTest.Again.class);
        assertEquals(0, job.status, job::toString);
        assertEquals(BOTH, job.lines(), job::toString);
    }
}
