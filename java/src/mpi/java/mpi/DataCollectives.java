package mpi;

import java.util.Arrays;
import mpjdev.core.Native;

/**
 * Collective calls with data (MPI-1.1, chapter 4).
 *
 * <p>All ranks of the communicator make the same calls in the same order. The arrays of a call may be the
 * same: a call captures what it sends first. A call that fails stores nothing.
 */
abstract class DataCollectives extends Comm {
    DataCollectives(long handle, Attributes attributes) {
        super(handle, attributes);
    }

    /**
     * Sends items of the root to all ranks (MPI-1.1, section 4.4). Collective; blocks.
     *
     * @param buf array of the datatype's base type; null if {@code count} is 0
     * @param offset index of the first element
     * @param count number of items
     * @param datatype datatype of the items. Other ranks may pass another one with as many elements of the
     *     same base type
     * @param root rank that sends
     * @throws MPIException if an argument is invalid, a block that arrives is longer than its place, a rank
     *     has failed, or an operation of the communicator was abandoned
     */
    public void Bcast(Object buf, int offset, int count, Datatype datatype, int root) throws MPIException {
        Collectives.bcast(this, buf, offset, count, datatype, root);
    }

    /**
     * Sends a block of each rank to the root (MPI-1.1, section 4.5). Collective; blocks.
     *
     * <p>The block of rank i lands {@code i * recvcount} extents behind the first element. Only the root uses
     * the arguments of the receive.
     *
     * @param sendbuf array of the items to send; null if there are none
     * @param sendoffset index of the first element
     * @param sendcount items of a block
     * @param sendtype datatype of the items
     * @param recvbuf array for the received items; null if there are none, at the root
     * @param recvoffset index of the first element, at the root
     * @param recvcount items of a block, at the root
     * @param recvtype datatype of the items, at the root
     * @param root rank that receives
     * @throws MPIException if an argument is invalid, a block that arrives is longer than its place, a rank
     *     has failed, or an operation of the communicator was abandoned
     */
    public void Gather(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int recvoffset, int recvcount, Datatype recvtype, int root)
            throws MPIException {
        try {
            boolean isRoot = Collectives.isRoot(this, root);
            Blocks sent = Blocks.equal(sendbuf, sendoffset, sendcount, sendtype);
            Blocks received = isRoot ? Blocks.equal(recvbuf, recvoffset, recvcount, recvtype)
                    : Blocks.none();
            Collectives.move(this, Native.GATHER, root, sent, received);
        } catch (RuntimeException e) {
            throw raised(Failures.ofCollective(e, sendtype, sendcount));
        }
    }

    /**
     * Sends a block of each rank to the root, each of its own length (MPI-1.1, section 4.5). Collective;
     * blocks.
     *
     * <p>Only the root uses the arguments of the receive.
     *
     * @param sendbuf array of the items to send; null if there are none
     * @param sendoffset index of the first element
     * @param sendcount items of a block
     * @param sendtype datatype of the items
     * @param recvbuf array for the received items; null if there are none, at the root
     * @param recvoffset index of the first element, at the root
     * @param recvcounts items of the block of each rank; longer arrays are legal, at the root
     * @param displs distance of each block from the first element in extents, at the root
     * @param recvtype datatype of the items, at the root
     * @param root rank that receives
     * @throws MPIException if an argument is invalid, a block that arrives is longer than its place, a rank
     *     has failed, or an operation of the communicator was abandoned
     */
    public void Gatherv(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int recvoffset, int[] recvcounts, int[] displs, Datatype recvtype, int root)
            throws MPIException {
        try {
            boolean isRoot = Collectives.isRoot(this, root);
            Blocks sent = Blocks.equal(sendbuf, sendoffset, sendcount, sendtype);
            Blocks received = isRoot ? Blocks.listed(recvbuf, recvoffset, recvcounts, displs, recvtype, Size())
                    : Blocks.none();
            Collectives.move(this, Native.GATHERV, root, sent, received);
        } catch (RuntimeException e) {
            throw raised(Failures.ofCollective(e, sendtype, sendcount));
        }
    }

    /**
     * Sends a block of the root to each rank (MPI-1.1, section 4.6). Collective; blocks.
     *
     * <p>The block for rank i begins {@code i * sendcount} extents behind the first element. Only the root
     * uses the arguments of the send.
     *
     * @param sendbuf array of the items to send; null if there are none, at the root
     * @param sendoffset index of the first element, at the root
     * @param sendcount items of a block, at the root
     * @param sendtype datatype of the items, at the root
     * @param recvbuf array for the received items; null if there are none
     * @param recvoffset index of the first element
     * @param recvcount items of a block
     * @param recvtype datatype of the items
     * @param root rank that sends
     * @throws MPIException if an argument is invalid, a block that arrives is longer than its place, a rank
     *     has failed, or an operation of the communicator was abandoned
     */
    public void Scatter(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int recvoffset, int recvcount, Datatype recvtype, int root)
            throws MPIException {
        try {
            boolean isRoot = Collectives.isRoot(this, root);
            Blocks sent = isRoot ? Blocks.equal(sendbuf, sendoffset, sendcount, sendtype)
                    : Blocks.none();
            Blocks received = Blocks.equal(recvbuf, recvoffset, recvcount, recvtype);
            Collectives.move(this, Native.SCATTER, root, sent, received);
        } catch (RuntimeException e) {
            throw raised(Failures.ofCollective(e, recvtype, recvcount));
        }
    }

    /**
     * Sends a block of the root to each rank, each of its own length (MPI-1.1, section 4.6). Collective;
     * blocks.
     *
     * <p>Only the root uses the arguments of the send.
     *
     * @param sendbuf array of the items to send; null if there are none, at the root
     * @param sendoffset index of the first element, at the root
     * @param sendcounts items of the block for each rank; longer arrays are legal, at the root
     * @param displs distance of each block from the first element in extents, at the root
     * @param sendtype datatype of the items, at the root
     * @param recvbuf array for the received items; null if there are none
     * @param recvoffset index of the first element
     * @param recvcount items of a block
     * @param recvtype datatype of the items
     * @param root rank that sends
     * @throws MPIException if an argument is invalid, a block that arrives is longer than its place, a rank
     *     has failed, or an operation of the communicator was abandoned
     */
    public void Scatterv(Object sendbuf, int sendoffset, int[] sendcounts, int[] displs, Datatype sendtype,
            Object recvbuf, int recvoffset, int recvcount, Datatype recvtype, int root)
            throws MPIException {
        try {
            boolean isRoot = Collectives.isRoot(this, root);
            Blocks sent = isRoot ? Blocks.listed(sendbuf, sendoffset, sendcounts, displs, sendtype, Size())
                    : Blocks.none();
            Blocks received = Blocks.equal(recvbuf, recvoffset, recvcount, recvtype);
            Collectives.move(this, Native.SCATTERV, root, sent, received);
        } catch (RuntimeException e) {
            throw raised(Failures.ofCollective(e, recvtype, recvcount));
        }
    }

    /**
     * Sends a block of each rank to all ranks (MPI-1.1, section 4.7). Collective; blocks.
     *
     * @param sendbuf array of the items to send; null if there are none
     * @param sendoffset index of the first element
     * @param sendcount items of a block
     * @param sendtype datatype of the items
     * @param recvbuf array for the received items; null if there are none
     * @param recvoffset index of the first element
     * @param recvcount items of a block
     * @param recvtype datatype of the items
     * @throws MPIException if an argument is invalid, a block that arrives is longer than its place, a rank
     *     has failed, or an operation of the communicator was abandoned
     */
    public void Allgather(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int recvoffset, int recvcount, Datatype recvtype)
            throws MPIException {
        try {
            Blocks sent = Blocks.equal(sendbuf, sendoffset, sendcount, sendtype);
            Blocks received = Blocks.equal(recvbuf, recvoffset, recvcount, recvtype);
            Collectives.move(this, Native.ALLGATHER, 0, sent, received);
        } catch (RuntimeException e) {
            throw raised(Failures.ofCollective(e, sendtype, sendcount));
        }
    }

    /**
     * Sends a block of each rank to all ranks, each of its own length (MPI-1.1, section 4.7). Collective;
     * blocks.
     *
     * @param sendbuf array of the items to send; null if there are none
     * @param sendoffset index of the first element
     * @param sendcount items of a block
     * @param sendtype datatype of the items
     * @param recvbuf array for the received items; null if there are none
     * @param recvoffset index of the first element
     * @param recvcounts items of the block of each rank; longer arrays are legal
     * @param displs distance of each block from the first element in extents
     * @param recvtype datatype of the items
     * @throws MPIException if an argument is invalid, a block that arrives is longer than its place, a rank
     *     has failed, or an operation of the communicator was abandoned
     */
    public void Allgatherv(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int recvoffset, int[] recvcounts, int[] displs, Datatype recvtype)
            throws MPIException {
        try {
            Blocks sent = Blocks.equal(sendbuf, sendoffset, sendcount, sendtype);
            Blocks received = Blocks.listed(recvbuf, recvoffset, recvcounts, displs, recvtype, Size());
            Collectives.move(this, Native.ALLGATHERV, 0, sent, received);
        } catch (RuntimeException e) {
            throw raised(Failures.ofCollective(e, sendtype, sendcount));
        }
    }

    /**
     * Sends a block of each rank to each rank (MPI-1.1, section 4.8). Collective; blocks.
     *
     * @param sendbuf array of the items to send; null if there are none
     * @param sendoffset index of the first element
     * @param sendcount items of a block
     * @param sendtype datatype of the items
     * @param recvbuf array for the received items; null if there are none
     * @param recvoffset index of the first element
     * @param recvcount items of a block
     * @param recvtype datatype of the items
     * @throws MPIException if an argument is invalid, a block that arrives is longer than its place, a rank
     *     has failed, or an operation of the communicator was abandoned
     */
    public void Alltoall(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int recvoffset, int recvcount, Datatype recvtype)
            throws MPIException {
        try {
            Blocks sent = Blocks.equal(sendbuf, sendoffset, sendcount, sendtype);
            Blocks received = Blocks.equal(recvbuf, recvoffset, recvcount, recvtype);
            Collectives.move(this, Native.ALLTOALL, 0, sent, received);
        } catch (RuntimeException e) {
            throw raised(Failures.ofCollective(e, sendtype, sendcount));
        }
    }

    /**
     * Sends a block of each rank to each rank, each of its own length (MPI-1.1, section 4.8). Collective;
     * blocks.
     *
     * @param sendbuf array of the items to send; null if there are none
     * @param sendoffset index of the first element
     * @param sendcounts items of the block for each rank; longer arrays are legal
     * @param sdispls distance of each block to send from the first element in extents
     * @param sendtype datatype of the items
     * @param recvbuf array for the received items; null if there are none
     * @param recvoffset index of the first element
     * @param recvcounts items of the block of each rank; longer arrays are legal
     * @param rdispls distance of each received block from the first element in extents
     * @param recvtype datatype of the items
     * @throws MPIException if an argument is invalid, a block that arrives is longer than its place, a rank
     *     has failed, or an operation of the communicator was abandoned
     */
    public void Alltoallv(Object sendbuf, int sendoffset, int[] sendcounts, int[] sdispls, Datatype sendtype,
            Object recvbuf, int recvoffset, int[] recvcounts, int[] rdispls, Datatype recvtype)
            throws MPIException {
        try {
            Blocks sent = Blocks.listed(sendbuf, sendoffset, sendcounts, sdispls, sendtype, Size());
            Blocks received = Blocks.listed(recvbuf, recvoffset, recvcounts, rdispls, recvtype, Size());
            Collectives.move(this, Native.ALLTOALLV, 0, sent, received);
        } catch (RuntimeException e) {
            throw raised(Failures.ofCollective(e, sendtype, 0));
        }
    }

    /**
     * Combines a vector of each rank; the result is stored at the root (MPI-1.1, section 4.9.1). Collective;
     * blocks.
     *
     * @param sendbuf array of the vector of this rank; null if {@code count} is 0
     * @param sendoffset index of its first element
     * @param recvbuf array for the result; it may be the other array, at the root
     * @param recvoffset index of its first element, at the root
     * @param count items of a vector
     * @param datatype datatype of the items
     * @param op operation
     * @param root rank that receives
     * @throws MPIException if an argument is invalid, a block that arrives is longer than its place, a rank
     *     has failed, or an operation of the communicator was abandoned, the operation does not combine such
     *     elements, or has failed at a rank whose vector is needed
     */
    public void Reduce(Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype datatype, Op op,
            int root) throws MPIException {
        Reductions.reduce(this, Native.REDUCE, root, sendbuf, sendoffset, recvbuf, recvoffset, count, Reductions.NO_COUNTS, datatype, op);
    }

    /**
     * Combines a vector of each rank; the result is stored at all ranks (MPI-1.1, section 4.9.5). Collective;
     * blocks.
     *
     * <p>All ranks get the same bits.
     *
     * @param sendbuf array of the vector of this rank; null if {@code count} is 0
     * @param sendoffset index of its first element
     * @param recvbuf array for the result; it may be the other array
     * @param recvoffset index of its first element
     * @param count items of a vector
     * @param datatype datatype of the items
     * @param op operation
     * @throws MPIException if an argument is invalid, a block that arrives is longer than its place, a rank
     *     has failed, or an operation of the communicator was abandoned, the operation does not combine such
     *     elements, or has failed at a rank whose vector is needed
     */
    public void Allreduce(Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype datatype, Op op)
            throws MPIException {
        Reductions.reduce(this, Native.ALLREDUCE, 0, sendbuf, sendoffset, recvbuf, recvoffset, count, Reductions.NO_COUNTS, datatype, op);
    }

    /**
     * Combines a vector of each rank; each rank gets a part of the result (MPI-1.1, section 4.10).
     * Collective; blocks.
     *
     * @param sendbuf array of the vector of this rank; null if {@code count} is 0
     * @param sendoffset index of its first element
     * @param recvbuf array for the result; it may be the other array
     * @param recvoffset index of its first element
     * @param recvcounts items of the part of each rank, in rank order
     * @param datatype datatype of the items
     * @param op operation
     * @throws MPIException if an argument is invalid, a block that arrives is longer than its place, a rank
     *     has failed, or an operation of the communicator was abandoned, the operation does not combine such
     *     elements, or has failed at a rank whose vector is needed
     */
    public void Reduce_scatter(Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int[] recvcounts,
            Datatype datatype, Op op) throws MPIException {
        int[] counts;
        int sum;
        try {
            int[] given = Failures.present(recvcounts, "the array of counts");
            int size = ranks();
            if (given.length < size) {
                String text = "the array of counts has " + given.length + " elements for " + size + " ranks";
                throw new MPIException(MPI.ERR_ARG, text, null);
            }
            counts = Arrays.copyOf(given, size);
            sum = Reductions.sum(counts);
        } catch (RuntimeException e) {
            throw raised(Failures.ofReduction(e, datatype, 0));
        }
        Reductions.reduce(this, Native.REDUCE_SCATTER, 0, sendbuf, sendoffset, recvbuf, recvoffset, sum, counts, datatype, op);
    }

    /**
     * Combines the vectors of all ranks up to this one, which is included (MPI-1.1, section 4.11).
     * Collective; blocks.
     *
     * @param sendbuf array of the vector of this rank; null if {@code count} is 0
     * @param sendoffset index of its first element
     * @param recvbuf array for the result; it may be the other array
     * @param recvoffset index of its first element
     * @param count items of a vector
     * @param datatype datatype of the items
     * @param op operation
     * @throws MPIException if an argument is invalid, a block that arrives is longer than its place, a rank
     *     has failed, or an operation of the communicator was abandoned, the operation does not combine such
     *     elements, or has failed at a rank whose vector is needed
     */
    public void Scan(Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype datatype, Op op)
            throws MPIException {
        Reductions.reduce(this, Native.SCAN, 0, sendbuf, sendoffset, recvbuf, recvoffset, count, Reductions.NO_COUNTS, datatype, op);
    }
}
