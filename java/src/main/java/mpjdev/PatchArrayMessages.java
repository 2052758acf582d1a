package mpjdev;

import mpjdev.core.Types;

/**
 * The messages of a communicator between elements of arrays that a strided patch selects.
 *
 * <p>The methods have an overload for each primitive type. Those for {@code byte} arrays document all of
 * them.
 */
abstract class PatchArrayMessages extends IndexedArrayMessages {
    PatchArrayMessages() {}

    // ---- byte

    /**
     * Sends a strided patch as a message of one section: the elements
     * {@code array[off + sum of i[d] * indexes[strs + d]]}, d from 0 to {@code rank - 1}, i[d] from 0 to
     * {@code indexes[exts + d] - 1}, the last dimension fastest.
     *
     * @param array array to send from
     * @param off index of the element with all i[d] zero
     * @param rank number of dimensions; 0 means one element
     * @param exts position of the first extent in {@code indexes}
     * @param strs position of the first stride in {@code indexes}; strides may be negative
     * @param indexes extents and strides
     * @param dest destination
     * @param tag tag
     */
    public void sendPatch(byte[] array, int off, int rank, int exts, int strs, int[] indexes, int dest, int tag) {
        PatchCalls.sendPatch(this, array, array.length, Types.BYTE, off, rank, exts, strs, indexes, dest, tag);
    }

    /**
     * Starts to send a patch as {@link #sendPatch(byte[], int, int, int, int, int[], int, int)} does. Does
     * not block. Elements and patch are captured.
     *
     * @param array array to send from
     * @param off index of the element with all i[d] zero
     * @param rank number of dimensions
     * @param exts position of the first extent in {@code indexes}
     * @param strs position of the first stride in {@code indexes}
     * @param indexes extents and strides
     * @param dest destination
     * @param tag tag
     * @return the request
     */
    public Request isendPatch(byte[] array, int off, int rank, int exts, int strs, int[] indexes, int dest, int tag) {
        return PatchCalls.isendPatch(this, array, array.length, Types.BYTE, off, rank, exts, strs, indexes, dest,
                tag);
    }

    /**
     * Receives a message of one section into a strided patch, as of
     * {@link #sendPatch(byte[], int, int, int, int, int[], int, int)}. If the message has fewer elements, it
     * uses the first ones of the patch.
     *
     * @param array array to receive into
     * @param off index of the element with all i[d] zero
     * @param rank number of dimensions
     * @param exts position of the first extent in {@code indexes}
     * @param strs position of the first stride in {@code indexes}
     * @param indexes extents and strides
     * @param src source, or {@link Comm#ANY_SOURCE}
     * @param tag tag, or {@link Comm#ANY_TAG}
     * @return source, tag, size, and type and number of the elements
     */
    public Status recvPatch(byte[] array, int off, int rank, int exts, int strs, int[] indexes, int src, int tag) {
        return PatchCalls.recvPatch(this, array, array.length, Types.BYTE, off, rank, exts, strs, indexes, src, tag);
    }

    /**
     * Posts a receive into a strided patch: as {@link #irecv(byte[], int, int, int, int)}, with the patch of
     * {@link #recvPatch(byte[], int, int, int, int, int[], int, int)}. Does not block. The patch is captured.
     *
     * @param array array to receive into; it is reachable as long as the request is
     * @param off index of the element with all i[d] zero
     * @param rank number of dimensions
     * @param exts position of the first extent in {@code indexes}
     * @param strs position of the first stride in {@code indexes}
     * @param indexes extents and strides
     * @param src source, or {@link Comm#ANY_SOURCE}
     * @param tag tag, or {@link Comm#ANY_TAG}
     * @return the request
     */
    public Request irecvPatch(byte[] array, int off, int rank, int exts, int strs, int[] indexes, int src, int tag) {
        return PatchCalls.irecvPatch(this, array, array.length, Types.BYTE, off, rank, exts, strs, indexes, src, tag);
    }

    // ---- char

    /**
     * Sends a patch of {@code char} elements: see
     * {@link #sendPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public void sendPatch(char[] array, int off, int rank, int exts, int strs, int[] indexes, int dest, int tag) {
        PatchCalls.sendPatch(this, array, array.length, Types.CHAR, off, rank, exts, strs, indexes, dest, tag);
    }

    /**
     * Starts to send a patch of {@code char} elements: see
     * {@link #isendPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Request isendPatch(char[] array, int off, int rank, int exts, int strs, int[] indexes, int dest, int tag) {
        return PatchCalls.isendPatch(this, array, array.length, Types.CHAR, off, rank, exts, strs, indexes, dest,
                tag);
    }

    /**
     * Receives a patch of {@code char} elements: see
     * {@link #recvPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Status recvPatch(char[] array, int off, int rank, int exts, int strs, int[] indexes, int src, int tag) {
        return PatchCalls.recvPatch(this, array, array.length, Types.CHAR, off, rank, exts, strs, indexes, src, tag);
    }

    /**
     * Posts the receive of a patch of {@code char} elements: see
     * {@link #irecvPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Request irecvPatch(char[] array, int off, int rank, int exts, int strs, int[] indexes, int src, int tag) {
        return PatchCalls.irecvPatch(this, array, array.length, Types.CHAR, off, rank, exts, strs, indexes, src, tag);
    }

    // ---- short

    /**
     * Sends a patch of {@code short} elements: see
     * {@link #sendPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public void sendPatch(short[] array, int off, int rank, int exts, int strs, int[] indexes, int dest, int tag) {
        PatchCalls.sendPatch(this, array, array.length, Types.SHORT, off, rank, exts, strs, indexes, dest, tag);
    }

    /**
     * Starts to send a patch of {@code short} elements: see
     * {@link #isendPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Request isendPatch(short[] array, int off, int rank, int exts, int strs, int[] indexes, int dest,
            int tag) {
        return PatchCalls.isendPatch(this, array, array.length, Types.SHORT, off, rank, exts, strs, indexes, dest,
                tag);
    }

    /**
     * Receives a patch of {@code short} elements: see
     * {@link #recvPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Status recvPatch(short[] array, int off, int rank, int exts, int strs, int[] indexes, int src, int tag) {
        return PatchCalls.recvPatch(this, array, array.length, Types.SHORT, off, rank, exts, strs, indexes, src, tag);
    }

    /**
     * Posts the receive of a patch of {@code short} elements: see
     * {@link #irecvPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Request irecvPatch(short[] array, int off, int rank, int exts, int strs, int[] indexes, int src, int tag) {
        return PatchCalls.irecvPatch(this, array, array.length, Types.SHORT, off, rank, exts, strs, indexes, src,
                tag);
    }

    // ---- boolean

    /**
     * Sends a patch of {@code boolean} elements: see
     * {@link #sendPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public void sendPatch(boolean[] array, int off, int rank, int exts, int strs, int[] indexes, int dest, int tag) {
        PatchCalls.sendPatch(this, array, array.length, Types.BOOLEAN, off, rank, exts, strs, indexes, dest, tag);
    }

    /**
     * Starts to send a patch of {@code boolean} elements: see
     * {@link #isendPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Request isendPatch(boolean[] array, int off, int rank, int exts, int strs, int[] indexes, int dest,
            int tag) {
        return PatchCalls.isendPatch(this, array, array.length, Types.BOOLEAN, off, rank, exts, strs, indexes, dest,
                tag);
    }

    /**
     * Receives a patch of {@code boolean} elements: see
     * {@link #recvPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Status recvPatch(boolean[] array, int off, int rank, int exts, int strs, int[] indexes, int src, int tag) {
        return PatchCalls.recvPatch(this, array, array.length, Types.BOOLEAN, off, rank, exts, strs, indexes, src,
                tag);
    }

    /**
     * Posts the receive of a patch of {@code boolean} elements: see
     * {@link #irecvPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Request irecvPatch(boolean[] array, int off, int rank, int exts, int strs, int[] indexes, int src,
            int tag) {
        return PatchCalls.irecvPatch(this, array, array.length, Types.BOOLEAN, off, rank, exts, strs, indexes, src,
                tag);
    }

    // ---- int

    /**
     * Sends a patch of {@code int} elements: see
     * {@link #sendPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public void sendPatch(int[] array, int off, int rank, int exts, int strs, int[] indexes, int dest, int tag) {
        PatchCalls.sendPatch(this, array, array.length, Types.INT, off, rank, exts, strs, indexes, dest, tag);
    }

    /**
     * Starts to send a patch of {@code int} elements: see
     * {@link #isendPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Request isendPatch(int[] array, int off, int rank, int exts, int strs, int[] indexes, int dest, int tag) {
        return PatchCalls.isendPatch(this, array, array.length, Types.INT, off, rank, exts, strs, indexes, dest, tag);
    }

    /**
     * Receives a patch of {@code int} elements: see
     * {@link #recvPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Status recvPatch(int[] array, int off, int rank, int exts, int strs, int[] indexes, int src, int tag) {
        return PatchCalls.recvPatch(this, array, array.length, Types.INT, off, rank, exts, strs, indexes, src, tag);
    }

    /**
     * Posts the receive of a patch of {@code int} elements: see
     * {@link #irecvPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Request irecvPatch(int[] array, int off, int rank, int exts, int strs, int[] indexes, int src, int tag) {
        return PatchCalls.irecvPatch(this, array, array.length, Types.INT, off, rank, exts, strs, indexes, src, tag);
    }

    // ---- long

    /**
     * Sends a patch of {@code long} elements: see
     * {@link #sendPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public void sendPatch(long[] array, int off, int rank, int exts, int strs, int[] indexes, int dest, int tag) {
        PatchCalls.sendPatch(this, array, array.length, Types.LONG, off, rank, exts, strs, indexes, dest, tag);
    }

    /**
     * Starts to send a patch of {@code long} elements: see
     * {@link #isendPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Request isendPatch(long[] array, int off, int rank, int exts, int strs, int[] indexes, int dest, int tag) {
        return PatchCalls.isendPatch(this, array, array.length, Types.LONG, off, rank, exts, strs, indexes, dest,
                tag);
    }

    /**
     * Receives a patch of {@code long} elements: see
     * {@link #recvPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Status recvPatch(long[] array, int off, int rank, int exts, int strs, int[] indexes, int src, int tag) {
        return PatchCalls.recvPatch(this, array, array.length, Types.LONG, off, rank, exts, strs, indexes, src, tag);
    }

    /**
     * Posts the receive of a patch of {@code long} elements: see
     * {@link #irecvPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Request irecvPatch(long[] array, int off, int rank, int exts, int strs, int[] indexes, int src, int tag) {
        return PatchCalls.irecvPatch(this, array, array.length, Types.LONG, off, rank, exts, strs, indexes, src, tag);
    }

    // ---- float

    /**
     * Sends a patch of {@code float} elements: see
     * {@link #sendPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public void sendPatch(float[] array, int off, int rank, int exts, int strs, int[] indexes, int dest, int tag) {
        PatchCalls.sendPatch(this, array, array.length, Types.FLOAT, off, rank, exts, strs, indexes, dest, tag);
    }

    /**
     * Starts to send a patch of {@code float} elements: see
     * {@link #isendPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Request isendPatch(float[] array, int off, int rank, int exts, int strs, int[] indexes, int dest,
            int tag) {
        return PatchCalls.isendPatch(this, array, array.length, Types.FLOAT, off, rank, exts, strs, indexes, dest,
                tag);
    }

    /**
     * Receives a patch of {@code float} elements: see
     * {@link #recvPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Status recvPatch(float[] array, int off, int rank, int exts, int strs, int[] indexes, int src, int tag) {
        return PatchCalls.recvPatch(this, array, array.length, Types.FLOAT, off, rank, exts, strs, indexes, src, tag);
    }

    /**
     * Posts the receive of a patch of {@code float} elements: see
     * {@link #irecvPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Request irecvPatch(float[] array, int off, int rank, int exts, int strs, int[] indexes, int src, int tag) {
        return PatchCalls.irecvPatch(this, array, array.length, Types.FLOAT, off, rank, exts, strs, indexes, src,
                tag);
    }

    // ---- double

    /**
     * Sends a patch of {@code double} elements: see
     * {@link #sendPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public void sendPatch(double[] array, int off, int rank, int exts, int strs, int[] indexes, int dest, int tag) {
        PatchCalls.sendPatch(this, array, array.length, Types.DOUBLE, off, rank, exts, strs, indexes, dest, tag);
    }

    /**
     * Starts to send a patch of {@code double} elements: see
     * {@link #isendPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Request isendPatch(double[] array, int off, int rank, int exts, int strs, int[] indexes, int dest,
            int tag) {
        return PatchCalls.isendPatch(this, array, array.length, Types.DOUBLE, off, rank, exts, strs, indexes, dest,
                tag);
    }

    /**
     * Receives a patch of {@code double} elements: see
     * {@link #recvPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Status recvPatch(double[] array, int off, int rank, int exts, int strs, int[] indexes, int src, int tag) {
        return PatchCalls.recvPatch(this, array, array.length, Types.DOUBLE, off, rank, exts, strs, indexes, src,
                tag);
    }

    /**
     * Posts the receive of a patch of {@code double} elements: see
     * {@link #irecvPatch(byte[], int, int, int, int, int[], int, int)}.
     */
    public Request irecvPatch(double[] array, int off, int rank, int exts, int strs, int[] indexes, int src,
            int tag) {
        return PatchCalls.irecvPatch(this, array, array.length, Types.DOUBLE, off, rank, exts, strs, indexes, src,
                tag);
    }
}
