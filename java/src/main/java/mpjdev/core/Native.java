package mpjdev.core;

import java.nio.ByteBuffer;

/**
 * The whole native surface, in one class, so that the library is loaded exactly once. Internal.
 *
 * <p>Conventions: a {@code handle} is what one of the {@code new} methods gave; a stale one gives an
 * {@link IllegalStateException}. An array argument is followed by its own length and, where the type is open, by its own
 * type code ({@link Types}): callers must pass exactly those, since native code believes them. Offsets and counts are
 * checked by native code, in elements. {@code flags} are {@link #CLEAR} and {@link #RESET}, carried out before the call does
 * anything else. Methods throw {@link NativeFailure} for what a face has its own exceptions for.
 */
public final class Native {
    /** Flag: empty the buffer first. */
    public static final int CLEAR = 1;
    /** Flag: back to the first section first. */
    public static final int RESET = 2;

    /** Flag: the byte order of the direct buffer argument is not this machine's. */
    public static final int SWAPPED = 4;

    /** Flag of a view: its section is prepared, and neither made part of the message nor passed. */
    public static final int STAGED = 8;

    /** Any source. */
    public static final int ANY_SOURCE = -2;
    /** Any tag. */
    public static final int ANY_TAG = -1;
    /** Result: not done, nothing found. */
    public static final long PENDING = -1;
    /** Result: a send is done. */
    public static final long SENT = -2;

    /** Raised together with the native side's number whenever a signature changes. */
    static final int ABI = 4;

    static {
        NativeLoader.load();
        int abi = abi();
        if (abi != ABI) {
            throw new UnsatisfiedLinkError("the native library has ABI " + abi + ", this jar needs " + ABI
                    + ": both must be of one version of mpjdev");
        }
        MemoryLimit.apply();
    }

    private Native() {}

    static native int abi();

    static native String table();

    static native String failureNames();

    /** @return {@code NAME=value} of every number that both sides must agree on, one a line */
    static native String constants();

    /** Panics in native code while it uses a buffer, so that a test can see what becomes of it.
     * @param handle a buffer
     * @param text what the panic says */
    static native void panic(long handle, String text);

    /** @param capacity octets of primary payload
     * @param order 0 big-endian, 1 little-endian
     * @return the handle of an empty buffer for writing */
    public static native long newWriter(int capacity, int order);

    /** @param capacity octets of primary payload
     * @return the handle of an empty buffer for reading */
    public static native long newReader(int capacity);

    /** Closes a buffer; a second time does nothing.
     * @param handle a buffer */
    public static native void close(long handle);

    public static native int capacity(long handle);

    public static native void ensureCapacity(long handle, int capacity);

    public static native void restoreCapacity(long handle);

    public static native long sectionCapacity(int element, int count);

    public static native void write(long handle, Object array, int length, int element, int off, int count, int flags);

    public static native void read(long handle, Object array, int length, int element, int off, int count, int flags);

    public static native void gather(long handle, Object array, int length, int element, int base, int count, int offs,
            int[] indexes, int ints, int flags);

    public static native void scatter(long handle, Object array, int length, int element, int base, int count, int offs,
            int[] indexes, int ints, int flags);

    public static native void strGather(long handle, Object array, int length, int element, int off, int rank, int exts,
            int strs, int[] indexes, int ints, int flags);

    public static native void strScatter(long handle, Object array, int length, int element, int off, int rank, int exts,
            int strs, int[] indexes, int ints, int flags);

    public static native void writeDirect(long handle, ByteBuffer source, long off, int element, int count, int flags);

    public static native void readDirect(long handle, ByteBuffer dest, long off, int element, int count, int flags);

    /** Writes a section that is filled in place.
     * @param handle a buffer for writing
     * @param element type
     * @param count elements
     * @param out gets the view's handle, and the code of the byte order of its elements
     * @param length 2
     * @param flags flags
     * @return the octets of the elements, whose memory is kept until the view is freed */
    static native ByteBuffer writeView(long handle, int element, int count, long[] out, int length, int flags);

    /** Reads a section in place.
     * @param handle a buffer for reading
     * @param element type
     * @param count elements
     * @param out gets the view's handle, and the code of the byte order of its elements
     * @param length 2
     * @param flags flags
     * @return the octets of the elements, whose memory is readable until the view is freed */
    static native ByteBuffer readView(long handle, int element, int count, long[] out, int length, int flags);

    static native void freeView(long view);

    /** Whether an object section fits.
     * @param handle a buffer for writing
     * @param flags flags
     * @return octets of secondary payload so far */
    public static native long beginObjects(long handle, int flags);

    public static native void writeObjects(long handle, int count, int flags);

    public static native void readObjects(long handle, int count, int flags);

    public static native void checkObjects(long handle, int count, int flags);

    public static native void appendSecondary(long handle, byte[] chunk, int length, int off, int count);

    public static native void truncateSecondary(long handle, long len);

    public static native int readSecondary(long handle, long at, byte[] chunk, int length, int off, int count);

    public static native long secondaryLength(long handle, int flags);

    public static native long logicalLength(long handle, int flags);

    public static native void copyLogical(long handle, byte[] dest, int length, int flags);

    public static native void load(long handle, byte[] source, int length);

    /** Looks at the next section.
     * @param handle a buffer for reading
     * @param flags flags
     * @return type code &lt;&lt; 32 | count, or -1 after the last section */
    public static native long peek(long handle, int flags);

    /** Looks at the first section, wherever reading is.
     * @param handle a buffer
     * @return type code &lt;&lt; 32 | count, or -1 when there is none */
    public static native long firstSection(long handle);

    public static native int sectionCount(long handle, int flags);

    /** Counts buffers that are not closed: for leak checks.
     * @return the number */
    public static native int openBuffers();

    /** Counts message memory in use: for leak checks.
     * @return octets */
    public static native long usedMemory();

    /** Counts requests that nobody has waited for: for leak checks.
     * @return the number */
    public static native int openRequests();

    public static native long worldOfOne();

    /** Makes this process the rank that a launcher has started it as; else rank 0 of 1. Blocks until all ranks are there.
     * @return its world communicator
     * @throws IllegalStateException when it cannot be that rank */
    public static native long processWorld();

    public static native void localJob(long[] worlds, int length, boolean messageOriented);

    public static native int rank(long comm);

    public static native int size(long comm);

    public static native void freeComm(long comm);

    public static native void finish(long comm);

    public static native void abort(long comm, String why);

    /** From now on {@link #counts} counts what this process's rank does. */
    public static native void markCounts();

    /** Tells what this process's rank has counted since {@link #markCounts}.
     * @return {@code name=value} with blanks between; empty where nothing is counted, as over shared memory */
    public static native String counts();

    /** Writes what this process's rank has counted to standard error, if {@code MPJDEV_STATS} asks for it and it was not done. */
    public static native void printStats();

    /** Whether the process has used an MPI, which is to be ended before it ends.
     * @return whether it has */
    public static native boolean usesMpi();

    /** Ends the use of an MPI: waits until all processes of the job have come here. A process that is still a rank ends the job
     * instead, and does not come back; where there was no MPI, does nothing.
     * @param why what is said of it then; empty for nothing more than that it has not finished */
    public static native void endProcess(String why);

    public static native void send(long comm, long buffer, int dest, int tag, boolean synchronous, int flags);

    /** Starts a send.
     * @param comm a communicator
     * @param buffer a buffer
     * @param dest destination
     * @param tag tag
     * @param synchronous whether the send is done only when it is matched
     * @param flags flags
     * @return a request, or 0 when the send is done already */
    public static native long isend(long comm, long buffer, int dest, int tag, boolean synchronous, int flags);

    /** Receives.
     * @param comm a communicator
     * @param buffer a buffer
     * @param source source or {@link #ANY_SOURCE}
     * @param tag tag or {@link #ANY_TAG}
     * @param out gets size, type and count
     * @return source &lt;&lt; 32 | tag */
    public static native long recv(long comm, long buffer, int source, int tag, NativeStatus out);

    /** As {@link #recv}, of one source and with one tag; gives what {@link NativeStatus#set} takes. */
    public static native long recvFrom(long comm, long buffer, int source, int tag);

    public static native long irecv(long comm, long buffer, int source, int tag);

    public static native long probe(long comm, int source, int tag, NativeStatus out);

    /** Looks for a message.
     * @param comm a communicator
     * @param source source or {@link #ANY_SOURCE}
     * @param tag tag or {@link #ANY_TAG}
     * @param out gets the size
     * @return source &lt;&lt; 32 | tag, or {@link #PENDING} */
    public static native long iprobe(long comm, int source, int tag, NativeStatus out);

    /** Takes a message out of matching.
     * @param comm a communicator
     * @param source source or {@link #ANY_SOURCE}
     * @param tag tag or {@link #ANY_TAG}
     * @return a matched message, or {@link #PENDING} */
    public static native long improbe(long comm, int source, int tag);

    public static native long matchedStatus(long matched, NativeStatus out);

    public static native long imrecv(long matched, long buffer);

    public static native void freeMatched(long matched);

    /** Waits for a request, which is gone when it is done or has failed.
     * @param request a request
     * @param nanos longest wait, negative for no end
     * @param out gets size, type and count of a receive
     * @return source &lt;&lt; 32 | tag, or {@link #SENT} */
    public static native long await(long request, long nanos, NativeStatus out);

    /** As {@link #await}, without waiting.
     * @param request a request
     * @param out gets size, type and count of a receive
     * @return source &lt;&lt; 32 | tag, {@link #SENT}, or {@link #PENDING} */
    public static native long test(long request, NativeStatus out);

    /** Waits until one of the requests is done, which it stays; zeroes are passed over.
     * @param requests requests
     * @param length their length
     * @param count how many of them
     * @param nanos longest wait, negative for no end
     * @return its place, or -1 when there are only zeroes */
    public static native int awaitAny(long[] requests, int length, int count, long nanos);

    public static native boolean cancel(long request);

    public static native void freeRequest(long request);

    public static native long startBarrier(long comm);

    public static native long startDup(long comm);

    public static native long startCreate(long comm, int[] ids, int length);

    public static native long startSplit(long comm, int color, int key);

    /** Goes on with a collective operation.
     * @param operation an operation
     * @param blocking whether to wait for its end
     * @return a communicator, 0 when it is done without one, or {@link #PENDING} */
    public static native long advance(long operation, boolean blocking);

    public static native void freeOperation(long operation);

    /** Counts the elements of a strided patch after checking it against an array of this length.
     * @param length elements of the array
     * @param off element where all indices are zero
     * @param rank number of dimensions
     * @param exts where the extents begin
     * @param strs where the strides begin
     * @param indexes extents and strides
     * @param ints its length
     * @return the number */
    public static native int patchCount(int length, int off, int rank, int exts, int strs, int[] indexes, int ints);

    public static native void patchElements(int length, int off, int rank, int exts, int strs, int[] indexes, int ints,
            int[] elements, int room);

    static native void setMemoryLimit(long limit);
}
