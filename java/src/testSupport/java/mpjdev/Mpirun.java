package mpjdev;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/** Jobs under the launcher of an MPI. Public: the tests of every package use it. */
public final class Mpirun {
    private Mpirun() {}

    /**
     * Commands of the launchers of MPIs. The last two options allow root, and more processes than processors.
     */
    public static Stream<List<String>> launchers() {
        return Stream.of(List.of("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"), List.of("mpirun.mpich"));
    }

    /** Makes a job, or skips the test if the launcher is not installed. */
    public static Mpjrun job(List<String> launcher, int ranks) {
        boolean found = Stream.of(System.getenv("PATH").split(":"))
                .anyMatch(folder -> Files.isExecutable(Path.of(folder, launcher.get(0))));
        if (!found) {
            System.out.println("SKIPPED: there is no " + launcher.get(0));
        }
        Assumptions.assumeTrue(found, "there is no " + launcher.get(0));
        return new Mpjrun(ranks).under(launcher);
    }
}
