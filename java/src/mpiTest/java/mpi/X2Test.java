package mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Defect X2 of MPJ Express: {@link Comm#Abort} does nothing, and the program continues. */
@Timeout(180)
class X2Test {
    private static final int STATUS = 3;

    /** All ranks abort. */
    static final class Aborting {
        private Aborting() {}

        public static void main(String[] args) {
            MPI.Init(args);
            MPI.COMM_WORLD.Barrier();
            MPI.COMM_WORLD.Abort(STATUS);
            System.out.println("continued");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldNotContinueAfterAbort(World world) throws Exception {
        Job job = world.job(2).run(Aborting.class);
        assertEquals(STATUS, job.status, job::toString);
        assertFalse(job.out.contains("continued"), job::toString);
    }
}
