package mpi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Collections;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Defect X13 of MPJ Express: Gather, Scatter and Allgather ignore the offset of one side, and need both
 * arrays at all ranks.
 */
@Timeout(120)
class X13Test {
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
            int[] own = {-1, -1, rank};
            int[] all = new int[RANKS + 1];
            world.Gather(own, 2, 1, MPI.INT, rank == 1 ? all : null, 1, 1, MPI.INT, 1);
            assertArrayEquals(rank == 1 ? new int[] {0, 0, 1, 2, 3} : new int[RANKS + 1], all);
            int[] part = {-1, -1};
            world.Scatter(rank == 1 ? new int[] {9, 10, 11, 12, 13} : null, 1, 1, MPI.INT, part, 1, 1, MPI.INT, 1);
            assertArrayEquals(new int[] {-1, 10 + rank}, part);
            int[] everywhere = new int[RANKS + 2];
            world.Allgather(own, 2, 1, MPI.INT, everywhere, 2, 1, MPI.INT);
            assertArrayEquals(new int[] {0, 0, 0, 1, 2, 3}, everywhere);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"SHM", "OPENMPI"})
    void shouldUseBothOffsetsAndNoFurtherArray(World world) throws Exception {
        assertEquals(Collections.nCopies(RANKS, "done"), world.run(RANKS, Calls.class));
    }
}
