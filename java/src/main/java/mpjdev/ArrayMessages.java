package mpjdev;

import mpjdev.core.Types;

/**
 * The messages of a communicator that go from array to array, without a buffer.
 *
 * <p>The methods have an overload for each primitive type. Those for {@code byte} arrays document all of
 * them.
 */
abstract class ArrayMessages {
    ArrayMessages() {}

    abstract long handle();

    // ---- byte

    /**
     * Sends the elements {@code array[off]} to {@code array[off + count - 1]} as a message of one section, in
     * standard mode. Blocks as {@link Comm#send(Buffer, int, int)} does. A call that is refused has sent
     * nothing.
     *
     * @param array array to send from; the program may change it when the call returns
     * @param off index of the first element
     * @param count number of elements
     * @param dest destination
     * @param tag tag
     * @throws ArrayIndexOutOfBoundsException if elements are outside the array, or the count is negative
     * @throws IllegalArgumentException if the elements have more octets than a message can hold
     */
    public void send(byte[] array, int off, int count, int dest, int tag) {
        ArrayCalls.send(this, array, array.length, Types.BYTE, off, count, dest, tag, false);
    }

    /**
     * Sends elements in synchronous mode: as {@link #send(byte[], int, int, int, int)}, but blocks until a
     * receive has matched the message.
     *
     * @param array array to send from
     * @param off index of the first element
     * @param count number of elements
     * @param dest destination
     * @param tag tag
     */
    public void ssend(byte[] array, int off, int count, int dest, int tag) {
        ArrayCalls.send(this, array, array.length, Types.BYTE, off, count, dest, tag, true);
    }

    /**
     * Starts to send elements in standard mode: as {@link #send(byte[], int, int, int, int)}. Does not block.
     * The elements are captured: the program may change them when the call returns.
     *
     * @param array array to send from
     * @param off index of the first element
     * @param count number of elements
     * @param dest destination
     * @param tag tag
     * @return the request
     * @throws OutOfMemoryError as {@link Comm#isend(Buffer, int, int)} does
     */
    public Request isend(byte[] array, int off, int count, int dest, int tag) {
        return ArrayCalls.isend(this, array, array.length, Types.BYTE, off, count, dest, tag, false);
    }

    /**
     * Starts to send elements in synchronous mode: as {@link #isend(byte[], int, int, int, int)}.
     *
     * @param array array to send from
     * @param off index of the first element
     * @param count number of elements
     * @param dest destination
     * @param tag tag
     * @return the request
     */
    public Request issend(byte[] array, int off, int count, int dest, int tag) {
        return ArrayCalls.isend(this, array, array.length, Types.BYTE, off, count, dest, tag, true);
    }

    /**
     * Receives a message of one section into {@code array[off]} and on. Blocks. The message may hold fewer
     * elements than {@code count}; the status has their number, and the others do not change.
     *
     * <p>If the call fails, the array has not changed, except for a long message over another transport than
     * a C MPI: if its sender fails while it copies the message, or the calling thread is interrupted and the
     * rest does not arrive within a second, the elements that arrived before are stored. Over TCP and UDP
     * this also holds if objects follow the elements. A message that cannot be stored is lost.
     *
     * @param array array to receive into
     * @param off index of the first element
     * @param count largest number of elements
     * @param src source, or {@link Comm#ANY_SOURCE}
     * @param tag tag, or {@link Comm#ANY_TAG}
     * @return source, tag, size, and type and number of the elements
     * @throws ArrayIndexOutOfBoundsException if elements are outside the array, or the count is negative; no
     *     message is received
     * @throws TruncationException if the message is longer than {@code count} elements
     * @throws ContentMismatchException if the message holds anything but one section of this type
     */
    public Status recv(byte[] array, int off, int count, int src, int tag) {
        return ArrayCalls.recv(this, array, array.length, Types.BYTE, off, count, src, tag);
    }

    /**
     * Posts a receive into {@code array[off]} and on. Does not block. If the message has arrived, the
     * elements are stored at once. Otherwise the wait or the test that returns the status stores them, in the
     * calling thread. It fails as {@link #recv(byte[], int, int, int, int)} does. A request that is freed
     * before its message has arrived receives the message and stores nothing.
     *
     * @param array array to receive into; it is reachable as long as the request is
     * @param off index of the first element
     * @param count largest number of elements
     * @param src source, or {@link Comm#ANY_SOURCE}
     * @param tag tag, or {@link Comm#ANY_TAG}
     * @return the request
     */
    public Request irecv(byte[] array, int off, int count, int src, int tag) {
        return ArrayCalls.irecv(this, array, array.length, Types.BYTE, off, count, src, tag);
    }

    /**
     * Sends elements of one array and receives into another (MPI_Sendrecv). Blocks until both are done. Ranks
     * that exchange messages do not wait for each other's receives. Both arrays may be the same, and the
     * elements may overlap: they are captured before the receive. If the receive fails, the message is sent
     * nevertheless.
     *
     * @param from array to send from
     * @param fromOff index of the first element to send
     * @param sendCount number of elements to send
     * @param dest destination
     * @param sendTag tag of the message that is sent
     * @param to array to receive into
     * @param toOff index of the first element to receive
     * @param recvCount largest number of elements to receive
     * @param src source, or {@link Comm#ANY_SOURCE}
     * @param recvTag tag of the message that is received, or {@link Comm#ANY_TAG}
     * @return the status of the receive, as of {@link #recv(byte[], int, int, int, int)}
     */
    public Status sendrecv(byte[] from, int fromOff, int sendCount, int dest, int sendTag, byte[] to, int toOff,
            int recvCount, int src, int recvTag) {
        return ArrayCalls.sendrecv(this, from, from.length, Types.BYTE, fromOff, sendCount, dest, sendTag, to,
                to.length, toOff, recvCount, src, recvTag);
    }

    // ---- char

    /** Sends {@code char} elements: see {@link #send(byte[], int, int, int, int)}. */
    public void send(char[] array, int off, int count, int dest, int tag) {
        ArrayCalls.send(this, array, array.length, Types.CHAR, off, count, dest, tag, false);
    }

    /** Sends {@code char} elements: see {@link #ssend(byte[], int, int, int, int)}. */
    public void ssend(char[] array, int off, int count, int dest, int tag) {
        ArrayCalls.send(this, array, array.length, Types.CHAR, off, count, dest, tag, true);
    }

    /** Starts to send {@code char} elements: see {@link #isend(byte[], int, int, int, int)}. */
    public Request isend(char[] array, int off, int count, int dest, int tag) {
        return ArrayCalls.isend(this, array, array.length, Types.CHAR, off, count, dest, tag, false);
    }

    /** Starts to send {@code char} elements: see {@link #issend(byte[], int, int, int, int)}. */
    public Request issend(char[] array, int off, int count, int dest, int tag) {
        return ArrayCalls.isend(this, array, array.length, Types.CHAR, off, count, dest, tag, true);
    }

    /** Receives {@code char} elements: see {@link #recv(byte[], int, int, int, int)}. */
    public Status recv(char[] array, int off, int count, int src, int tag) {
        return ArrayCalls.recv(this, array, array.length, Types.CHAR, off, count, src, tag);
    }

    /** Posts a receive of {@code char} elements: see {@link #irecv(byte[], int, int, int, int)}. */
    public Request irecv(char[] array, int off, int count, int src, int tag) {
        return ArrayCalls.irecv(this, array, array.length, Types.CHAR, off, count, src, tag);
    }

    /**
     * Sends and receives {@code char} elements: see
     * {@link #sendrecv(byte[], int, int, int, int, byte[], int, int, int, int)}.
     */
    public Status sendrecv(char[] from, int fromOff, int sendCount, int dest, int sendTag, char[] to, int toOff,
            int recvCount, int src, int recvTag) {
        return ArrayCalls.sendrecv(this, from, from.length, Types.CHAR, fromOff, sendCount, dest, sendTag, to,
                to.length, toOff, recvCount, src, recvTag);
    }

    // ---- short

    /** Sends {@code short} elements: see {@link #send(byte[], int, int, int, int)}. */
    public void send(short[] array, int off, int count, int dest, int tag) {
        ArrayCalls.send(this, array, array.length, Types.SHORT, off, count, dest, tag, false);
    }

    /** Sends {@code short} elements: see {@link #ssend(byte[], int, int, int, int)}. */
    public void ssend(short[] array, int off, int count, int dest, int tag) {
        ArrayCalls.send(this, array, array.length, Types.SHORT, off, count, dest, tag, true);
    }

    /** Starts to send {@code short} elements: see {@link #isend(byte[], int, int, int, int)}. */
    public Request isend(short[] array, int off, int count, int dest, int tag) {
        return ArrayCalls.isend(this, array, array.length, Types.SHORT, off, count, dest, tag, false);
    }

    /** Starts to send {@code short} elements: see {@link #issend(byte[], int, int, int, int)}. */
    public Request issend(short[] array, int off, int count, int dest, int tag) {
        return ArrayCalls.isend(this, array, array.length, Types.SHORT, off, count, dest, tag, true);
    }

    /** Receives {@code short} elements: see {@link #recv(byte[], int, int, int, int)}. */
    public Status recv(short[] array, int off, int count, int src, int tag) {
        return ArrayCalls.recv(this, array, array.length, Types.SHORT, off, count, src, tag);
    }

    /** Posts a receive of {@code short} elements: see {@link #irecv(byte[], int, int, int, int)}. */
    public Request irecv(short[] array, int off, int count, int src, int tag) {
        return ArrayCalls.irecv(this, array, array.length, Types.SHORT, off, count, src, tag);
    }

    /**
     * Sends and receives {@code short} elements: see
     * {@link #sendrecv(byte[], int, int, int, int, byte[], int, int, int, int)}.
     */
    public Status sendrecv(short[] from, int fromOff, int sendCount, int dest, int sendTag, short[] to, int toOff,
            int recvCount, int src, int recvTag) {
        return ArrayCalls.sendrecv(this, from, from.length, Types.SHORT, fromOff, sendCount, dest, sendTag, to,
                to.length, toOff, recvCount, src, recvTag);
    }

    // ---- boolean

    /** Sends {@code boolean} elements: see {@link #send(byte[], int, int, int, int)}. */
    public void send(boolean[] array, int off, int count, int dest, int tag) {
        ArrayCalls.send(this, array, array.length, Types.BOOLEAN, off, count, dest, tag, false);
    }

    /** Sends {@code boolean} elements: see {@link #ssend(byte[], int, int, int, int)}. */
    public void ssend(boolean[] array, int off, int count, int dest, int tag) {
        ArrayCalls.send(this, array, array.length, Types.BOOLEAN, off, count, dest, tag, true);
    }

    /** Starts to send {@code boolean} elements: see {@link #isend(byte[], int, int, int, int)}. */
    public Request isend(boolean[] array, int off, int count, int dest, int tag) {
        return ArrayCalls.isend(this, array, array.length, Types.BOOLEAN, off, count, dest, tag, false);
    }

    /** Starts to send {@code boolean} elements: see {@link #issend(byte[], int, int, int, int)}. */
    public Request issend(boolean[] array, int off, int count, int dest, int tag) {
        return ArrayCalls.isend(this, array, array.length, Types.BOOLEAN, off, count, dest, tag, true);
    }

    /** Receives {@code boolean} elements: see {@link #recv(byte[], int, int, int, int)}. */
    public Status recv(boolean[] array, int off, int count, int src, int tag) {
        return ArrayCalls.recv(this, array, array.length, Types.BOOLEAN, off, count, src, tag);
    }

    /** Posts a receive of {@code boolean} elements: see {@link #irecv(byte[], int, int, int, int)}. */
    public Request irecv(boolean[] array, int off, int count, int src, int tag) {
        return ArrayCalls.irecv(this, array, array.length, Types.BOOLEAN, off, count, src, tag);
    }

    /**
     * Sends and receives {@code boolean} elements: see
     * {@link #sendrecv(byte[], int, int, int, int, byte[], int, int, int, int)}.
     */
    public Status sendrecv(boolean[] from, int fromOff, int sendCount, int dest, int sendTag, boolean[] to, int toOff,
            int recvCount, int src, int recvTag) {
        return ArrayCalls.sendrecv(this, from, from.length, Types.BOOLEAN, fromOff, sendCount, dest, sendTag, to,
                to.length, toOff, recvCount, src, recvTag);
    }

    // ---- int

    /** Sends {@code int} elements: see {@link #send(byte[], int, int, int, int)}. */
    public void send(int[] array, int off, int count, int dest, int tag) {
        ArrayCalls.send(this, array, array.length, Types.INT, off, count, dest, tag, false);
    }

    /** Sends {@code int} elements: see {@link #ssend(byte[], int, int, int, int)}. */
    public void ssend(int[] array, int off, int count, int dest, int tag) {
        ArrayCalls.send(this, array, array.length, Types.INT, off, count, dest, tag, true);
    }

    /** Starts to send {@code int} elements: see {@link #isend(byte[], int, int, int, int)}. */
    public Request isend(int[] array, int off, int count, int dest, int tag) {
        return ArrayCalls.isend(this, array, array.length, Types.INT, off, count, dest, tag, false);
    }

    /** Starts to send {@code int} elements: see {@link #issend(byte[], int, int, int, int)}. */
    public Request issend(int[] array, int off, int count, int dest, int tag) {
        return ArrayCalls.isend(this, array, array.length, Types.INT, off, count, dest, tag, true);
    }

    /** Receives {@code int} elements: see {@link #recv(byte[], int, int, int, int)}. */
    public Status recv(int[] array, int off, int count, int src, int tag) {
        return ArrayCalls.recv(this, array, array.length, Types.INT, off, count, src, tag);
    }

    /** Posts a receive of {@code int} elements: see {@link #irecv(byte[], int, int, int, int)}. */
    public Request irecv(int[] array, int off, int count, int src, int tag) {
        return ArrayCalls.irecv(this, array, array.length, Types.INT, off, count, src, tag);
    }

    /**
     * Sends and receives {@code int} elements: see
     * {@link #sendrecv(byte[], int, int, int, int, byte[], int, int, int, int)}.
     */
    public Status sendrecv(int[] from, int fromOff, int sendCount, int dest, int sendTag, int[] to, int toOff,
            int recvCount, int src, int recvTag) {
        return ArrayCalls.sendrecv(this, from, from.length, Types.INT, fromOff, sendCount, dest, sendTag, to,
                to.length, toOff, recvCount, src, recvTag);
    }

    // ---- long

    /** Sends {@code long} elements: see {@link #send(byte[], int, int, int, int)}. */
    public void send(long[] array, int off, int count, int dest, int tag) {
        ArrayCalls.send(this, array, array.length, Types.LONG, off, count, dest, tag, false);
    }

    /** Sends {@code long} elements: see {@link #ssend(byte[], int, int, int, int)}. */
    public void ssend(long[] array, int off, int count, int dest, int tag) {
        ArrayCalls.send(this, array, array.length, Types.LONG, off, count, dest, tag, true);
    }

    /** Starts to send {@code long} elements: see {@link #isend(byte[], int, int, int, int)}. */
    public Request isend(long[] array, int off, int count, int dest, int tag) {
        return ArrayCalls.isend(this, array, array.length, Types.LONG, off, count, dest, tag, false);
    }

    /** Starts to send {@code long} elements: see {@link #issend(byte[], int, int, int, int)}. */
    public Request issend(long[] array, int off, int count, int dest, int tag) {
        return ArrayCalls.isend(this, array, array.length, Types.LONG, off, count, dest, tag, true);
    }

    /** Receives {@code long} elements: see {@link #recv(byte[], int, int, int, int)}. */
    public Status recv(long[] array, int off, int count, int src, int tag) {
        return ArrayCalls.recv(this, array, array.length, Types.LONG, off, count, src, tag);
    }

    /** Posts a receive of {@code long} elements: see {@link #irecv(byte[], int, int, int, int)}. */
    public Request irecv(long[] array, int off, int count, int src, int tag) {
        return ArrayCalls.irecv(this, array, array.length, Types.LONG, off, count, src, tag);
    }

    /**
     * Sends and receives {@code long} elements: see
     * {@link #sendrecv(byte[], int, int, int, int, byte[], int, int, int, int)}.
     */
    public Status sendrecv(long[] from, int fromOff, int sendCount, int dest, int sendTag, long[] to, int toOff,
            int recvCount, int src, int recvTag) {
        return ArrayCalls.sendrecv(this, from, from.length, Types.LONG, fromOff, sendCount, dest, sendTag, to,
                to.length, toOff, recvCount, src, recvTag);
    }

    // ---- float

    /** Sends {@code float} elements: see {@link #send(byte[], int, int, int, int)}. */
    public void send(float[] array, int off, int count, int dest, int tag) {
        ArrayCalls.send(this, array, array.length, Types.FLOAT, off, count, dest, tag, false);
    }

    /** Sends {@code float} elements: see {@link #ssend(byte[], int, int, int, int)}. */
    public void ssend(float[] array, int off, int count, int dest, int tag) {
        ArrayCalls.send(this, array, array.length, Types.FLOAT, off, count, dest, tag, true);
    }

    /** Starts to send {@code float} elements: see {@link #isend(byte[], int, int, int, int)}. */
    public Request isend(float[] array, int off, int count, int dest, int tag) {
        return ArrayCalls.isend(this, array, array.length, Types.FLOAT, off, count, dest, tag, false);
    }

    /** Starts to send {@code float} elements: see {@link #issend(byte[], int, int, int, int)}. */
    public Request issend(float[] array, int off, int count, int dest, int tag) {
        return ArrayCalls.isend(this, array, array.length, Types.FLOAT, off, count, dest, tag, true);
    }

    /** Receives {@code float} elements: see {@link #recv(byte[], int, int, int, int)}. */
    public Status recv(float[] array, int off, int count, int src, int tag) {
        return ArrayCalls.recv(this, array, array.length, Types.FLOAT, off, count, src, tag);
    }

    /** Posts a receive of {@code float} elements: see {@link #irecv(byte[], int, int, int, int)}. */
    public Request irecv(float[] array, int off, int count, int src, int tag) {
        return ArrayCalls.irecv(this, array, array.length, Types.FLOAT, off, count, src, tag);
    }

    /**
     * Sends and receives {@code float} elements: see
     * {@link #sendrecv(byte[], int, int, int, int, byte[], int, int, int, int)}.
     */
    public Status sendrecv(float[] from, int fromOff, int sendCount, int dest, int sendTag, float[] to, int toOff,
            int recvCount, int src, int recvTag) {
        return ArrayCalls.sendrecv(this, from, from.length, Types.FLOAT, fromOff, sendCount, dest, sendTag, to,
                to.length, toOff, recvCount, src, recvTag);
    }

    // ---- double

    /** Sends {@code double} elements: see {@link #send(byte[], int, int, int, int)}. */
    public void send(double[] array, int off, int count, int dest, int tag) {
        ArrayCalls.send(this, array, array.length, Types.DOUBLE, off, count, dest, tag, false);
    }

    /** Sends {@code double} elements: see {@link #ssend(byte[], int, int, int, int)}. */
    public void ssend(double[] array, int off, int count, int dest, int tag) {
        ArrayCalls.send(this, array, array.length, Types.DOUBLE, off, count, dest, tag, true);
    }

    /** Starts to send {@code double} elements: see {@link #isend(byte[], int, int, int, int)}. */
    public Request isend(double[] array, int off, int count, int dest, int tag) {
        return ArrayCalls.isend(this, array, array.length, Types.DOUBLE, off, count, dest, tag, false);
    }

    /** Starts to send {@code double} elements: see {@link #issend(byte[], int, int, int, int)}. */
    public Request issend(double[] array, int off, int count, int dest, int tag) {
        return ArrayCalls.isend(this, array, array.length, Types.DOUBLE, off, count, dest, tag, true);
    }

    /** Receives {@code double} elements: see {@link #recv(byte[], int, int, int, int)}. */
    public Status recv(double[] array, int off, int count, int src, int tag) {
        return ArrayCalls.recv(this, array, array.length, Types.DOUBLE, off, count, src, tag);
    }

    /** Posts a receive of {@code double} elements: see {@link #irecv(byte[], int, int, int, int)}. */
    public Request irecv(double[] array, int off, int count, int src, int tag) {
        return ArrayCalls.irecv(this, array, array.length, Types.DOUBLE, off, count, src, tag);
    }

    /**
     * Sends and receives {@code double} elements: see
     * {@link #sendrecv(byte[], int, int, int, int, byte[], int, int, int, int)}.
     */
    public Status sendrecv(double[] from, int fromOff, int sendCount, int dest, int sendTag, double[] to, int toOff,
            int recvCount, int src, int recvTag) {
        return ArrayCalls.sendrecv(this, from, from.length, Types.DOUBLE, fromOff, sendCount, dest, sendTag, to,
                to.length, toOff, recvCount, src, recvTag);
    }
}
