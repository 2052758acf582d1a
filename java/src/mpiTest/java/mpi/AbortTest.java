package mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The end of a job by one of its ranks. */
@Timeout(180)
class AbortTest {
    private static final int STATUS = 5;

    /** Rank 1 aborts while the others wait for it. */
    static final class Aborting {
        private Aborting() {}

        public static void main(String[] args) {
            MPI.Init(args);
            if (MPI.COMM_WORLD.Rank() == 1) {
                MPI.COMM_WORLD.Abort(Integer.parseInt(args[0]));
            }
            try {
                MPI.COMM_WORLD.Recv(new int[1], 0, 1, MPI.INT, 1, 0);
            } finally {
                System.out.println("not reached, or after a failure of rank 1");
            }
            MPI.Finalize();
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldEndAllRanksWithItsStatus(World world) throws Exception {
        Job job = world.job(3).run(Aborting.class, "" + STATUS);
        assertEquals(STATUS, job.status, job::toString);
        assertTrue(job.err.contains("mpjdev: rank 1 ends the job: MPI.Abort(5)"), job::toString);
        assertFalse(world.job(3).run(Aborting.class, "0").status == 0);
    }
}
