package mpi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Collections;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Defect X15 of MPJ Express: collective calls place blocks by counts in place of extents, and copy the own
 * block as base elements.
 */
@Timeout(120)
class X15Test {
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
            // Elements 0 and 2 of three, and an extent of three.
            Datatype gaps = Datatype.Vector(2, 1, 2, MPI.INT);
            int[] own = {rank, -1, 10 + rank};
            int[] all = new int[gaps.Extent() * RANKS];
            world.Allgather(own, 0, 1, gaps, all, 0, 1, gaps);
            for (int source = 0; source < RANKS; source++) {
                assertEquals(source, all[3 * source]);
                assertEquals(0, all[3 * source + 1], "a gap");
                assertEquals(10 + source, all[3 * source + 2]);
            }
            int[] exchanged = new int[3 * RANKS];
            world.Alltoall(all, 0, 1, gaps, exchanged, 0, 1, gaps);
            for (int source = 0; source < RANKS; source++) {
                assertArrayEquals(new int[] {rank, 0, 10 + rank},
                        new int[] {exchanged[3 * source], exchanged[3 * source + 1], exchanged[3 * source + 2]});
            }
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"SHM", "OPENMPI"})
    void shouldPlaceBlocksByExtents(World world) throws Exception {
        assertEquals(Collections.nCopies(RANKS, "done"), world.run(RANKS, Calls.class));
    }
}
