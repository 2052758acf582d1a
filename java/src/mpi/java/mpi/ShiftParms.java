package mpi;

/** The two ranks of a shift. */
public class ShiftParms {
    /** Rank to receive from, or {@link MPI#PROC_NULL}. */
    public int rank_source;
    /** Rank to send to, or {@link MPI#PROC_NULL}. */
    public int rank_dest;

    /**
     * Makes an object of two ranks.
     *
     * @param source rank to receive from
     * @param dest rank to send to
     */
    public ShiftParms(int source, int dest) {
        rank_source = source;
        rank_dest = dest;
    }
}
