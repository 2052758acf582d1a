package mpi;

/** The arguments of a Cartesian topology, and the position of this rank in it. */
public class CartParms {
    /** Number of ranks in each dimension. */
    public int[] dims;
    /** Whether each dimension is periodic. */
    public boolean[] periods;
    /** Coordinates of this rank. */
    public int[] coords;

    /**
     * Makes an object of these arrays.
     *
     * @param dims number of ranks in each dimension
     * @param periods whether each dimension is periodic
     * @param coords coordinates of a rank
     */
    public CartParms(int[] dims, boolean[] periods, int[] coords) {
        this.dims = dims;
        this.periods = periods;
        this.coords = coords;
    }
}
