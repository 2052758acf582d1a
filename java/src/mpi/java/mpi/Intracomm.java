package mpi;

import java.lang.ref.Reference;
import mpjdev.core.Native;
import mpjdev.core.Waits;

/** A communicator of one group. */
public class Intracomm extends DataCollectives {
    Intracomm(long handle) {
        this(handle, new Attributes());
    }

    Intracomm(long handle, Attributes attributes) {
        super(handle, attributes);
    }

    @Override
    Intracomm made(long handle, Attributes copied) {
        return new Intracomm(handle, copied);
    }

    /**
     * Divides this communicator (MPI-1.1, section 5.4.2). Collective; blocks.
     *
     * @param color ranks with the same color make a communicator; {@link MPI#UNDEFINED} for none
     * @param key order of the ranks there. Ranks with equal keys keep their order
     * @return the communicator of this rank, or null
     * @throws MPIException if the color is another negative number, a rank has failed, or the communicator
     *     was freed
     */
    public Intracomm Split(int color, int key) throws MPIException {
        if (color < 0 && color != MPI.UNDEFINED) {
            throw raised(new MPIException(MPI.ERR_ARG, "the color " + color + " is negative", null));
        }
        long handle = split(color, key);
        return handle == 0 ? null : inherit(new Intracomm(handle));
    }

    final long split(int color, int key) {
        try {
            return Waits.complete(Native.startSplit(handle(), color, key));
        } catch (RuntimeException e) {
            throw raised(Failures.of(e));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Makes a communicator of a group (MPI-1.1, section 5.4.2). Collective over this communicator; blocks.
     *
     * <p>Groups without a common member make one communicator each in one call, as in MPI-2.2: each member
     * passes its own group. A rank in none of them passes any of them, or {@link MPI#GROUP_EMPTY}.
     *
     * @param group members of this communicator; all members of a group pass this group
     * @return the communicator, or null if this rank is no member of the group
     * @throws MPIException at all ranks if a member of a group passed another group ({@link MPI#ERR_GROUP});
     *     at this one if the group is null or has other members, a rank has failed, or the communicator was
     *     freed
     */
    public Intracomm Create(Group group) throws MPIException {
        if (group == null) {
            throw raised(new MPIException(MPI.ERR_GROUP, "the group is null", null));
        }
        int[] ranks = new int[group.Size()];
        for (int rank = 0; rank < ranks.length; rank++) {
            ranks[rank] = rank;
        }
        int[] ids = Group.Translate_ranks(group, ranks, Group());
        for (int rank = 0; rank < ids.length; rank++) {
            if (ids[rank] == MPI.UNDEFINED) {
                String text = "rank " + rank + " of the group is no member of the communicator";
                throw raised(new MPIException(MPI.ERR_GROUP, text, null));
            }
        }
        long handle = create(ids);
        return handle == 0 ? null : inherit(new Intracomm(handle));
    }

    /**
     * Makes a communicator of a group: {@link #Create} under its name in the code of mpiJava.
     *
     * @param group as for {@link #Create}
     * @return as {@link #Create}
     * @throws MPIException as {@link #Create}
     */
    public Intracomm Creat(Group group) throws MPIException {
        return Create(group);
    }

    /** Makes a communicator of these ranks; 0 if this rank is none of them. */
    private long create(int[] ids) {
        try {
            return Waits.complete(Native.startCreate(handle(), ids, ids.length));
        } catch (RuntimeException e) {
            throw raised(Failures.of(e));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private long createOfFirst(int ranks) {
        if (ranks == 0) {
            return 0;
        }
        int[] ids = new int[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            ids[rank] = rank;
        }
        return create(ids);
    }

    /**
     * Arranges ranks in a Cartesian grid, in row-major order (MPI-1.1, section 6.5.1). Collective; blocks.
     *
     * @param dims number of ranks in each dimension
     * @param periods whether each dimension is periodic
     * @param reorder ignored: ranks keep their order
     * @return the grid, or null at ranks beyond it
     * @throws MPIException if a number is not positive, the arrays have different lengths or are null, the
     *     grid has more nodes than this communicator ranks, or a rank has failed
     */
    public Cartcomm Create_cart(int[] dims, boolean[] periods, boolean reorder) throws MPIException {
        int[] own = present(dims, "the array of dimensions").clone();
        int[] wraps = numbers(periods, "the array of periods");
        long handle = createOfFirst(cartNodes(own, wraps));
        return handle == 0 ? null : inherit(new Cartcomm(handle, new Attributes(), own, wraps));
    }

    /** Returns 1 for each true and 0 for each false. */
    final int[] numbers(boolean[] values, String what) {
        int[] numbers = new int[present(values, what).length];
        for (int k = 0; k < numbers.length; k++) {
            numbers[k] = values[k] ? 1 : 0;
        }
        return numbers;
    }

    /** Checks a grid on this communicator; returns the number of its nodes. */
    final int cartNodes(int[] dims, int[] periods) {
        int[] checked = present(dims, "the array of dimensions");
        int size = Size();
        try {
            return Native.cartCheck(size, checked, checked.length, periods, periods.length);
        } catch (IllegalArgumentException e) {
            throw raised(Failures.of(e, MPI.ERR_TOPOLOGY));
        }
    }

    /**
     * Arranges ranks as the nodes of a graph (MPI-1.1, section 6.5.3). Collective; blocks.
     *
     * @param index for each node the number of edges of all nodes up to it
     * @param edges nodes at the other ends of the edges
     * @param reorder ignored: ranks keep their order
     * @return the graph, or null at ranks beyond it
     * @throws MPIException if the index array decreases or does not end with the number of edges, an edge
     *     leads to no node, an array is null, the graph has more nodes than this communicator ranks, or a
     *     rank has failed
     */
    public Graphcomm Create_graph(int[] index, int[] edges, boolean reorder) throws MPIException {
        int[] ownIndex = present(index, "the index array").clone();
        int[] ownEdges = present(edges, "the array of edges").clone();
        long handle = createOfFirst(graphNodes(ownIndex, ownEdges));
        return handle == 0 ? null : inherit(new Graphcomm(handle, new Attributes(), ownIndex, ownEdges));
    }

    /** Checks a graph on this communicator; returns the number of its nodes. */
    final int graphNodes(int[] index, int[] edges) {
        int[] nodes = present(index, "the index array");
        int[] ends = present(edges, "the array of edges");
        int size = Size();
        try {
            return Native.graphCheck(size, nodes, nodes.length, ends, ends.length);
        } catch (IllegalArgumentException e) {
            throw raised(Failures.of(e, MPI.ERR_TOPOLOGY));
        }
    }

    /**
     * Waits until all ranks have called it (MPI-1.1, section 4.3). Collective; blocks.
     *
     * @throws MPIException if a rank has failed, or the communicator was freed
     */
    public void Barrier() throws MPIException {
        barrier();
    }
}
