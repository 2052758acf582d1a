package mpi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Collections;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Defect M2 of MPJ Express: Shift is wrong for steps beyond an edge and for negative ones, and Dims_create
 * loses ranks.
 */
@Timeout(180)
class ShiftTest {
    private static final int RANKS = 6;

    @Test
    void shouldUseAllNodes() {
        for (int nodes = 1; nodes <= 100; nodes++) {
            for (int rank = 1; rank <= 3; rank++) {
                int[] dims = new int[rank];
                Cartcomm.Dims_create(nodes, dims);
                int product = 1;
                for (int k = 0; k < rank; k++) {
                    product *= dims[k];
                }
                assertEquals(nodes, product);
            }
        }
        int[] seven = new int[2];
        Cartcomm.Dims_create(7, seven);
        assertArrayEquals(new int[] {7, 1}, seven);
    }

    /** Shifts by all distances in a grid of 3 x 2 ranks that is periodic in one of its dimensions. */
    static final class Shifts {
        private Shifts() {}

        public static void main(String[] args) {
            MPI.Init(args);
            int[] dims = {3, 2};
            for (int periodic = 0; periodic < 2; periodic++) {
                boolean[] periods = {periodic == 0, periodic == 1};
                Cartcomm grid = MPI.COMM_WORLD.Create_cart(dims, periods, false);
                for (int direction = 0; direction < 2; direction++) {
                    for (int disp = -7; disp <= 7; disp++) {
                        ShiftParms shift = grid.Shift(direction, disp);
                        assertEquals(moved(grid, dims, periods, direction, disp), shift.rank_dest);
                        assertEquals(moved(grid, dims, periods, direction, -disp), shift.rank_source);
                    }
                }
            }
            MPI.Finalize();
            System.out.println("done");
        }

        /** Returns the rank that many steps away, by the definition. */
        private static int moved(Cartcomm grid, int[] dims, boolean[] periods, int direction, int disp) {
            int[] at = grid.Coords(grid.Rank());
            at[direction] += disp;
            if (periods[direction]) {
                at[direction] = Math.floorMod(at[direction], dims[direction]);
            }
            boolean isInside = at[direction] >= 0 && at[direction] < dims[direction];
            return isInside ? at[0] * dims[1] + at[1] : MPI.PROC_NULL;
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"THREADS", "SHM"})
    void shouldMoveByAnyNumberOfSteps(World world) throws Exception {
        assertEquals(Collections.nCopies(RANKS, "done"), world.run(RANKS, Shifts.class));
    }
}
