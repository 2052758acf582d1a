package mpjdev;

import mpjdev.core.Native;
import mpjdev.core.Types;

/**
 * The collective operations of a communicator that move or combine elements of arrays.
 *
 * <p>All ranks call the same method with the same count, root and operation, in the same order as their other
 * collective calls. The methods have an overload for each primitive type. Those for {@code byte} arrays
 * document all of them, and {@link #bcast(byte[], int, int, int)} what all have in common.
 */
abstract class ArrayCollectives extends PatchArrayMessages {
    ArrayCollectives() {}

    // ---- byte

    /**
     * Sends the elements {@code array[off]} to {@code array[off + count - 1]} of the root to the same place
     * at all other ranks (MPI_Bcast). Blocks until the array may be used; other ranks may still be in the
     * call. Messages between ranks do not meet those of collective calls.
     *
     * <p>An argument that is refused leaves everything as it was, and the rank has not taken part. The
     * exceptions of {@link Comm#barrier} end the call, too: a rank that fails or is interrupted ends it at
     * all ranks. Other errors leave the communicator usable, and some elements may be stored.
     *
     * @param array array to send from, or to receive into
     * @param off index of the first element
     * @param count number of elements
     * @param root rank that sends
     * @throws ArrayIndexOutOfBoundsException if elements are outside the array
     * @throws IllegalArgumentException if the count is negative
     * @throws BadArgumentException if the root is no rank, or a rank belongs to another implementation
     * @throws TruncationException if this rank passed a smaller count than the rank that it receives from
     * @throws CollectiveFailedException if another rank has failed whose elements this rank needs
     */
    public void bcast(byte[] array, int off, int count, int root) {
        ArrayCollectiveCalls.bcast(this, Types.BYTE, array, off, count, root);
    }

    /**
     * Collects elements of all ranks at the root, in the order of the ranks (MPI_Gather): those of rank r at
     * {@code to[toOff + r * count]}. Blocks as {@link #bcast(byte[], int, int, int)}. The arrays may be the
     * same.
     *
     * @param from array to send from
     * @param fromOff index of the first element to send
     * @param to array to receive into; only the root uses it
     * @param toOff index of the first element of rank 0
     * @param count number of elements of each rank
     * @param root rank that receives
     */
    public void gather(byte[] from, int fromOff, byte[] to, int toOff, int count, int root) {
        ArrayCollectiveCalls.move(this, Native.GATHER, root, Types.BYTE, from, fromOff, to, toOff, count);
    }

    /**
     * Collects elements of all ranks at each rank (MPI_Allgather): as
     * {@link #gather(byte[], int, byte[], int, int, int)} at all ranks.
     *
     * @param from array to send from
     * @param fromOff index of the first element to send
     * @param to array to receive into
     * @param toOff index of the first element of rank 0
     * @param count number of elements of each rank
     */
    public void allgather(byte[] from, int fromOff, byte[] to, int toOff, int count) {
        ArrayCollectiveCalls.move(this, Native.ALLGATHER, 0, Types.BYTE, from, fromOff, to, toOff, count);
    }

    /**
     * Distributes elements of the root (MPI_Scatter): rank r receives those at
     * {@code from[fromOff + r * count]}. Blocks as {@link #bcast(byte[], int, int, int)}. The arrays may be
     * the same.
     *
     * @param from array to send from; only the root uses it
     * @param fromOff index of the first element of rank 0
     * @param to array to receive into
     * @param toOff index of the first element to receive
     * @param count number of elements of each rank
     * @param root rank that sends
     */
    public void scatter(byte[] from, int fromOff, byte[] to, int toOff, int count, int root) {
        ArrayCollectiveCalls.move(this, Native.SCATTER, root, Types.BYTE, from, fromOff, to, toOff, count);
    }

    /**
     * Exchanges elements between all ranks (MPI_Alltoall): rank r receives those at
     * {@code from[fromOff + r * count]}, and puts those of rank s to {@code to[toOff + s * count]}. Blocks as
     * {@link #bcast(byte[], int, int, int)}. The arrays may be the same.
     *
     * @param from array to send from
     * @param fromOff index of the first element for rank 0
     * @param to array to receive into
     * @param toOff index of the first element of rank 0
     * @param count number of elements from each rank to each rank
     */
    public void alltoall(byte[] from, int fromOff, byte[] to, int toOff, int count) {
        ArrayCollectiveCalls.move(this, Native.ALLTOALL, 0, Types.BYTE, from, fromOff, to, toOff, count);
    }

    /**
     * Combines the vectors of all ranks element by element, and stores the result at the root (MPI_Reduce).
     * Blocks as {@link #bcast(byte[], int, int, int)}. The arrays may be the same.
     *
     * @param from array with the vector of this rank
     * @param fromOff index of the first element of the vector
     * @param to array to store the result into; only the root uses it
     * @param toOff index of the first element of the result
     * @param count number of elements of a vector
     * @param op operation
     * @param root rank that gets the result
     * @throws IllegalArgumentException if the operation does not apply to elements of this type
     */
    public void reduce(byte[] from, int fromOff, byte[] to, int toOff, int count, Op op, int root) {
        ArrayCollectiveCalls.reduce(this, Native.REDUCE, root, op, Types.BYTE, from, fromOff, to, toOff, count);
    }

    /**
     * Combines the vectors of all ranks, and stores the result at each rank (MPI_Allreduce): as
     * {@link #reduce(byte[], int, byte[], int, int, Op, int)} at all ranks, which get the same bits.
     *
     * @param from array with the vector of this rank
     * @param fromOff index of the first element of the vector
     * @param to array to store the result into
     * @param toOff index of the first element of the result
     * @param count number of elements of a vector
     * @param op operation
     */
    public void allreduce(byte[] from, int fromOff, byte[] to, int toOff, int count, Op op) {
        ArrayCollectiveCalls.reduce(this, Native.ALLREDUCE, 0, op, Types.BYTE, from, fromOff, to, toOff, count);
    }

    // ---- char

    /** Sends {@code char} elements of the root to all: see {@link #bcast(byte[], int, int, int)}. */
    public void bcast(char[] array, int off, int count, int root) {
        ArrayCollectiveCalls.bcast(this, Types.CHAR, array, off, count, root);
    }

    /** Collects {@code char} elements: see {@link #gather(byte[], int, byte[], int, int, int)}. */
    public void gather(char[] from, int fromOff, char[] to, int toOff, int count, int root) {
        ArrayCollectiveCalls.move(this, Native.GATHER, root, Types.CHAR, from, fromOff, to, toOff, count);
    }

    /** Collects {@code char} elements at all: see {@link #allgather(byte[], int, byte[], int, int)}. */
    public void allgather(char[] from, int fromOff, char[] to, int toOff, int count) {
        ArrayCollectiveCalls.move(this, Native.ALLGATHER, 0, Types.CHAR, from, fromOff, to, toOff, count);
    }

    /** Distributes {@code char} elements: see {@link #scatter(byte[], int, byte[], int, int, int)}. */
    public void scatter(char[] from, int fromOff, char[] to, int toOff, int count, int root) {
        ArrayCollectiveCalls.move(this, Native.SCATTER, root, Types.CHAR, from, fromOff, to, toOff, count);
    }

    /** Exchanges {@code char} elements: see {@link #alltoall(byte[], int, byte[], int, int)}. */
    public void alltoall(char[] from, int fromOff, char[] to, int toOff, int count) {
        ArrayCollectiveCalls.move(this, Native.ALLTOALL, 0, Types.CHAR, from, fromOff, to, toOff, count);
    }

    /** Combines {@code char} vectors: see {@link #reduce(byte[], int, byte[], int, int, Op, int)}. */
    public void reduce(char[] from, int fromOff, char[] to, int toOff, int count, Op op, int root) {
        ArrayCollectiveCalls.reduce(this, Native.REDUCE, root, op, Types.CHAR, from, fromOff, to, toOff, count);
    }

    /** Combines {@code char} vectors for all: see {@link #allreduce(byte[], int, byte[], int, int, Op)}. */
    public void allreduce(char[] from, int fromOff, char[] to, int toOff, int count, Op op) {
        ArrayCollectiveCalls.reduce(this, Native.ALLREDUCE, 0, op, Types.CHAR, from, fromOff, to, toOff, count);
    }

    // ---- short

    /** Sends {@code short} elements of the root to all: see {@link #bcast(byte[], int, int, int)}. */
    public void bcast(short[] array, int off, int count, int root) {
        ArrayCollectiveCalls.bcast(this, Types.SHORT, array, off, count, root);
    }

    /** Collects {@code short} elements: see {@link #gather(byte[], int, byte[], int, int, int)}. */
    public void gather(short[] from, int fromOff, short[] to, int toOff, int count, int root) {
        ArrayCollectiveCalls.move(this, Native.GATHER, root, Types.SHORT, from, fromOff, to, toOff, count);
    }

    /** Collects {@code short} elements at all: see {@link #allgather(byte[], int, byte[], int, int)}. */
    public void allgather(short[] from, int fromOff, short[] to, int toOff, int count) {
        ArrayCollectiveCalls.move(this, Native.ALLGATHER, 0, Types.SHORT, from, fromOff, to, toOff, count);
    }

    /** Distributes {@code short} elements: see {@link #scatter(byte[], int, byte[], int, int, int)}. */
    public void scatter(short[] from, int fromOff, short[] to, int toOff, int count, int root) {
        ArrayCollectiveCalls.move(this, Native.SCATTER, root, Types.SHORT, from, fromOff, to, toOff, count);
    }

    /** Exchanges {@code short} elements: see {@link #alltoall(byte[], int, byte[], int, int)}. */
    public void alltoall(short[] from, int fromOff, short[] to, int toOff, int count) {
        ArrayCollectiveCalls.move(this, Native.ALLTOALL, 0, Types.SHORT, from, fromOff, to, toOff, count);
    }

    /** Combines {@code short} vectors: see {@link #reduce(byte[], int, byte[], int, int, Op, int)}. */
    public void reduce(short[] from, int fromOff, short[] to, int toOff, int count, Op op, int root) {
        ArrayCollectiveCalls.reduce(this, Native.REDUCE, root, op, Types.SHORT, from, fromOff, to, toOff, count);
    }

    /** Combines {@code short} vectors for all: see {@link #allreduce(byte[], int, byte[], int, int, Op)}. */
    public void allreduce(short[] from, int fromOff, short[] to, int toOff, int count, Op op) {
        ArrayCollectiveCalls.reduce(this, Native.ALLREDUCE, 0, op, Types.SHORT, from, fromOff, to, toOff, count);
    }

    // ---- boolean

    /** Sends {@code boolean} elements of the root to all: see {@link #bcast(byte[], int, int, int)}. */
    public void bcast(boolean[] array, int off, int count, int root) {
        ArrayCollectiveCalls.bcast(this, Types.BOOLEAN, array, off, count, root);
    }

    /** Collects {@code boolean} elements: see {@link #gather(byte[], int, byte[], int, int, int)}. */
    public void gather(boolean[] from, int fromOff, boolean[] to, int toOff, int count, int root) {
        ArrayCollectiveCalls.move(this, Native.GATHER, root, Types.BOOLEAN, from, fromOff, to, toOff, count);
    }

    /** Collects {@code boolean} elements at all: see {@link #allgather(byte[], int, byte[], int, int)}. */
    public void allgather(boolean[] from, int fromOff, boolean[] to, int toOff, int count) {
        ArrayCollectiveCalls.move(this, Native.ALLGATHER, 0, Types.BOOLEAN, from, fromOff, to, toOff, count);
    }

    /** Distributes {@code boolean} elements: see {@link #scatter(byte[], int, byte[], int, int, int)}. */
    public void scatter(boolean[] from, int fromOff, boolean[] to, int toOff, int count, int root) {
        ArrayCollectiveCalls.move(this, Native.SCATTER, root, Types.BOOLEAN, from, fromOff, to, toOff, count);
    }

    /** Exchanges {@code boolean} elements: see {@link #alltoall(byte[], int, byte[], int, int)}. */
    public void alltoall(boolean[] from, int fromOff, boolean[] to, int toOff, int count) {
        ArrayCollectiveCalls.move(this, Native.ALLTOALL, 0, Types.BOOLEAN, from, fromOff, to, toOff, count);
    }

    /** Combines {@code boolean} vectors: see {@link #reduce(byte[], int, byte[], int, int, Op, int)}. */
    public void reduce(boolean[] from, int fromOff, boolean[] to, int toOff, int count, Op op, int root) {
        ArrayCollectiveCalls.reduce(this, Native.REDUCE, root, op, Types.BOOLEAN, from, fromOff, to, toOff, count);
    }

    /** Combines {@code boolean} vectors: see {@link #allreduce(byte[], int, byte[], int, int, Op)}. */
    public void allreduce(boolean[] from, int fromOff, boolean[] to, int toOff, int count, Op op) {
        ArrayCollectiveCalls.reduce(this, Native.ALLREDUCE, 0, op, Types.BOOLEAN, from, fromOff, to, toOff, count);
    }

    // ---- int

    /** Sends {@code int} elements of the root to all: see {@link #bcast(byte[], int, int, int)}. */
    public void bcast(int[] array, int off, int count, int root) {
        ArrayCollectiveCalls.bcast(this, Types.INT, array, off, count, root);
    }

    /** Collects {@code int} elements: see {@link #gather(byte[], int, byte[], int, int, int)}. */
    public void gather(int[] from, int fromOff, int[] to, int toOff, int count, int root) {
        ArrayCollectiveCalls.move(this, Native.GATHER, root, Types.INT, from, fromOff, to, toOff, count);
    }

    /** Collects {@code int} elements at all: see {@link #allgather(byte[], int, byte[], int, int)}. */
    public void allgather(int[] from, int fromOff, int[] to, int toOff, int count) {
        ArrayCollectiveCalls.move(this, Native.ALLGATHER, 0, Types.INT, from, fromOff, to, toOff, count);
    }

    /** Distributes {@code int} elements: see {@link #scatter(byte[], int, byte[], int, int, int)}. */
    public void scatter(int[] from, int fromOff, int[] to, int toOff, int count, int root) {
        ArrayCollectiveCalls.move(this, Native.SCATTER, root, Types.INT, from, fromOff, to, toOff, count);
    }

    /** Exchanges {@code int} elements: see {@link #alltoall(byte[], int, byte[], int, int)}. */
    public void alltoall(int[] from, int fromOff, int[] to, int toOff, int count) {
        ArrayCollectiveCalls.move(this, Native.ALLTOALL, 0, Types.INT, from, fromOff, to, toOff, count);
    }

    /** Combines {@code int} vectors: see {@link #reduce(byte[], int, byte[], int, int, Op, int)}. */
    public void reduce(int[] from, int fromOff, int[] to, int toOff, int count, Op op, int root) {
        ArrayCollectiveCalls.reduce(this, Native.REDUCE, root, op, Types.INT, from, fromOff, to, toOff, count);
    }

    /** Combines {@code int} vectors for all: see {@link #allreduce(byte[], int, byte[], int, int, Op)}. */
    public void allreduce(int[] from, int fromOff, int[] to, int toOff, int count, Op op) {
        ArrayCollectiveCalls.reduce(this, Native.ALLREDUCE, 0, op, Types.INT, from, fromOff, to, toOff, count);
    }

    // ---- long

    /** Sends {@code long} elements of the root to all: see {@link #bcast(byte[], int, int, int)}. */
    public void bcast(long[] array, int off, int count, int root) {
        ArrayCollectiveCalls.bcast(this, Types.LONG, array, off, count, root);
    }

    /** Collects {@code long} elements: see {@link #gather(byte[], int, byte[], int, int, int)}. */
    public void gather(long[] from, int fromOff, long[] to, int toOff, int count, int root) {
        ArrayCollectiveCalls.move(this, Native.GATHER, root, Types.LONG, from, fromOff, to, toOff, count);
    }

    /** Collects {@code long} elements at all: see {@link #allgather(byte[], int, byte[], int, int)}. */
    public void allgather(long[] from, int fromOff, long[] to, int toOff, int count) {
        ArrayCollectiveCalls.move(this, Native.ALLGATHER, 0, Types.LONG, from, fromOff, to, toOff, count);
    }

    /** Distributes {@code long} elements: see {@link #scatter(byte[], int, byte[], int, int, int)}. */
    public void scatter(long[] from, int fromOff, long[] to, int toOff, int count, int root) {
        ArrayCollectiveCalls.move(this, Native.SCATTER, root, Types.LONG, from, fromOff, to, toOff, count);
    }

    /** Exchanges {@code long} elements: see {@link #alltoall(byte[], int, byte[], int, int)}. */
    public void alltoall(long[] from, int fromOff, long[] to, int toOff, int count) {
        ArrayCollectiveCalls.move(this, Native.ALLTOALL, 0, Types.LONG, from, fromOff, to, toOff, count);
    }

    /** Combines {@code long} vectors: see {@link #reduce(byte[], int, byte[], int, int, Op, int)}. */
    public void reduce(long[] from, int fromOff, long[] to, int toOff, int count, Op op, int root) {
        ArrayCollectiveCalls.reduce(this, Native.REDUCE, root, op, Types.LONG, from, fromOff, to, toOff, count);
    }

    /** Combines {@code long} vectors for all: see {@link #allreduce(byte[], int, byte[], int, int, Op)}. */
    public void allreduce(long[] from, int fromOff, long[] to, int toOff, int count, Op op) {
        ArrayCollectiveCalls.reduce(this, Native.ALLREDUCE, 0, op, Types.LONG, from, fromOff, to, toOff, count);
    }

    // ---- float

    /** Sends {@code float} elements of the root to all: see {@link #bcast(byte[], int, int, int)}. */
    public void bcast(float[] array, int off, int count, int root) {
        ArrayCollectiveCalls.bcast(this, Types.FLOAT, array, off, count, root);
    }

    /** Collects {@code float} elements: see {@link #gather(byte[], int, byte[], int, int, int)}. */
    public void gather(float[] from, int fromOff, float[] to, int toOff, int count, int root) {
        ArrayCollectiveCalls.move(this, Native.GATHER, root, Types.FLOAT, from, fromOff, to, toOff, count);
    }

    /** Collects {@code float} elements at all: see {@link #allgather(byte[], int, byte[], int, int)}. */
    public void allgather(float[] from, int fromOff, float[] to, int toOff, int count) {
        ArrayCollectiveCalls.move(this, Native.ALLGATHER, 0, Types.FLOAT, from, fromOff, to, toOff, count);
    }

    /** Distributes {@code float} elements: see {@link #scatter(byte[], int, byte[], int, int, int)}. */
    public void scatter(float[] from, int fromOff, float[] to, int toOff, int count, int root) {
        ArrayCollectiveCalls.move(this, Native.SCATTER, root, Types.FLOAT, from, fromOff, to, toOff, count);
    }

    /** Exchanges {@code float} elements: see {@link #alltoall(byte[], int, byte[], int, int)}. */
    public void alltoall(float[] from, int fromOff, float[] to, int toOff, int count) {
        ArrayCollectiveCalls.move(this, Native.ALLTOALL, 0, Types.FLOAT, from, fromOff, to, toOff, count);
    }

    /** Combines {@code float} vectors: see {@link #reduce(byte[], int, byte[], int, int, Op, int)}. */
    public void reduce(float[] from, int fromOff, float[] to, int toOff, int count, Op op, int root) {
        ArrayCollectiveCalls.reduce(this, Native.REDUCE, root, op, Types.FLOAT, from, fromOff, to, toOff, count);
    }

    /** Combines {@code float} vectors for all: see {@link #allreduce(byte[], int, byte[], int, int, Op)}. */
    public void allreduce(float[] from, int fromOff, float[] to, int toOff, int count, Op op) {
        ArrayCollectiveCalls.reduce(this, Native.ALLREDUCE, 0, op, Types.FLOAT, from, fromOff, to, toOff, count);
    }

    // ---- double

    /** Sends {@code double} elements of the root to all: see {@link #bcast(byte[], int, int, int)}. */
    public void bcast(double[] array, int off, int count, int root) {
        ArrayCollectiveCalls.bcast(this, Types.DOUBLE, array, off, count, root);
    }

    /** Collects {@code double} elements: see {@link #gather(byte[], int, byte[], int, int, int)}. */
    public void gather(double[] from, int fromOff, double[] to, int toOff, int count, int root) {
        ArrayCollectiveCalls.move(this, Native.GATHER, root, Types.DOUBLE, from, fromOff, to, toOff, count);
    }

    /** Collects {@code double} elements at all: see {@link #allgather(byte[], int, byte[], int, int)}. */
    public void allgather(double[] from, int fromOff, double[] to, int toOff, int count) {
        ArrayCollectiveCalls.move(this, Native.ALLGATHER, 0, Types.DOUBLE, from, fromOff, to, toOff, count);
    }

    /** Distributes {@code double} elements: see {@link #scatter(byte[], int, byte[], int, int, int)}. */
    public void scatter(double[] from, int fromOff, double[] to, int toOff, int count, int root) {
        ArrayCollectiveCalls.move(this, Native.SCATTER, root, Types.DOUBLE, from, fromOff, to, toOff, count);
    }

    /** Exchanges {@code double} elements: see {@link #alltoall(byte[], int, byte[], int, int)}. */
    public void alltoall(double[] from, int fromOff, double[] to, int toOff, int count) {
        ArrayCollectiveCalls.move(this, Native.ALLTOALL, 0, Types.DOUBLE, from, fromOff, to, toOff, count);
    }

    /** Combines {@code double} vectors: see {@link #reduce(byte[], int, byte[], int, int, Op, int)}. */
    public void reduce(double[] from, int fromOff, double[] to, int toOff, int count, Op op, int root) {
        ArrayCollectiveCalls.reduce(this, Native.REDUCE, root, op, Types.DOUBLE, from, fromOff, to, toOff, count);
    }

    /** Combines {@code double} vectors for all: see {@link #allreduce(byte[], int, byte[], int, int, Op)}. */
    public void allreduce(double[] from, int fromOff, double[] to, int toOff, int count, Op op) {
        ArrayCollectiveCalls.reduce(this, Native.ALLREDUCE, 0, op, Types.DOUBLE, from, fromOff, to, toOff, count);
    }
}
