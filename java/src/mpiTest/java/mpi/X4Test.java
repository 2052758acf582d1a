package mpi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Collections;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Defect X4 of MPJ Express: Reduce_scatter of different data is wrong and overwrites the send buffer, and the
 * results of MIN and PROD contain zeros of its memory.
 */
@Timeout(120)
class X4Test {
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
            int[] sent = {rank + 1, 10 * (rank + 1), 100 * (rank + 1), 1000 * (rank + 1)};
            int[] before = sent.clone();
            int[] received = new int[1];
            int[] ones = {1, 1, 1, 1};
            int place = (int) Math.pow(10, rank);
            world.Reduce_scatter(sent, 0, received, 0, ones, MPI.INT, MPI.SUM);
            assertEquals(10 * place, received[0]);
            world.Reduce_scatter(sent, 0, received, 0, ones, MPI.INT, MPI.MIN);
            assertEquals(place, received[0]);
            world.Reduce_scatter(sent, 0, received, 0, ones, MPI.INT, MPI.PROD);
            assertEquals(24 * place * place * place * place, received[0]);
            assertArrayEquals(before, sent);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"SHM", "OPENMPI"})
    void shouldScatterAReductionOfDifferentData(World world) throws Exception {
        assertEquals(Collections.nCopies(RANKS, "done"), world.run(RANKS, Calls.class));
    }
}
