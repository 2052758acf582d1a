package mpi;

/** The arguments of a graph topology. */
public class GraphParms {
    /** For each rank the number of edges of all ranks up to it. */
    public int[] index;
    /** Ranks at the other ends of the edges. */
    public int[] edges;

    /**
     * Makes an object of these arrays.
     *
     * @param index for each rank the number of edges of all ranks up to it
     * @param edges ranks at the other ends of the edges
     */
    public GraphParms(int[] index, int[] edges) {
        this.index = index;
        this.edges = edges;
    }
}
