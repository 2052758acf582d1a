package mpi;

import java.util.Arrays;

/** A communicator whose ranks are the nodes of a graph (MPI-1.1, section 6.5). */
public final class Graphcomm extends Intracomm {
    private final int[] index;
    private final int[] edges;

    Graphcomm(long handle, Attributes attributes, int[] index, int[] edges) {
        super(handle, attributes);
        this.index = index;
        this.edges = edges;
    }

    @Override
    Intracomm made(long handle, Attributes copied) {
        return new Graphcomm(handle, copied, index, edges);
    }

    @Override
    public int Topo_test() {
        return MPI.GRAPH;
    }

    /**
     * Returns the graph.
     *
     * @return copies of its arrays
     */
    public GraphParms Get() {
        return new GraphParms(index.clone(), edges.clone());
    }

    /**
     * Returns the neighbours of a rank.
     *
     * @param rank a rank of this communicator
     * @return the other ends of its edges, in the order of {@code Create_graph}
     * @throws MPIException if there is no such rank
     */
    public int[] Neighbours(int rank) throws MPIException {
        if (rank < 0 || rank >= index.length) {
            String text = "rank " + rank + " is not in a topology of " + index.length + " nodes";
            throw raised(new MPIException(MPI.ERR_RANK, text, null));
        }
        return Arrays.copyOfRange(edges, rank == 0 ? 0 : index[rank - 1], index[rank]);
    }

    /**
     * Returns the neighbours of a rank: {@link #Neighbours} in the spelling of MPI.
     *
     * @param rank a rank of this communicator
     * @return the other ends of its edges
     * @throws MPIException as {@link #Neighbours}
     */
    public int[] Neighbors(int rank) throws MPIException {
        return Neighbours(rank);
    }

    /**
     * Returns the rank that this process would have in a graph.
     *
     * @param index as for {@link Intracomm#Create_graph}
     * @param edges as for {@link Intracomm#Create_graph}
     * @return the rank in this communicator, or {@link MPI#UNDEFINED} if the graph has fewer nodes
     * @throws MPIException if the graph is invalid or larger than this communicator
     */
    public int Map(int[] index, int[] edges) throws MPIException {
        int nodes = graphNodes(index, edges);
        int me = Rank();
        return me < nodes ? me : MPI.UNDEFINED;
    }
}
