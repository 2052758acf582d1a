package mpi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Collections;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Defect X14 of MPJ Express: Allreduce and Reduce with different offsets give wrong data, because predefined
 * operations combine the first elements of the arrays.
 */
@Timeout(120)
class X14Test {
    private static final int RANKS = 4;

    /** The calls of one rank. */
    static final class Calls {
        private Calls() {}

        public static void main(String[] args) throws Exception {
            MPI.Init(args);
            run(MPI.COMM_WORLD, MPI.COMM_WORLD.Rank());
            MPI.Finalize();
            System.out.println("done");
        }

        private static void run(Intracomm world, int rank) {
            int[] sent = {-5, -5, -5, rank, 2 * rank};
            int[] received = {7, 7, 7};
            world.Allreduce(sent, 3, received, 1, 2, MPI.INT, MPI.SUM);
            assertArrayEquals(new int[] {7, 6, 12}, received);
            int[] reduced = {8, 8, 8, 8};
            world.Reduce(sent, 3, reduced, 2, 2, MPI.INT, MPI.MAX, 2);
            assertArrayEquals(rank == 2 ? new int[] {8, 8, 3, 6} : new int[] {8, 8, 8, 8}, reduced);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"SHM", "OPENMPI"})
    void shouldReduceFromAndToItsOffsets(World world) throws Exception {
        assertEquals(Collections.nCopies(RANKS, "done"), world.run(RANKS, Calls.class));
    }
}
