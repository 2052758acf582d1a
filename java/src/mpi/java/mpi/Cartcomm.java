package mpi;

import mpjdev.core.Native;

/** A communicator whose ranks are arranged in a Cartesian grid, in row-major order (MPI-1.1, section 6.5). */
public final class Cartcomm extends Intracomm {
    private final int[] dims;
    /** 1 for a periodic dimension, 0 for others. */
    private final int[] periods;

    Cartcomm(long handle, Attributes attributes, int[] dims, int[] periods) {
        super(handle, attributes);
        this.dims = dims;
        this.periods = periods;
    }

    @Override
    Intracomm made(long handle, Attributes copied) {
        return new Cartcomm(handle, copied, dims, periods);
    }

    /**
     * Chooses balanced numbers of ranks for the dimensions of a grid.
     *
     * @param nnodes number of ranks
     * @param dims in: a number that stays, or 0; out: numbers that multiply to {@code nnodes}. The ones
     *     chosen do not increase, and of all possible ones they differ least
     * @throws MPIException if a number is negative, or the numbers that stay do not divide {@code nnodes}
     */
    public static void Dims_create(int nnodes, int[] dims) throws MPIException {
        int[] given = MPI.present(dims, "the array of dimensions");
        try {
            Native.dimsCreate(nnodes, given, given.length);
        } catch (IllegalArgumentException e) {
            throw MPI.raised(Failures.of(e, MPI.ERR_DIMS));
        }
    }

    @Override
    public int Topo_test() {
        return MPI.CART;
    }

    /**
     * Returns the grid and the coordinates of this rank.
     *
     * @return copies
     * @throws MPIException if the communicator was freed
     */
    public CartParms Get() throws MPIException {
        boolean[] isPeriodic = new boolean[periods.length];
        for (int k = 0; k < isPeriodic.length; k++) {
            isPeriodic[k] = periods[k] != 0;
        }
        return new CartParms(dims.clone(), isPeriodic, Coords(Rank()));
    }

    /**
     * Returns the rank with these coordinates.
     *
     * @param coords a coordinate for each dimension. Those of periodic dimensions wrap
     * @return the rank
     * @throws MPIException if another dimension has no such coordinate, or the array has another length
     */
    public int Rank(int[] coords) throws MPIException {
        int[] wanted = present(coords, "the array of coordinates");
        try {
            return Native.cartRank(dims, dims.length, periods, periods.length, wanted, wanted.length);
        } catch (IllegalArgumentException e) {
            throw raised(Failures.of(e, MPI.ERR_ARG));
        }
    }

    /**
     * Returns the coordinates of a rank.
     *
     * @param rank a rank of this communicator
     * @return a coordinate for each dimension
     * @throws MPIException if there is no such rank
     */
    public int[] Coords(int rank) throws MPIException {
        int[] coords = new int[dims.length];
        try {
            Native.cartCoords(dims, dims.length, periods, periods.length, rank, coords, coords.length);
        } catch (IllegalArgumentException e) {
            throw raised(Failures.of(e, MPI.ERR_RANK));
        }
        return coords;
    }

    /**
     * Returns the ranks for a shift of data along a dimension.
     *
     * @param direction the dimension, from 0
     * @param disp number of steps to the destination, also negative
     * @return the ranks {@code disp} steps before this one and behind it; {@link MPI#PROC_NULL} for one
     *     beyond the edge of a dimension that is not periodic
     * @throws MPIException if there is no such dimension, or the communicator was freed
     */
    public ShiftParms Shift(int direction, int disp) throws MPIException {
        int me = Rank();
        try {
            long both = Native.cartShift(dims, dims.length, periods, periods.length, me, direction, disp);
            return new ShiftParms((int) (both >> Integer.SIZE), (int) both);
        } catch (IllegalArgumentException e) {
            throw raised(Failures.of(e, MPI.ERR_DIMS));
        }
    }

    /**
     * Divides this communicator into grids of fewer dimensions. Collective; blocks.
     *
     * @param remain_dims whether each dimension remains
     * @return the grid of the ranks whose coordinates in the other dimensions equal those of this one
     * @throws MPIException if the array has another length, a rank has failed, or the communicator was freed
     */
    public Cartcomm Sub(boolean[] remain_dims) throws MPIException {
        int[] remains = numbers(remain_dims, "the array of dimensions");
        int me = Rank();
        long part;
        try {
            part = Native.cartPart(dims, dims.length, periods, periods.length, me, remains, remains.length);
        } catch (IllegalArgumentException e) {
            throw raised(Failures.of(e, MPI.ERR_DIMS));
        }
        long handle = split((int) (part >> Integer.SIZE), (int) part);
        return inherit(new Cartcomm(handle, new Attributes(), remaining(dims, remains), remaining(periods, remains)));
    }

    private static int[] remaining(int[] values, int[] remains) {
        int[] kept = new int[values.length];
        int count = 0;
        for (int k = 0; k < values.length; k++) {
            if (remains[k] != 0) {
                kept[count++] = values[k];
            }
        }
        return java.util.Arrays.copyOf(kept, count);
    }

    /**
     * Returns the rank that this process would have in a grid.
     *
     * @param dims number of ranks in each dimension
     * @param periods whether each dimension is periodic
     * @return the rank in this communicator, or {@link MPI#UNDEFINED} if the grid has fewer ranks
     * @throws MPIException if the grid is invalid or larger than this communicator
     */
    public int Map(int[] dims, boolean[] periods) throws MPIException {
        int nodes = cartNodes(dims, numbers(periods, "the array of periods"));
        int me = Rank();
        return me < nodes ? me : MPI.UNDEFINED;
    }
}
