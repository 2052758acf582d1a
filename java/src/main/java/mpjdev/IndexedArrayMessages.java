package mpjdev;

import mpjdev.core.Types;

/**
 * The messages of a communicator between elements of arrays that an index list selects.
 *
 * <p>The methods have an overload for each primitive type. Those for {@code byte} arrays document all of
 * them.
 */
abstract class IndexedArrayMessages extends ArrayMessages {
    IndexedArrayMessages() {}

    // ---- byte

    /**
     * Sends the elements {@code array[indexes[offs + k]]}, k from 0 to {@code count - 1}, as a message of one
     * section: as {@link #send(byte[], int, int, int, int)}. All indices are checked first: if one is outside
     * the array, nothing is sent. Other threads must not change them during the call: if one is then outside
     * the array, the receive of a long message fails too.
     *
     * @param array array to send from
     * @param count number of elements
     * @param offs position of the first index in {@code indexes}
     * @param indexes indices of the elements in {@code array}
     * @param dest destination
     * @param tag tag
     */
    public void sendGathered(byte[] array, int count, int offs, int[] indexes, int dest, int tag) {
        IndexedCalls.sendGathered(this, array, array.length, Types.BYTE, count, offs, indexes, dest, tag);
    }

    /**
     * Starts to send elements as {@link #sendGathered(byte[], int, int, int[], int, int)} does. Does not
     * block. Elements and indices are captured.
     *
     * @param array array to send from
     * @param count number of elements
     * @param offs position of the first index in {@code indexes}
     * @param indexes indices of the elements in {@code array}
     * @param dest destination
     * @param tag tag
     * @return the request
     */
    public Request isendGathered(byte[] array, int count, int offs, int[] indexes, int dest, int tag) {
        return IndexedCalls.isendGathered(this, array, array.length, Types.BYTE, count, offs, indexes, dest, tag);
    }

    /**
     * Receives a message of one section into the elements {@code array[indexes[offs + k]]}, k from 0 to
     * {@code count - 1}: as {@link #recv(byte[], int, int, int, int)}. If the message has fewer elements, it
     * uses the first indices. All indices are checked first. Other threads must not change them during the
     * call: if one is then outside the array, the message is lost, and elements may have been stored.
     *
     * @param array array to receive into
     * @param count largest number of elements
     * @param offs position of the first index in {@code indexes}
     * @param indexes indices of the elements in {@code array}
     * @param src source, or {@link Comm#ANY_SOURCE}
     * @param tag tag, or {@link Comm#ANY_TAG}
     * @return source, tag, size, and type and number of the elements
     * @throws ArrayIndexOutOfBoundsException if an index is outside the array, or the count is negative; no
     *     message is received
     */
    public Status recvScattered(byte[] array, int count, int offs, int[] indexes, int src, int tag) {
        return IndexedCalls.recvScattered(this, array, array.length, Types.BYTE, count, offs, indexes, src, tag);
    }

    /**
     * Posts a receive into the elements {@code array[indexes[offs + k]]}: as
     * {@link #irecv(byte[], int, int, int, int)}, with the indices of
     * {@link #recvScattered(byte[], int, int, int[], int, int)}. Does not block. The indices are captured.
     *
     * @param array array to receive into; it is reachable as long as the request is
     * @param count largest number of elements
     * @param offs position of the first index in {@code indexes}
     * @param indexes indices of the elements in {@code array}
     * @param src source, or {@link Comm#ANY_SOURCE}
     * @param tag tag, or {@link Comm#ANY_TAG}
     * @return the request
     */
    public Request irecvScattered(byte[] array, int count, int offs, int[] indexes, int src, int tag) {
        return IndexedCalls.irecvScattered(this, array, array.length, Types.BYTE, count, offs, indexes, src, tag);
    }

    /**
     * Sends elements of one array and receives into elements of another: as
     * {@link #sendrecv(byte[], int, int, int, int, byte[], int, int, int, int)}, with the indices of
     * {@link #sendGathered(byte[], int, int, int[], int, int)} and
     * {@link #recvScattered(byte[], int, int, int[], int, int)}. Blocks until both are done. All arguments of
     * both are checked before anything is sent.
     *
     * @param from array to send from
     * @param sendCount number of elements to send
     * @param fromOffs position of the first index in {@code fromIndexes}
     * @param fromIndexes indices of the elements in {@code from}
     * @param dest destination
     * @param sendTag tag of the message that is sent
     * @param to array to receive into; it may be {@code from}
     * @param recvCount largest number of elements to receive
     * @param toOffs position of the first index in {@code toIndexes}
     * @param toIndexes indices of the elements in {@code to}
     * @param src source, or {@link Comm#ANY_SOURCE}
     * @param recvTag tag of the message that is received, or {@link Comm#ANY_TAG}
     * @return the status of the receive
     */
    public Status sendrecvIndexed(byte[] from, int sendCount, int fromOffs, int[] fromIndexes, int dest,
            int sendTag, byte[] to, int recvCount, int toOffs, int[] toIndexes, int src, int recvTag) {
        return IndexedCalls.sendrecvIndexed(this, from, from.length, Types.BYTE, sendCount, fromOffs, fromIndexes,
                dest, sendTag, to, to.length, recvCount, toOffs, toIndexes, src, recvTag);
    }

    // ---- char

    /** Sends {@code char} elements: see {@link #sendGathered(byte[], int, int, int[], int, int)}. */
    public void sendGathered(char[] array, int count, int offs, int[] indexes, int dest, int tag) {
        IndexedCalls.sendGathered(this, array, array.length, Types.CHAR, count, offs, indexes, dest, tag);
    }

    /**
     * Starts to send {@code char} elements: see
     * {@link #isendGathered(byte[], int, int, int[], int, int)}.
     */
    public Request isendGathered(char[] array, int count, int offs, int[] indexes, int dest, int tag) {
        return IndexedCalls.isendGathered(this, array, array.length, Types.CHAR, count, offs, indexes, dest, tag);
    }

    /** Receives {@code char} elements: see {@link #recvScattered(byte[], int, int, int[], int, int)}. */
    public Status recvScattered(char[] array, int count, int offs, int[] indexes, int src, int tag) {
        return IndexedCalls.recvScattered(this, array, array.length, Types.CHAR, count, offs, indexes, src, tag);
    }

    /**
     * Posts the receive of {@code char} elements: see
     * {@link #irecvScattered(byte[], int, int, int[], int, int)}.
     */
    public Request irecvScattered(char[] array, int count, int offs, int[] indexes, int src, int tag) {
        return IndexedCalls.irecvScattered(this, array, array.length, Types.CHAR, count, offs, indexes, src, tag);
    }

    /**
     * Sends and receives {@code char} elements: see
     * {@link #sendrecvIndexed(byte[], int, int, int[], int, int, byte[], int, int, int[], int, int)}.
     */
    public Status sendrecvIndexed(char[] from, int sendCount, int fromOffs, int[] fromIndexes, int dest,
            int sendTag, char[] to, int recvCount, int toOffs, int[] toIndexes, int src, int recvTag) {
        return IndexedCalls.sendrecvIndexed(this, from, from.length, Types.CHAR, sendCount, fromOffs, fromIndexes,
                dest, sendTag, to, to.length, recvCount, toOffs, toIndexes, src, recvTag);
    }

    // ---- short

    /** Sends {@code short} elements: see {@link #sendGathered(byte[], int, int, int[], int, int)}. */
    public void sendGathered(short[] array, int count, int offs, int[] indexes, int dest, int tag) {
        IndexedCalls.sendGathered(this, array, array.length, Types.SHORT, count, offs, indexes, dest, tag);
    }

    /**
     * Starts to send {@code short} elements: see
     * {@link #isendGathered(byte[], int, int, int[], int, int)}.
     */
    public Request isendGathered(short[] array, int count, int offs, int[] indexes, int dest, int tag) {
        return IndexedCalls.isendGathered(this, array, array.length, Types.SHORT, count, offs, indexes, dest, tag);
    }

    /** Receives {@code short} elements: see {@link #recvScattered(byte[], int, int, int[], int, int)}. */
    public Status recvScattered(short[] array, int count, int offs, int[] indexes, int src, int tag) {
        return IndexedCalls.recvScattered(this, array, array.length, Types.SHORT, count, offs, indexes, src, tag);
    }

    /**
     * Posts the receive of {@code short} elements: see
     * {@link #irecvScattered(byte[], int, int, int[], int, int)}.
     */
    public Request irecvScattered(short[] array, int count, int offs, int[] indexes, int src, int tag) {
        return IndexedCalls.irecvScattered(this, array, array.length, Types.SHORT, count, offs, indexes, src, tag);
    }

    /**
     * Sends and receives {@code short} elements: see
     * {@link #sendrecvIndexed(byte[], int, int, int[], int, int, byte[], int, int, int[], int, int)}.
     */
    public Status sendrecvIndexed(short[] from, int sendCount, int fromOffs, int[] fromIndexes, int dest,
            int sendTag, short[] to, int recvCount, int toOffs, int[] toIndexes, int src, int recvTag) {
        return IndexedCalls.sendrecvIndexed(this, from, from.length, Types.SHORT, sendCount, fromOffs, fromIndexes,
                dest, sendTag, to, to.length, recvCount, toOffs, toIndexes, src, recvTag);
    }

    // ---- boolean

    /** Sends {@code boolean} elements: see {@link #sendGathered(byte[], int, int, int[], int, int)}. */
    public void sendGathered(boolean[] array, int count, int offs, int[] indexes, int dest, int tag) {
        IndexedCalls.sendGathered(this, array, array.length, Types.BOOLEAN, count, offs, indexes, dest, tag);
    }

    /**
     * Starts to send {@code boolean} elements: see
     * {@link #isendGathered(byte[], int, int, int[], int, int)}.
     */
    public Request isendGathered(boolean[] array, int count, int offs, int[] indexes, int dest, int tag) {
        return IndexedCalls.isendGathered(this, array, array.length, Types.BOOLEAN, count, offs, indexes, dest, tag);
    }

    /** Receives {@code boolean} elements: see {@link #recvScattered(byte[], int, int, int[], int, int)}. */
    public Status recvScattered(boolean[] array, int count, int offs, int[] indexes, int src, int tag) {
        return IndexedCalls.recvScattered(this, array, array.length, Types.BOOLEAN, count, offs, indexes, src, tag);
    }

    /**
     * Posts the receive of {@code boolean} elements: see
     * {@link #irecvScattered(byte[], int, int, int[], int, int)}.
     */
    public Request irecvScattered(boolean[] array, int count, int offs, int[] indexes, int src, int tag) {
        return IndexedCalls.irecvScattered(this, array, array.length, Types.BOOLEAN, count, offs, indexes, src, tag);
    }

    /**
     * Sends and receives {@code boolean} elements: see
     * {@link #sendrecvIndexed(byte[], int, int, int[], int, int, byte[], int, int, int[], int, int)}.
     */
    public Status sendrecvIndexed(boolean[] from, int sendCount, int fromOffs, int[] fromIndexes, int dest,
            int sendTag, boolean[] to, int recvCount, int toOffs, int[] toIndexes, int src, int recvTag) {
        return IndexedCalls.sendrecvIndexed(this, from, from.length, Types.BOOLEAN, sendCount, fromOffs,
                fromIndexes, dest, sendTag, to, to.length, recvCount, toOffs, toIndexes, src, recvTag);
    }

    // ---- int

    /** Sends {@code int} elements: see {@link #sendGathered(byte[], int, int, int[], int, int)}. */
    public void sendGathered(int[] array, int count, int offs, int[] indexes, int dest, int tag) {
        IndexedCalls.sendGathered(this, array, array.length, Types.INT, count, offs, indexes, dest, tag);
    }

    /** Starts to send {@code int} elements: see {@link #isendGathered(byte[], int, int, int[], int, int)}. */
    public Request isendGathered(int[] array, int count, int offs, int[] indexes, int dest, int tag) {
        return IndexedCalls.isendGathered(this, array, array.length, Types.INT, count, offs, indexes, dest, tag);
    }

    /** Receives {@code int} elements: see {@link #recvScattered(byte[], int, int, int[], int, int)}. */
    public Status recvScattered(int[] array, int count, int offs, int[] indexes, int src, int tag) {
        return IndexedCalls.recvScattered(this, array, array.length, Types.INT, count, offs, indexes, src, tag);
    }

    /**
     * Posts the receive of {@code int} elements: see
     * {@link #irecvScattered(byte[], int, int, int[], int, int)}.
     */
    public Request irecvScattered(int[] array, int count, int offs, int[] indexes, int src, int tag) {
        return IndexedCalls.irecvScattered(this, array, array.length, Types.INT, count, offs, indexes, src, tag);
    }

    /**
     * Sends and receives {@code int} elements: see
     * {@link #sendrecvIndexed(byte[], int, int, int[], int, int, byte[], int, int, int[], int, int)}.
     */
    public Status sendrecvIndexed(int[] from, int sendCount, int fromOffs, int[] fromIndexes, int dest, int sendTag,
            int[] to, int recvCount, int toOffs, int[] toIndexes, int src, int recvTag) {
        return IndexedCalls.sendrecvIndexed(this, from, from.length, Types.INT, sendCount, fromOffs, fromIndexes,
                dest, sendTag, to, to.length, recvCount, toOffs, toIndexes, src, recvTag);
    }

    // ---- long

    /** Sends {@code long} elements: see {@link #sendGathered(byte[], int, int, int[], int, int)}. */
    public void sendGathered(long[] array, int count, int offs, int[] indexes, int dest, int tag) {
        IndexedCalls.sendGathered(this, array, array.length, Types.LONG, count, offs, indexes, dest, tag);
    }

    /**
     * Starts to send {@code long} elements: see
     * {@link #isendGathered(byte[], int, int, int[], int, int)}.
     */
    public Request isendGathered(long[] array, int count, int offs, int[] indexes, int dest, int tag) {
        return IndexedCalls.isendGathered(this, array, array.length, Types.LONG, count, offs, indexes, dest, tag);
    }

    /** Receives {@code long} elements: see {@link #recvScattered(byte[], int, int, int[], int, int)}. */
    public Status recvScattered(long[] array, int count, int offs, int[] indexes, int src, int tag) {
        return IndexedCalls.recvScattered(this, array, array.length, Types.LONG, count, offs, indexes, src, tag);
    }

    /**
     * Posts the receive of {@code long} elements: see
     * {@link #irecvScattered(byte[], int, int, int[], int, int)}.
     */
    public Request irecvScattered(long[] array, int count, int offs, int[] indexes, int src, int tag) {
        return IndexedCalls.irecvScattered(this, array, array.length, Types.LONG, count, offs, indexes, src, tag);
    }

    /**
     * Sends and receives {@code long} elements: see
     * {@link #sendrecvIndexed(byte[], int, int, int[], int, int, byte[], int, int, int[], int, int)}.
     */
    public Status sendrecvIndexed(long[] from, int sendCount, int fromOffs, int[] fromIndexes, int dest,
            int sendTag, long[] to, int recvCount, int toOffs, int[] toIndexes, int src, int recvTag) {
        return IndexedCalls.sendrecvIndexed(this, from, from.length, Types.LONG, sendCount, fromOffs, fromIndexes,
                dest, sendTag, to, to.length, recvCount, toOffs, toIndexes, src, recvTag);
    }

    // ---- float

    /** Sends {@code float} elements: see {@link #sendGathered(byte[], int, int, int[], int, int)}. */
    public void sendGathered(float[] array, int count, int offs, int[] indexes, int dest, int tag) {
        IndexedCalls.sendGathered(this, array, array.length, Types.FLOAT, count, offs, indexes, dest, tag);
    }

    /**
     * Starts to send {@code float} elements: see
     * {@link #isendGathered(byte[], int, int, int[], int, int)}.
     */
    public Request isendGathered(float[] array, int count, int offs, int[] indexes, int dest, int tag) {
        return IndexedCalls.isendGathered(this, array, array.length, Types.FLOAT, count, offs, indexes, dest, tag);
    }

    /** Receives {@code float} elements: see {@link #recvScattered(byte[], int, int, int[], int, int)}. */
    public Status recvScattered(float[] array, int count, int offs, int[] indexes, int src, int tag) {
        return IndexedCalls.recvScattered(this, array, array.length, Types.FLOAT, count, offs, indexes, src, tag);
    }

    /**
     * Posts the receive of {@code float} elements: see
     * {@link #irecvScattered(byte[], int, int, int[], int, int)}.
     */
    public Request irecvScattered(float[] array, int count, int offs, int[] indexes, int src, int tag) {
        return IndexedCalls.irecvScattered(this, array, array.length, Types.FLOAT, count, offs, indexes, src, tag);
    }

    /**
     * Sends and receives {@code float} elements: see
     * {@link #sendrecvIndexed(byte[], int, int, int[], int, int, byte[], int, int, int[], int, int)}.
     */
    public Status sendrecvIndexed(float[] from, int sendCount, int fromOffs, int[] fromIndexes, int dest,
            int sendTag, float[] to, int recvCount, int toOffs, int[] toIndexes, int src, int recvTag) {
        return IndexedCalls.sendrecvIndexed(this, from, from.length, Types.FLOAT, sendCount, fromOffs, fromIndexes,
                dest, sendTag, to, to.length, recvCount, toOffs, toIndexes, src, recvTag);
    }

    // ---- double

    /** Sends {@code double} elements: see {@link #sendGathered(byte[], int, int, int[], int, int)}. */
    public void sendGathered(double[] array, int count, int offs, int[] indexes, int dest, int tag) {
        IndexedCalls.sendGathered(this, array, array.length, Types.DOUBLE, count, offs, indexes, dest, tag);
    }

    /**
     * Starts to send {@code double} elements: see
     * {@link #isendGathered(byte[], int, int, int[], int, int)}.
     */
    public Request isendGathered(double[] array, int count, int offs, int[] indexes, int dest, int tag) {
        return IndexedCalls.isendGathered(this, array, array.length, Types.DOUBLE, count, offs, indexes, dest, tag);
    }

    /** Receives {@code double} elements: see {@link #recvScattered(byte[], int, int, int[], int, int)}. */
    public Status recvScattered(double[] array, int count, int offs, int[] indexes, int src, int tag) {
        return IndexedCalls.recvScattered(this, array, array.length, Types.DOUBLE, count, offs, indexes, src, tag);
    }

    /**
     * Posts the receive of {@code double} elements: see
     * {@link #irecvScattered(byte[], int, int, int[], int, int)}.
     */
    public Request irecvScattered(double[] array, int count, int offs, int[] indexes, int src, int tag) {
        return IndexedCalls.irecvScattered(this, array, array.length, Types.DOUBLE, count, offs, indexes, src, tag);
    }

    /**
     * Sends and receives {@code double} elements: see
     * {@link #sendrecvIndexed(byte[], int, int, int[], int, int, byte[], int, int, int[], int, int)}.
     */
    public Status sendrecvIndexed(double[] from, int sendCount, int fromOffs, int[] fromIndexes, int dest,
            int sendTag, double[] to, int recvCount, int toOffs, int[] toIndexes, int src, int recvTag) {
        return IndexedCalls.sendrecvIndexed(this, from, from.length, Types.DOUBLE, sendCount, fromOffs, fromIndexes,
                dest, sendTag, to, to.length, recvCount, toOffs, toIndexes, src, recvTag);
    }
}
