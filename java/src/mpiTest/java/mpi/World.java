package mpi;

import java.util.List;
import mpjdev.Mpirun;
import mpjdev.Mpjrun;
import mpjdev.Mpjrun.Job;

/** A way to start the ranks of a program. */
enum World {
    /** Processes, over shared memory. */
    SHM,
    /** Processes, over TCP. */
    TCP,
    /** Processes, over datagrams. */
    UDP,
    /** Threads of one JVM. */
    THREADS,
    /** Processes under the mpirun of Open MPI. */
    OPENMPI,
    /** Processes under the mpirun of MPICH. */
    MPICH;

    /** Makes a job, or skips the test if there is no such launcher here. */
    Mpjrun job(int ranks) {
        switch (this) {
            case OPENMPI:
            case MPICH:
                List<String> launcher = Mpirun.launchers().toList().get(this == OPENMPI ? 0 : 1);
                return Mpirun.job(launcher, ranks);
            case THREADS:
                return new Mpjrun(1).threads(ranks);
            default:
                return new Mpjrun(ranks).with("--transport", name().toLowerCase(java.util.Locale.ROOT));
        }
    }

    /** Runs a program and expects that each rank ends well. Returns the lines of the job. */
    List<String> run(int ranks, Class<?> main, String... args) throws Exception {
        Job job = job(ranks).run(main, args);
        if (job.status != 0) {
            throw new AssertionError(this + ": " + job);
        }
        return job.lines();
    }
}
