package heat;

import java.util.Arrays;
import java.util.Locale;
import mpi.Cartcomm;
import mpi.Datatype;
import mpi.MPI;
import mpi.MPIException;
import mpi.Request;
import mpi.ShiftParms;

/**
 * Ranks in a Cartesian grid compute how heat spreads in a plate. Each has a rectangle of it, and neighbours
 * exchange rows and columns before each step. The first rank collects the rectangles, and compares them with
 * the solution that it computes alone.
 */
public final class Heat {
    private static final int ROWS = 60;
    private static final int COLUMNS = 80;
    private static final int STEPS = 500;
    private static final int TAG = 1;

    /** The ranks. */
    private final Cartcomm grid;
    /** Number of ranks in each direction. */
    private final int[] dims;
    /** The rectangle of this rank. */
    private final Plate own;
    private final Datatype row;
    private final Datatype column;
    private final ShiftParms vertical;
    private final ShiftParms horizontal;

    private Heat(Cartcomm grid) throws MPIException {
        this.grid = grid;
        dims = grid.Get().dims;
        int[] me = grid.Coords(grid.Rank());
        own = new Plate(first(0, me), first(0, me, 1) - first(0, me), first(1, me, 1) - first(1, me));
        row = Datatype.Contiguous(own.columns, MPI.DOUBLE);
        row.Commit();
        column = Datatype.Vector(own.rows, 1, own.width, MPI.DOUBLE);
        column.Commit();
        vertical = grid.Shift(0, 1);
        horizontal = grid.Shift(1, 1);
    }

    private int first(int direction, int[] coords) {
        return first(direction, coords, 0);
    }

    /** Returns the first row (direction 0) or column of the rectangle that is so far beyond one of a rank. */
    private int first(int direction, int[] coords, int beyond) {
        int cells = direction == 0 ? ROWS : COLUMNS;
        return (coords[direction] + beyond) * cells / dims[direction];
    }

    /**
     * Runs one rank.
     *
     * @param args arguments of the program
     * @throws MPIException if a call fails
     */
    public static void main(String[] args) throws MPIException {
        MPI.Init(args);
        int[] dims = new int[2];
        Cartcomm.Dims_create(MPI.COMM_WORLD.Size(), dims);
        if (dims[0] > ROWS || dims[1] > COLUMNS) {
            System.err.println("Heat needs a row and a column for each rank: not " + dims[0] + " x " + dims[1] + " ranks");
            MPI.COMM_WORLD.Abort(1);
        }
        Cartcomm grid = MPI.COMM_WORLD.Create_cart(dims, new boolean[2], false);
        Heat heat = new Heat(grid);
        for (int step = 0; step < STEPS; step++) {
            heat.exchange();
            heat.own.step();
        }
        heat.collect();
        MPI.Finalize();
    }

    /** Sends the outermost rows and columns to the neighbours, and receives theirs into the border. */
    private void exchange() throws MPIException {
        double[] cells = own.cells();
        int bottom = own.rows - 1;
        int right = own.columns - 1;
        // At an edge of the plate the neighbour is MPI.PROC_NULL, and the border stays.
        grid.Sendrecv(cells, own.at(0, 0), 1, row, vertical.rank_source, TAG,
                cells, own.at(bottom + 1, 0), 1, row, vertical.rank_dest, TAG);
        grid.Sendrecv(cells, own.at(bottom, 0), 1, row, vertical.rank_dest, TAG,
                cells, own.at(-1, 0), 1, row, vertical.rank_source, TAG);
        grid.Sendrecv(cells, own.at(0, 0), 1, column, horizontal.rank_source, TAG,
                cells, own.at(0, right + 1), 1, column, horizontal.rank_dest, TAG);
        grid.Sendrecv(cells, own.at(0, right), 1, column, horizontal.rank_dest, TAG,
                cells, own.at(0, -1), 1, column, horizontal.rank_source, TAG);
    }

    /** Sends the rectangle to the first rank, which receives all and checks them. */
    private void collect() throws MPIException {
        Datatype rectangle = Datatype.Vector(own.rows, own.columns, own.width, MPI.DOUBLE);
        Request sent = grid.Isend(own.cells(), own.at(0, 0), 1, rectangle, 0, TAG);
        if (grid.Rank() == 0) {
            Plate whole = new Plate(0, ROWS, COLUMNS);
            for (int rank = 0; rank < grid.Size(); rank++) {
                int[] at = grid.Coords(rank);
                int top = first(0, at);
                int left = first(1, at);
                Datatype part = Datatype.Vector(first(0, at, 1) - top, first(1, at, 1) - left, whole.width, MPI.DOUBLE);
                grid.Recv(whole.cells(), whole.at(top, left), 1, part, rank, TAG);
            }
            check(whole);
        }
        sent.Wait();
    }

    private void check(Plate whole) {
        Plate alone = new Plate(0, ROWS, COLUMNS);
        for (int step = 0; step < STEPS; step++) {
            alone.step();
        }
        boolean isSame = Arrays.equals(alone.cells(), whole.cells());
        System.out.printf(Locale.ROOT, "%d x %d ranks, %d x %d cells, %d steps: heat %.6f, %s%n", dims[0], dims[1], ROWS,
                COLUMNS, STEPS, whole.heat(), isSame ? "as computed by one rank" : "NOT as computed by one rank");
        if (!isSame) {
            grid.Abort(1);
        }
    }
}
