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

    /**
     * Sends a patch of one array and receives into a patch of another: as
     * {@link #sendrecv(byte[], int, int, int, int, byte[], int, int, int, int)}, with the patches of
     * {@link #sendPatch(byte[], int, int, int, int, int[], int, int)} and
     * {@link #recvPatch(byte[], int, int, int, int, int[], int, int)}. Blocks until both are done. All
     * arguments of both are checked before anything is sent.
     *
     * @param from array to send from
     * @param fromOff index of the element to send with all i[d] zero
     * @param fromRank number of dimensions of the patch to send
     * @param fromExts position of its first extent in {@code fromIndexes}
     * @param fromStrs position of its first stride in {@code fromIndexes}
     * @param fromIndexes its extents and strides
     * @param dest destination
     * @param sendTag tag of the message that is sent
     * @param to array to receive into; it may be {@code from}
     * @param toOff index of the element to receive with all i[d] zero
     * @param toRank number of dimensions of the patch to receive into
     * @param toExts position of its first extent in {@code toIndexes}
     * @param toStrs position of its first stride in {@code toIndexes}
     * @param toIndexes its extents and strides
     * @param src source, or {@link Comm#ANY_SOURCE}
     * @param recvTag tag of the message that is received, or {@link Comm#ANY_TAG}
     * @return the status of the receive
     */
    public Status sendrecvPatch(byte[] from, int fromOff, int fromRank, int fromExts, int fromStrs,
            int[] fromIndexes, int dest, int sendTag, byte[] to, int toOff, int toRank, int toExts, int toStrs,
            int[] toIndexes, int src, int recvTag) {
        return PatchCalls.sendrecvPatch(this, from, from.length, Types.BYTE, fromOff, fromRank, fromExts, fromStrs,
                fromIndexes, dest, sendTag, to, to.length, toOff, toRank, toExts, toStrs, toIndexes, src, recvTag);
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

    /**
     * Sends and receives patches of {@code char} elements: see {@link #sendrecvPatch(byte[], int, int,
     * int, int, int[], int, int, byte[], int, int, int, int, int[], int, int)}.
     */
    public Status sendrecvPatch(char[] from, int fromOff, int fromRank, int fromExts, int fromStrs,
            int[] fromIndexes, int dest, int sendTag, char[] to, int toOff, int toRank, int toExts, int toStrs,
            int[] toIndexes, int src, int recvTag) {
        return PatchCalls.sendrecvPatch(this, from, from.length, Types.CHAR, fromOff, fromRank, fromExts, fromStrs,
                fromIndexes, dest, sendTag, to, to.length, toOff, toRank, toExts, toStrs, toIndexes, src, recvTag);
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

    /**
     * Sends and receives patches of {@code short} elements: see {@link #sendrecvPatch(byte[], int, int,
     * int, int, int[], int, int, byte[], int, int, int, int, int[], int, int)}.
     */
    public Status sendrecvPatch(short[] from, int fromOff, int fromRank, int fromExts, int fromStrs,
            int[] fromIndexes, int dest, int sendTag, short[] to, int toOff, int toRank, int toExts, int toStrs,
            int[] toIndexes, int src, int recvTag) {
        return PatchCalls.sendrecvPatch(this, from, from.length, Types.SHORT, fromOff, fromRank, fromExts, fromStrs,
                fromIndexes, dest, sendTag, to, to.length, toOff, toRank, toExts, toStrs, toIndexes, src, recvTag);
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

    /**
     * Sends and receives patches of {@code boolean} elements: see {@link #sendrecvPatch(byte[], int, int,
     * int, int, int[], int, int, byte[], int, int, int, int, int[], int, int)}.
     */
    public Status sendrecvPatch(boolean[] from, int fromOff, int fromRank, int fromExts, int fromStrs,
            int[] fromIndexes, int dest, int sendTag, boolean[] to, int toOff, int toRank, int toExts, int toStrs,
            int[] toIndexes, int src, int recvTag) {
        return PatchCalls.sendrecvPatch(this, from, from.length, Types.BOOLEAN, fromOff, fromRank, fromExts,
                fromStrs, fromIndexes, dest, sendTag, to, to.length, toOff, toRank, toExts, toStrs, toIndexes, src,
                recvTag);
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

    /**
     * Sends and receives patches of {@code int} elements: see {@link #sendrecvPatch(byte[], int, int,
     * int, int, int[], int, int, byte[], int, int, int, int, int[], int, int)}.
     */
    public Status sendrecvPatch(int[] from, int fromOff, int fromRank, int fromExts, int fromStrs,
            int[] fromIndexes, int dest, int sendTag, int[] to, int toOff, int toRank, int toExts, int toStrs,
            int[] toIndexes, int src, int recvTag) {
        return PatchCalls.sendrecvPatch(this, from, from.length, Types.INT, fromOff, fromRank, fromExts, fromStrs,
                fromIndexes, dest, sendTag, to, to.length, toOff, toRank, toExts, toStrs, toIndexes, src, recvTag);
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

    /**
     * Sends and receives patches of {@code long} elements: see {@link #sendrecvPatch(byte[], int, int,
     * int, int, int[], int, int, byte[], int, int, int, int, int[], int, int)}.
     */
    public Status sendrecvPatch(long[] from, int fromOff, int fromRank, int fromExts, int fromStrs,
            int[] fromIndexes, int dest, int sendTag, long[] to, int toOff, int toRank, int toExts, int toStrs,
            int[] toIndexes, int src, int recvTag) {
        return PatchCalls.sendrecvPatch(this, from, from.length, Types.LONG, fromOff, fromRank, fromExts, fromStrs,
                fromIndexes, dest, sendTag, to, to.length, toOff, toRank, toExts, toStrs, toIndexes, src, recvTag);
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

    /**
     * Sends and receives patches of {@code float} elements: see {@link #sendrecvPatch(byte[], int, int,
     * int, int, int[], int, int, byte[], int, int, int, int, int[], int, int)}.
     */
    public Status sendrecvPatch(float[] from, int fromOff, int fromRank, int fromExts, int fromStrs,
            int[] fromIndexes, int dest, int sendTag, float[] to, int toOff, int toRank, int toExts, int toStrs,
            int[] toIndexes, int src, int recvTag) {
        return PatchCalls.sendrecvPatch(this, from, from.length, Types.FLOAT, fromOff, fromRank, fromExts, fromStrs,
                fromIndexes, dest, sendTag, to, to.length, toOff, toRank, toExts, toStrs, toIndexes, src, recvTag);
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

    /**
     * Sends and receives patches of {@code double} elements: see {@link #sendrecvPatch(byte[], int, int,
     * int, int, int[], int, int, byte[], int, int, int, int, int[], int, int)}.
     */
    public Status sendrecvPatch(double[] from, int fromOff, int fromRank, int fromExts, int fromStrs,
            int[] fromIndexes, int dest, int sendTag, double[] to, int toOff, int toRank, int toExts, int toStrs,
            int[] toIndexes, int src, int recvTag) {
        return PatchCalls.sendrecvPatch(this, from, from.length, Types.DOUBLE, fromOff, fromRank, fromExts,
                fromStrs, fromIndexes, dest, sendTag, to, to.length, toOff, toRank, toExts, toStrs, toIndexes, src,
                recvTag);
    }
}
