package mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNotSame;

import java.util.Collections;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Defect X10 of MPJ Express: ERRORS_RETURN is null, and error handlers have no effect. */
@Timeout(180)
class ErrorsReturnTest {
    /** Fails with both handlers, one after the other. */
    static final class Both {
        private Both() {}

        public static void main(String[] args) {
            assertNotNull(MPI.ERRORS_RETURN);
            assertNotSame(MPI.ERRORS_RETURN, MPI.ERRORS_ARE_FATAL);
            MPI.Init(args);
            MPI.Errorhandler_set(MPI.ERRORS_RETURN);
            Program.fails(MPI.ERR_RANK, () -> MPI.COMM_WORLD.Send(new int[1], 0, 1, MPI.INT, 2, 0));
            MPI.COMM_WORLD.Barrier();
            System.out.println("returned");
            MPI.COMM_WORLD.Barrier();
            MPI.Errorhandler_set(MPI.ERRORS_ARE_FATAL);
            MPI.COMM_WORLD.Send(new int[1], 0, 1, MPI.INT, 2, 0);
            System.out.println("not reached");
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"THREADS", "SHM"})
    void shouldReturnOrEndTheJob(World world) throws Exception {
        Job job = world.job(2).run(Both.class);
        assertEquals(MPI.ERR_RANK, job.status, job::toString);
        assertEquals(Collections.nCopies(2, "returned"), job.lines(), job::toString);
    }
}
