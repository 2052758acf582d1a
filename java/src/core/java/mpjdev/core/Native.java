package mpjdev.core;

import java.nio.ByteBuffer;

/**
 * All native methods, in one class, so that the library is loaded exactly once. Internal.
 *
 * <p><b>Handles.</b> A {@code long} argument named {@code handle}, {@code buffer}, {@code comm},
 * {@code request}, {@code operation} or {@code view} is the result of a method that makes
 * one. A stale or invented handle is an {@link IllegalStateException}. Methods that free a handle ignore one
 * that is stale.
 *
 * <p><b>Arguments.</b> An array is followed by its length, and by its type code ({@link Types}) where the
 * type is open. The caller must pass exactly those: native code trusts them, as it trusts the {@code address}
 * and the count of elements in a {@link BounceBuffer}. Offsets and counts are in elements, and native code
 * checks them ({@link ArrayIndexOutOfBoundsException}; a negative count is an
 * {@link IllegalArgumentException}). {@code flags} are {@link #CLEAR} and {@link #RESET}, and take effect
 * before the rest of the call.
 *
 * <p><b>Errors.</b> {@link NativeFailure} has a code for which a public package has an exception.
 * {@link OutOfMemoryError} means that message memory, or a table of handles, is full. {@link NativePanic} is
 * a bug of the engine.
 *
 * <p><b>Threads.</b> Any thread may call any method. Two threads that use one buffer, or advance one
 * operation, at once get an {@link IllegalStateException}. A method blocks only where its text says so; an
 * interrupt ends such a call with {@link NativeFailure#INTERRUPTED} and leaves the flag set. Virtual threads
 * do not call methods that block.
 */
public final class Native {
    /** Flag: empty the buffer first. */
    public static final int CLEAR = 1;
    /** Flag: return to the first section first. */
    public static final int RESET = 2;
    /** Flag: the direct buffer argument has the byte order that is not this machine's. */
    public static final int SWAPPED = 4;
    /** Flag of a view: prepare its section, and neither add it to the message nor move past it. */
    public static final int STAGED = 8;

    /** Any source. */
    public static final int ANY_SOURCE = -2;
    /** Any tag. */
    public static final int ANY_TAG = -1;
    /** Result: the operation is not done, or no message is there. */
    public static final long PENDING = -1;
    /** Result: a send is done. */
    public static final long SENT = -2;
    /** Result of one of several requests: it has failed. */
    public static final long FAILED = -3;
    /** Completion of several requests: all of them, or none. */
    public static final int ALL = 0;
    /** Completion of several requests: the first one that is done. */
    public static final int ANY = 1;
    /** Completion of several requests: those that are done. */
    public static final int SOME = 2;

    /**
     * Version of the native interface. It is raised on both sides when a method is removed or its signature
     * changes.
     */
    static final int ABI = 11;

    static {
        if (!SharedLibrary.load()) {
            NativeLoader.load();
        }
        int abi = abi();
        if (abi != ABI) {
            throw new UnsatisfiedLinkError("the native library has ABI " + abi + ", this jar needs " + ABI
                    + ": both must be of one version of mpjdev");
        }
        String limit = System.getProperty(MemoryLimit.LIMIT_PROPERTY);
        setMemoryLimit(limit == null ? Runtime.getRuntime().maxMemory() : MemoryLimit.of(limit));
    }

    private Native() {}

    /**
     * Returns whether the calling thread is interrupted. The flag stays set. Native code asks in each wait,
     * and each rank waits when it joins: a class of its own would be one more to load.
     */
    static boolean isInterrupted() {
        return Thread.currentThread().isInterrupted();
    }

    // ---- The library

    /**
     * Initialises the library and returns its version of this interface. The static initialiser calls it
     * first.
     */
    static native int abi();

    /** Returns {@code name(signature)result} of every native method, one a line, for a test. */
    static native String table();

    /**
     * Returns the names of the failure codes in the order of their numbers from 1, one a line, for a test.
     */
    static native String failureNames();

    /** Returns {@code NAME=value} of every number that both sides must agree on, one a line, for a test. */
    static native String constants();

    /**
     * Panics with this text while it uses the buffer, for a test of the panic boundary: always a
     * {@link NativePanic}.
     */
    static native void panic(long handle, String text);

    /** Limits the message memory of the process to {@code limit} octets; a negative number means 0. */
    static native void setMemoryLimit(long limit);

    /** Returns the number of open buffers, for leak checks. */
    public static native int openBuffers();

    /** Returns the octets of message memory in use, for leak checks and for the reclaimer. */
    public static native long usedMemory();

    /** Returns the number of requests that were neither completed nor freed, for leak checks. */
    public static native int openRequests();

    // ---- Buffers

    /**
     * Makes an empty buffer for writing. {@code capacity} is in octets of primary payload, 0 to 2147483624,
     * and is rounded up to a multiple of 8; {@code order} is 0 for big-endian, 1 for little-endian. A
     * capacity out of range is an {@link IllegalArgumentException}. Returns the handle.
     */
    public static native long newWriter(int capacity, int order);

    /** Makes an empty buffer for reading; {@code capacity} as for {@link #newWriter}. Returns the handle. */
    public static native long newReader(int capacity);

    /** Closes a buffer and releases its memory as soon as no message in flight needs it. Does not block. */
    public static native void close(long handle);

    /** Returns the octets of primary payload that fit into the buffer. */
    public static native int capacity(long handle);

    /**
     * Raises the capacity to at least {@code capacity} octets, rounded up to a multiple of 8, and discards
     * the contents.
     */
    public static native void ensureCapacity(long handle, int capacity);

    /** Returns to the capacity of construction, releases the memory beyond it and discards the contents. */
    public static native void restoreCapacity(long handle);

    /**
     * Returns the octets of capacity that a section of {@code count} elements takes:
     * {@code 8 + 8 * ceil(count * size / 8)}. The result may exceed every capacity.
     */
    public static native long sectionCapacity(int element, int count);

    /**
     * Returns the number of sections: of the whole message in a buffer for reading, of those written so far
     * otherwise. A damaged message is {@link NativeFailure#DAMAGED}.
     */
    public static native int sectionCount(long handle, int flags);

    // ---- Sections of arrays

    /**
     * Adds a section of {@code array[off]} to {@code array[off + count - 1]}; {@link NativeFailure#OVERFLOW}
     * if it does not fit. A call that fails adds nothing.
     */
    public static native void write(long handle, Object array, int length, int element, int off, int count, int flags);

    /** As {@link #write}, of elements in the {@link BounceBuffer} of the calling thread. */
    public static native void writeBounced(long handle, long address, int count, int element, int flags);

    /**
     * Reads the next section into {@code array[off]} to {@code array[off + count - 1]}. A call that fails
     * leaves the position: {@link NativeFailure#TYPE_MISMATCH}, {@link NativeFailure#SIZE_MISMATCH},
     * {@link NativeFailure#END_OF_SECTIONS} or {@link NativeFailure#DAMAGED}.
     */
    public static native void read(long handle, Object array, int length, int element, int off, int count, int flags);

    /** As {@link #read}, to the {@link BounceBuffer} of the calling thread. */
    public static native void readBounced(long handle, long address, int count, int element, int flags);

    /**
     * Adds a section of the elements {@code array[base + indexes[offs + k]]}, k from 0 to count - 1. Errors
     * as for {@link #write}. {@code ints} is the length of {@code indexes}.
     */
    public static native void gather(long handle, Object array, int length, int element, int base, int count, int offs,
            int[] indexes, int ints, int flags);

    /**
     * Reads the next section into the elements {@code array[base + indexes[offs + k]]}, k from 0 to count -
     * 1. Errors as for {@link #read}. {@code ints} is the length of {@code indexes}.
     */
    public static native void scatter(long handle, Object array, int length, int element, int base, int count, int offs,
            int[] indexes, int ints, int flags);

    /**
     * Adds a section of a strided patch: {@code array[off + sum of i[d] * indexes[strs + d]]}, i[d] below
     * {@code indexes[exts + d]}, d from 0 to rank - 1, the last dimension fastest. Errors as for
     * {@link #write}, and {@link IllegalArgumentException} for negative extents or too many elements. The
     * indices are copied before the check.
     */
    public static native void strGather(long handle, Object array, int length, int element, int off, int rank, int exts,
            int strs, int[] indexes, int ints, int flags);

    /**
     * Reads the next section into a strided patch as of {@link #strGather}. Errors as there and as for
     * {@link #read}.
     */
    public static native void strScatter(long handle, Object array, int length, int element, int off, int rank, int exts,
            int strs, int[] indexes, int ints, int flags);

    /**
     * Checks a strided patch as of {@link #strGather} against an array of {@code length} elements. Returns
     * its number of elements.
     */
    public static native int patchCount(int length, int off, int rank, int exts, int strs, int[] indexes, int ints);

    /**
     * Checks a patch as {@link #patchCount} does and writes its element numbers into {@code elements}, at
     * most {@code room} of them, the last dimension fastest.
     */
    public static native void patchElements(int length, int off, int rank, int exts, int strs, int[] indexes, int ints,
            int[] elements, int room);

    // ---- Sections of direct buffers and views

    /**
     * Adds a section of {@code count} elements of a direct buffer; {@code off} is in octets from its address.
     * Errors as for {@link #write}, and {@link IllegalArgumentException} for a heap buffer, a type that is
     * not primitive or a view of the same message. The caller keeps the buffer and its arena alive during the
     * call.
     */
    public static native void writeDirect(long handle, ByteBuffer source, long off, int element, int count, int flags);

    /**
     * Reads the next section into a direct buffer. Arguments as for {@link #writeDirect}, errors as there and
     * as for {@link #read}.
     */
    public static native void readDirect(long handle, ByteBuffer dest, long off, int element, int count, int flags);

    /**
     * Adds a section of a primitive type that Java fills in place. {@code out} receives the handle of the
     * view and the byte order of its elements (0 big-endian, 1 little-endian); {@code length} is 2. Returns
     * the octets of the elements, a direct buffer whose memory stays valid until {@link #freeView}. Errors as
     * for {@link #write}.
     */
    static native ByteBuffer writeView(long handle, int element, int count, long[] out, int length, int flags);

    /**
     * Reads the next section in place. Arguments and result as for {@link #writeView}, errors as for
     * {@link #read}.
     */
    static native ByteBuffer readView(long handle, int element, int count, long[] out, int length, int flags);

    /** Releases the memory of a view. Its direct buffer must be unreachable. */
    static native void freeView(long view);

    // ---- Sections of objects

    /**
     * Checks that a section of objects fits and that its stream can be continued. Returns the octets of
     * secondary payload so far, to which {@link #truncateSecondary} returns after a failure.
     * {@link NativeFailure#OVERFLOW} if it does not fit, {@link IllegalStateException} if the message was
     * received and its stream cannot be continued.
     */
    public static native long beginObjects(long handle, int flags);

    /**
     * Adds the header of a section of {@code count} objects, whose stream {@link #appendSecondary} has added.
     * Errors as for {@link #write}.
     */
    public static native void writeObjects(long handle, int count, int flags);

    /** Checks that the next section is one of {@code count} objects. Errors as for {@link #read}. */
    public static native void checkObjects(long handle, int count, int flags);

    /** Moves past a section of {@code count} objects. Errors as for {@link #read}. */
    public static native void readObjects(long handle, int count, int flags);

    /**
     * Appends {@code chunk[off]} to {@code chunk[off + count - 1]} to the secondary payload of a buffer for
     * writing.
     */
    public static native void appendSecondary(long handle, byte[] chunk, int length, int off, int count);

    /** Shortens the secondary payload of a buffer for writing to {@code len} octets. */
    public static native void truncateSecondary(long handle, long len);

    /**
     * Copies up to {@code count} octets of the secondary payload, from octet {@code at} on, to
     * {@code chunk[off]} and on. Returns the number of octets copied, 0 at the end of the payload.
     */
    public static native int readSecondary(long handle, long at, byte[] chunk, int length, int off, int count);

    /** Returns the octets of secondary payload of a buffer, 0 if it is empty. */
    public static native long secondaryLength(long handle, int flags);

    // ---- Whole messages

    /**
     * Returns the octets of the logical message: 16 of headers and both payloads; 0 for a buffer that has
     * received nothing.
     */
    public static native long logicalLength(long handle, int flags);

    /** Copies the logical message into an array of {@link #logicalLength} octets. */
    public static native void copyLogical(long handle, byte[] dest, int length, int flags);

    /**
     * Copies a logical message out of an array into a buffer for reading. {@link NativeFailure#DAMAGED} or
     * {@link NativeFailure#TRUNCATED} leaves the buffer unchanged.
     */
    public static native void load(long handle, byte[] source, int length);

    /**
     * Returns {@code type code << 32 | count} of the next section of a buffer for reading, -1 after the last
     * one. {@link NativeFailure#DAMAGED} if its header is damaged.
     */
    public static native long peek(long handle, int flags);

    /**
     * Returns {@code type code << 32 | count} of the first section of any buffer, -1 if it has no section.
     */
    public static native long firstSection(long handle);

    /** Returns whether the message of any buffer is one section of bytes that are a packing unit. */
    public static native boolean isUnit(long handle);

    // ---- Ranks and jobs

    /** Makes a job of one rank in this process. Returns its world communicator. */
    public static native long worldOfOne();

    /**
     * Makes this process the rank that its launcher has assigned, or rank 0 of 1 without a launcher. Blocks
     * until all ranks have joined. Returns the world communicator. {@link IllegalStateException} if the
     * process cannot join, {@link NativeFailure#PEER_FAILED} if a rank has ended before it joined.
     */
    public static native long processWorld();

    /** Makes a communicator of the calling rank alone, without a message to others. Returns it. */
    public static native long selfComm(long comm);

    /**
     * Makes a job of {@code length} ranks in this process and stores their world communicators in
     * {@code worlds}. {@code messageOriented} splits messages as between processes.
     */
    public static native void localJob(long[] worlds, int length, boolean messageOriented);

    /** Returns the number of the calling rank in the communicator. */
    public static native int rank(long comm);

    /** Returns the number of ranks of the communicator. */
    public static native int size(long comm);

    /**
     * Ends a communicator at this rank and drops its unmatched messages. Posted receives stay. Does not
     * block.
     */
    public static native void freeComm(long comm);

    /**
     * Ends the rank of this communicator. Blocks until its sends are delivered, and prints the warning of
     * unreceived messages. {@link NativeFailure#UNDELIVERED} names messages that could not be delivered; the
     * rank has ended nevertheless.
     */
    public static native void finish(long comm);

    /**
     * Fails all operations of all ranks of the job, with {@code why} in their texts. Does not block. Over a C
     * MPI it ends the processes of the job, this one too.
     */
    public static native void abort(long comm, String why);

    /**
     * Returns whether this process has initialised a C MPI, so that {@link #endProcess} must be called before
     * it ends.
     */
    public static native boolean usesMpi();

    /**
     * Finalises the C MPI of this process, if any. Blocks until all processes of the job call it. A process
     * that is still a rank ends the job instead and does not return; {@code why} is the reason, empty for "it
     * has not finished".
     */
    public static native void endProcess(String why);

    /**
     * Ends all processes of a job under a C MPI, this one too, with an exit status from 1 to 255; {@code why}
     * is the reason. Returns if no C MPI carries the messages of this process.
     */
    public static native void endJob(int status, String why);

    // ---- Statistics

    /** Sets the mark that {@link #counts} counts from, for the rank of this process. */
    public static native void markCounts();

    /**
     * Returns what the rank of this process has counted since {@link #markCounts}, as {@code name=value} with
     * blanks between them; empty on transports that count nothing, such as shared memory.
     */
    public static native String counts();

    /**
     * Prints the statistics of the rank of this process to standard error, once, if {@code MPJDEV_STATS} asks
     * for them, and writes its profile, if {@code MPJDEV_PROFILE} names a folder.
     */
    public static native void reportEnd();

    /** Pauses the profile of the rank of this process, or resumes it: for a benchmark. */
    public static native void pauseProfile(boolean paused);

    // ---- Messages

    /**
     * Sends the message in {@code buffer}. Blocks until it has left this rank or, if {@code synchronous},
     * until a receive has matched it. The message is captured first: the buffer is free while the call
     * blocks, and a failed or interrupted call may still deliver it. {@link NativeFailure#BAD_ARGUMENT},
     * {@link NativeFailure#PEER_FAILED}.
     */
    public static native void send(long comm, long buffer, int dest, int tag, boolean synchronous, int flags);

    /**
     * Starts a send; arguments as for {@link #send}. The buffer is free when the call returns. Does not
     * block. Returns a request, or 0 if the send is done.
     */
    public static native long isend(long comm, long buffer, int dest, int tag, boolean synchronous, int flags);

    /**
     * Receives a message into {@code buffer}, from a source or {@link #ANY_SOURCE}, with a tag or
     * {@link #ANY_TAG}. Blocks. Returns {@code source << 32 | tag}; {@code out} receives size, type and
     * count. A failure empties the buffer, except {@link NativeFailure#BAD_ARGUMENT} and
     * {@link NativeFailure#NOT_INITIALIZED}.
     */
    public static native long recv(long comm, long buffer, int source, int tag, NativeStatus out);

    /**
     * As {@link #recv}, for one source and one tag. Returns size, type and count as {@link NativeStatus#set}
     * takes them.
     */
    public static native long recvFrom(long comm, long buffer, int source, int tag);

    /**
     * Posts a receive; arguments as for {@link #recv}. The buffer is emptied and in use until the request is
     * done. Does not block. Returns a request.
     */
    public static native long irecv(long comm, long buffer, int source, int tag);

    /**
     * Blocks until a message matches a source or {@link #ANY_SOURCE} and a tag or {@link #ANY_TAG}; receives
     * nothing. Returns {@code source << 32 | tag}; {@code out} receives size, type and count.
     */
    public static native long probe(long comm, int source, int tag, NativeStatus out);

    /** As {@link #probe}, without blocking: {@link #PENDING} if no message matches. */
    public static native long iprobe(long comm, int source, int tag, NativeStatus out);

    /**
     * Returns the count of the first section of the message that {@link #iprobe} finds, also a count that is
     * too large for a {@link NativeStatus}; {@link #PENDING} if there is none.
     */
    public static native long probedCount(long comm, int source, int tag);

    // ---- Messages between arrays

    /**
     * Sends {@code array[off]} to {@code array[off + count - 1]} as a message of one section. Blocks as
     * {@link #send} does. The elements are captured when the call returns. Errors as for {@link #send};
     * {@link IllegalArgumentException} if a message cannot hold the elements.
     */
    public static native void sendArray(long comm, Object array, int length, int element, int off, int count, int dest,
            int tag, boolean synchronous);

    /** Returns the address of a direct buffer. */
    static native long addressOf(ByteBuffer buffer);

    /**
     * Sends {@code count} elements in the {@link BounceBuffer} of the calling thread, at this address, as
     * {@link #sendArray} does.
     */
    public static native void sendBounced(long comm, long address, int count, int element, int dest, int tag,
            boolean synchronous);

    /**
     * As {@link #recvArray}, of at most {@code count} elements to the {@link BounceBuffer} of the calling
     * thread.
     */
    public static native long recvBounced(long comm, long address, int count, int element, int source, int tag,
            NativeStatus out);

    /** As {@link #recvArrayFrom}, to the {@link BounceBuffer} of the calling thread. */
    public static native long recvBouncedFrom(long comm, long address, int count, int element, int source, int tag);

    /** Starts a send; arguments as for {@link #sendArray}. Does not block. Returns as {@link #isend} does. */
    public static native long isendArray(long comm, Object array, int length, int element, int off, int count, int dest,
            int tag, boolean synchronous);

    /**
     * Receives a message of one section of at most {@code count} elements into {@code array[off]} and on.
     * Blocks. Returns {@code source << 32 | tag}; {@code out} receives {@code size << 32 | elements}. A
     * failure leaves the array unchanged, unless the sender fails while it packs a long message: the elements
     * before are stored then. {@link NativeFailure#TYPE_MISMATCH} if the message holds anything
     * but one section of the type, {@link NativeFailure#TRUNCATED} if it is longer; it is lost then.
     */
    public static native long recvArray(long comm, Object array, int length, int element, int off, int count,
            int source, int tag, NativeStatus out);

    /** As {@link #recvArray}, for one source and one tag. Returns {@code size << 32 | elements}. */
    public static native long recvArrayFrom(long comm, Object array, int length, int element, int off, int count,
            int source, int tag);

    /**
     * Starts a receive; arguments as for {@link #recvArray}. Does not block. Returns a request, which only
     * {@link #awaitArray} and {@link #testArray} complete. The caller keeps the array. If the message has
     * arrived, it is stored, and the result is negative: the complement of that of {@link #recvArray}.
     */
    public static native long irecvArray(long comm, Object array, int length, int element, int off, int count,
            int source, int tag, NativeStatus out);

    /**
     * Starts a send of elements in the {@link BounceBuffer} of the calling thread; arguments as for
     * {@link #sendBounced}. Does not block. Returns as {@link #isend} does.
     */
    public static native long isendBounced(long comm, long address, int count, int element, int dest, int tag,
            boolean synchronous);

    /**
     * As {@link #irecvArray}, for one source and one tag, into {@code count} elements from {@code off} on of
     * an array of {@code length}. A message that has arrived is stored in the {@link BounceBuffer} of the
     * calling thread, and the result is the complement of that of {@link #recvArrayFrom}.
     */
    public static native long irecvBouncedFrom(long comm, long address, int count, int element, int length, int off,
            int source, int tag);

    /**
     * Waits as {@link #await} does for a receive into this array, and stores its elements. Result and errors
     * as for {@link #recvArray}.
     */
    public static native long awaitArray(long request, Object array, int length, int element, long nanos,
            NativeStatus out);

    /** As {@link #awaitArray}, without blocking: {@link #PENDING} if the request is not done. */
    public static native long testArray(long request, Object array, int length, int element, NativeStatus out);

    /**
     * Starts a send as {@link #isendArray}, receives as {@link #recvArray}, and waits for the send. Blocks.
     * Result and errors as there. A send outlives the failure of its receive.
     */
    public static native long sendrecvArray(long comm, Object from, int fromLength, int fromElement, int fromOff,
            int sendCount, int dest, int sendTag, Object to, int toLength, int toElement, int toOff, int recvCount,
            int source, int recvTag, NativeStatus out);

    /**
     * Sends the elements {@code array[indexes[offs + k]]}, k from 0 to count - 1, as {@link #sendArray} does.
     * {@code ints} is the length of {@code indexes}.
     */
    public static native void sendGathered(long comm, Object array, int length, int element, int count, int offs,
            int[] indexes, int ints, int dest, int tag);

    /** Starts a send; arguments as for {@link #sendGathered}. Does not block. Returns as {@link #isend}. */
    public static native long isendGathered(long comm, Object array, int length, int element, int count, int offs,
            int[] indexes, int ints, int dest, int tag);

    /**
     * Receives into the elements {@code array[indexes[offs + k]]} as {@link #recvArray} does. All indices are
     * checked first. If another thread then stores an index outside the array, the message is lost, and
     * elements may have been stored.
     */
    public static native long recvScattered(long comm, Object array, int length, int element, int count, int offs,
            int[] indexes, int ints, int source, int tag, NativeStatus out);

    /**
     * Posts a receive, which {@link #awaitArray} and {@link #testArray} complete; arguments as for
     * {@link #recvScattered}. The indices are checked and copied.
     */
    public static native long irecvScattered(long comm, Object array, int length, int element, int count, int offs,
            int[] indexes, int ints, int source, int tag);

    /** Sends a strided patch, as of {@link #strGather}, as {@link #sendArray} does. */
    public static native void sendPatch(long comm, Object array, int length, int element, int off, int rank, int exts,
            int strs, int[] indexes, int ints, int dest, int tag);

    /** Starts a send; arguments as for {@link #sendPatch}. Does not block. Returns as {@link #isend}. */
    public static native long isendPatch(long comm, Object array, int length, int element, int off, int rank, int exts,
            int strs, int[] indexes, int ints, int dest, int tag);

    /** Receives into the first elements of a strided patch, as {@link #recvArray} does. */
    public static native long recvPatch(long comm, Object array, int length, int element, int off, int rank, int exts,
            int strs, int[] indexes, int ints, int source, int tag, NativeStatus out);

    /**
     * Posts a receive as {@link #irecvScattered} does; arguments as for {@link #recvPatch}. Copies the patch.
     */
    public static native long irecvPatch(long comm, Object array, int length, int element, int off, int rank, int exts,
            int strs, int[] indexes, int ints, int source, int tag);

    /** As {@link #sendrecvArray}, with the indices of {@link #sendGathered} and {@link #recvScattered}. */
    public static native long sendrecvIndexed(long comm, Object from, int fromLength, int fromElement, int sendCount,
            int fromOffs, int[] fromIndexes, int fromInts, int dest, int sendTag, Object to, int toLength,
            int toElement, int recvCount, int toOffs, int[] toIndexes, int toInts, int source, int recvTag,
            NativeStatus out);

    /** As {@link #sendrecvArray}, with the patches of {@link #sendPatch} and {@link #recvPatch}. */
    public static native long sendrecvPatch(long comm, Object from, int fromLength, int fromElement, int fromOff,
            int fromRank, int fromExts, int fromStrs, int[] fromIndexes, int fromInts, int dest, int sendTag,
            Object to, int toLength, int toElement, int toOff, int toRank, int toExts, int toStrs, int[] toIndexes,
            int toInts, int source, int recvTag, NativeStatus out);

    // ---- Requests

    /**
     * Blocks until the request is done, at most {@code nanos} nanoseconds; a negative number means no limit.
     * Returns {@code source << 32 | tag}, and size, type and count in {@code out}, or {@link #SENT}. The
     * handle is freed when the request is done or has failed, but not by {@link NativeFailure#TIMED_OUT} or
     * {@link NativeFailure#INTERRUPTED}.
     */
    public static native long await(long request, long nanos, NativeStatus out);

    /** As {@link #await}, without blocking: {@link #PENDING} if the request is not done. */
    public static native long test(long request, NativeStatus out);

    /**
     * Blocks until one of the first {@code count} requests is done, at most {@code nanos} nanoseconds; zeroes
     * are skipped. Returns its index, -1 if all are zero. The request stays: {@link #test} takes its result.
     * Requests of different ranks are {@link NativeFailure#BAD_ARGUMENT}.
     */
    public static native int awaitAny(long[] requests, int length, int count, long nanos);

    /**
     * Completes requests of one rank, as {@link #await}, {@link #test}, {@link #awaitArray} and
     * {@link #testArray} do: {@link #ALL}, {@link #ANY} or {@link #SOME} of them. Zeroes are skipped. Blocks
     * if {@code blocking}, until there is one, or all are done. {@code arrays} has the array of each receive
     * into one. {@code results} receives for each request {@code source << 32 | tag} or {@link #SENT}, and
     * size, type and count, or for a receive into an array {@code size << 32 | elements}; {@link #PENDING}
     * for one that is not completed; {@link #FAILED} for one that has failed, whose exception replaces its
     * array.
     * Returns the number of completed requests, failed ones included. Results are stored also if the wait is
     * interrupted. Requests of different ranks are {@link NativeFailure#BAD_ARGUMENT}.
     */
    public static native int completeRequests(long[] requests, int length, Object[] arrays, int arrayCount,
            long[] results, int room, int how, boolean blocking);

    /**
     * Cancels a request. Does not block. Returns whether it will never complete; a wait then throws
     * {@link NativeFailure#CANCELLED}. A request that is done or stale returns false.
     */
    public static native boolean cancel(long request);

    /**
     * Returns the requests of the communicator's rank that its end has left incomplete: sends that have
     * failed in bits 32 to 62, receives below. For a rank that has {@linkplain #finish finished}. Does not
     * block.
     */
    public static native long incompleteRequests(long comm);

    /** Detaches a request: its operation continues, and a receive keeps its buffer in use. Does not block. */
    public static native void freeRequest(long request);

    // ---- Collective operations

    /** Waits until all ranks have called it. Blocks. */
    public static native void barrier(long comm);

    /** Starts a barrier. Does not block. Returns an operation, which {@link #advance} completes. */
    public static native long startBarrier(long comm);

    /** Starts to duplicate the communicator. Does not block. Returns an operation. */
    public static native long startDup(long comm);

    /**
     * Starts to make a communicator of the ranks {@code ids}, in that order, which all of them pass. Does not
     * block. Returns an operation.
     */
    public static native long startCreate(long comm, int[] ids, int length);

    /**
     * Starts to split the communicator by {@code color}, negative for none, in the order of {@code key}. Does
     * not block. Returns an operation.
     */
    public static native long startSplit(long comm, int color, int key);

    /**
     * Starts to make an intercommunicator of this communicator's group and another one. {@code leader} is a
     * rank of this communicator, {@code remoteLeader} the other leader's rank in {@code peer}. Only the
     * leader uses the last three arguments. Does not block. Returns an operation.
     */
    public static native long startIntercomm(long comm, int leader, long peer, int remoteLeader, int tag);

    /**
     * Starts to make a communicator of both groups of an intercommunicator, those that pass {@code high}
     * last. Does not block. Returns an operation.
     */
    public static native long startMerge(long comm, boolean high);

    /**
     * Advances a collective operation; {@code blocking} waits for its end. Returns the new communicator, 0 if
     * it is done without one, or {@link #PENDING}. The operation is freed when it is done or has failed, but
     * not by an interrupt. {@link NativeFailure#ABANDONED}, {@link NativeFailure#PEER_FAILED},
     * {@link NativeFailure#BAD_ARGUMENT}, {@link NativeFailure#BAD_GROUP}.
     */
    public static native long advance(long operation, boolean blocking);

    /**
     * Frees a collective operation. An operation that is not done is abandoned, and the other ranks are
     * notified.
     */
    public static native void freeOperation(long operation);

    // ---- Collective operations with data

    /** Code of {@link #moveBlocks}: a block of each rank to the root. */
    public static final int GATHER = 0;
    /** As {@link #GATHER}, with a count and an offset for each rank at the root. */
    public static final int GATHERV = 1;
    /** Code of {@link #moveBlocks}: a block of the root to each rank. */
    public static final int SCATTER = 2;
    /** As {@link #SCATTER}, with a count and an offset for each rank at the root. */
    public static final int SCATTERV = 3;
    /** Code of {@link #moveBlocks}: a block of each rank to all. */
    public static final int ALLGATHER = 4;
    /** As {@link #ALLGATHER}, with a count and an offset for each rank. */
    public static final int ALLGATHERV = 5;
    /** Code of {@link #moveBlocks}: a block of each rank to each rank. */
    public static final int ALLTOALL = 6;
    /** As {@link #ALLTOALL}, with a count and an offset for each rank on both sides. */
    public static final int ALLTOALLV = 7;

    /** Code of {@link #reduce}: the result at the root. */
    public static final int REDUCE = 0;
    /** Code of {@link #reduce}: the result at all ranks. */
    public static final int ALLREDUCE = 1;
    /** Code of {@link #reduce}: a part of the result at each rank. */
    public static final int REDUCE_SCATTER = 2;
    /** Code of {@link #reduce}: at each rank the result of the ranks up to it. */
    public static final int SCAN = 3;

    /**
     * Sends {@code count} items of the root, the first one at element {@code off}, to all other ranks. All
     * ranks call it, as all methods of this section. Blocks. Elements outside the array are an
     * {@link ArrayIndexOutOfBoundsException}, here and below.
     */
    public static native void bcast(long comm, long datatype, Object array, int length, int element, int off,
            int count, int root);

    /**
     * Moves blocks of items between all ranks, as {@code how} says. Blocks. The arrays may be the same: then
     * all blocks are packed first. After a failure some blocks may be stored.
     *
     * <p>On a side with one block, or with equal blocks behind each other, the array of blocks is
     * {@code {offset in elements, count in items}} of the first one. In the calls with counts for each rank
     * it has the offset and the count of each rank in turn. A side that this rank has no part in is not
     * read: its arrays are empty.
     */
    public static native void moveBlocks(long comm, int how, int root, long sendType, Object from, int fromLength,
            int fromElement, int[] sendBlocks, int sendInts, long recvType, Object to, int toLength, int toElement,
            int[] recvBlocks, int recvInts);

    /**
     * Combines vectors of items of all ranks by a predefined operation, from 0 for the maximum to 11 for the
     * minimum with its index. Blocks. {@link #REDUCE_SCATTER} has the items of each rank's part in
     * {@code counts}; the other calls have their number in {@code count}. An operation that does not combine
     * elements of the type is an {@link IllegalArgumentException}.
     */
    public static native void reduce(long comm, int how, int root, int op, long datatype, Object from,
            int fromLength, int fromElement, int fromOff, Object to, int toLength, int toElement, int toOff,
            int count, int[] counts, int countsLength);

    /**
     * Sends elements in the {@link BounceBuffer} of the root's thread to those of all other ranks. Blocks. A
     * rank that gets fewer elements keeps those behind them.
     */
    public static native void bcastBounced(long comm, long address, int count, int element, int root);

    /**
     * Moves equal blocks of elements in the {@link BounceBuffer} of the calling thread, as {@code how} says:
     * {@link #GATHER} or {@link #SCATTER}. Blocks. The root has a block of each rank, its own among them, and
     * the other ranks have their own one.
     */
    public static native void moveAtRootBounced(long comm, int how, int root, long address, int count,
            int element);

    /**
     * Moves equal blocks of elements in the {@link BounceBuffer} of the calling thread, as {@code how} says:
     * {@link #ALLGATHER} or {@link #ALLTOALL}. Blocks. {@code count} elements have room for a block of each
     * rank. The rank sends the first block, or all, and gets one of each rank.
     */
    public static native void moveBounced(long comm, int how, long address, int count, int element);

    /**
     * Replaces the elements in the {@link BounceBuffer} of the calling thread by a result, if the rank gets
     * one, as {@code how} says: {@link #REDUCE}, {@link #ALLREDUCE}, {@link #SCAN}, or
     * {@link #REDUCE_SCATTER} with a block for each rank, all of one length, whose result replaces the first
     * one. Blocks. Operations as for {@link #reduce}.
     */
    public static native void reduceBounced(long comm, int how, int root, int op, long address, int count,
            int element);

    /**
     * As {@link #reduce}, by a combiner. It finds the vector of the lower ranks in {@code low} and that of
     * the higher ranks in {@code high}, the first item at element {@code base}, and puts the result into
     * {@code high}. What it throws is thrown here.
     */
    public static native void reduceWith(long comm, int how, int root, boolean commutative, long datatype,
            Object from, int fromLength, int fromElement, int fromOff, Object to, int toLength, int toElement,
            int toOff, int count, int[] counts, int countsLength, Combiner combiner, Object low, int lowLength,
            int lowElement, Object high, int highLength, int highElement, int base);

    // ---- Types

    /** Code of the basic datatype of packed octets, behind the codes of {@link Types}. */
    public static final int PACKED = 9;
    /** Code of the datatype that marks a lower bound. */
    public static final int LOWER_MARK = 10;
    /** Code of the datatype that marks an upper bound. */
    public static final int UPPER_MARK = 11;
    /** Code of the base type of a datatype without elements. */
    public static final int NO_BASE = -1;

    /**
     * Returns a datatype of {@code count} items, one extent apart. A datatype is a handle, or
     * {@code -1 - code} of a basic one: of {@link Types}, {@link #PACKED}, {@link #LOWER_MARK} or
     * {@link #UPPER_MARK}. Types that are too large or too complex are an {@link IllegalArgumentException},
     * here and below.
     */
    public static native long typeContiguous(long old, int count);

    /**
     * Returns a datatype of {@code count} blocks of {@code block} items. {@code stride} counts extents of the
     * old type, or elements.
     */
    public static native long typeVector(long old, int count, int block, int stride, boolean elements);

    /**
     * Returns a datatype of one block for each pair of a number of items and a displacement. Displacements
     * count extents of the old type, or elements.
     */
    public static native long typeIndexed(long old, int[] blocks, int blockCount, int[] displacements,
            int displacementCount, boolean elements);

    /** As {@link #typeIndexed} in elements, with an old type for each block; all have one base type. */
    public static native long typeStruct(int[] blocks, int blockCount, int[] displacements,
            int displacementCount, long[] types, int typeCount);

    /**
     * Stores code of the base type, size, lower bound and upper bound, and 1 if items are consecutive
     * elements without gaps. {@code out} has room for five.
     */
    public static native void typeInfo(long datatype, int[] out, int room);

    /**
     * Stores the elements that {@code count} items at {@code off} have in an array of {@code length}
     * elements, in the order of a message, as many as there is room for. Returns the number of all.
     */
    public static native int typeElements(long datatype, int off, int count, int length, int[] out, int room);

    /** Frees a datatype. Types that were made of it stay. */
    public static native void freeType(long datatype);

    // ---- Typed messages

    /**
     * Sends {@code count} items of a datatype, the first one at element {@code off}, as one section. Blocks
     * as {@link #sendArray}. The array has elements of the base type. Elements outside it are an
     * {@link ArrayIndexOutOfBoundsException}, here and below.
     */
    public static native void sendTyped(long comm, long datatype, Object array, int length, int element, int off,
            int count, int dest, int tag, boolean synchronous);

    /** Starts {@link #sendTyped}. Returns a request, 0 when the send is done. The elements are captured. */
    public static native long isendTyped(long comm, long datatype, Object array, int length, int element, int off,
            int count, int dest, int tag, boolean synchronous);

    /**
     * Receives a message of one section of the base type into items of a datatype, as {@link #recvArray}. A
     * shorter message fills the first elements, in the order of the type.
     */
    public static native long recvTyped(long comm, long datatype, Object array, int length, int element, int off,
            int count, int source, int tag, NativeStatus out);

    /** As {@link #recvTyped} with a given source and tag, and the result of {@link #recvArrayFrom}. */
    public static native long recvTypedFrom(long comm, long datatype, Object array, int length, int element,
            int off, int count, int source, int tag);

    /**
     * Starts a receive into items of a datatype, as {@link #irecvArray} does. The datatype may be freed
     * before the receive is done.
     */
    public static native long irecvTyped(long comm, long datatype, Object array, int length, int element, int off,
            int count, int source, int tag, NativeStatus out);

    /** {@link #sendrecvArray} of items of two datatypes. The arrays may be the same. */
    public static native long sendrecvTyped(long comm, long fromType, Object from, int fromLength, int fromElement,
            int fromOff, int sendCount, int dest, int sendTag, long toType, Object to, int toLength, int toElement,
            int toOff, int recvCount, int source, int recvTag, NativeStatus out);

    // ---- Packing units

    /**
     * Appends {@code count} items of a datatype as a section to a packing unit, an array of {@code room}
     * octets: at {@code position}, rounded up to a multiple of 8. Returns the position behind the section.
     * {@link NativeFailure#OVERFLOW} if it does not fit.
     */
    public static native int pack(long datatype, Object array, int length, int element, int off, int count, byte[] unit,
            int room, int position);

    /**
     * Stores the elements of the section at {@code position} in the first elements of {@code count} items.
     * Returns the position behind the section. {@link NativeFailure#TYPE_MISMATCH};
     * {@link NativeFailure#TRUNCATED} if it has more elements; {@link NativeFailure#DAMAGED} if there is
     * none.
     */
    public static native int unpack(byte[] unit, int available, int position, long datatype, Object array, int length,
            int element, int off, int count);

    /**
     * Returns {@code type code << 32 | count} of the section of a packing unit at {@code position}.
     * {@link NativeFailure#DAMAGED} if there is none.
     */
    public static native long unitSection(byte[] unit, int available, int position);

    /**
     * Appends the section of objects of a buffer for writing, with its stream. Results and errors are those
     * of {@link #pack}.
     */
    public static native int packObjects(long handle, byte[] unit, int room, int position);

    /**
     * Loads the section of objects at {@code position} into a buffer for reading. Results and errors are
     * those of {@link #unpack}.
     */
    public static native int unpackObjects(byte[] unit, int available, int position, long handle);

    // ---- Groups and topologies

    /** Combination: the members of both, those of the first group first. */
    public static final int UNION = 0;
    /** Combination: the members of the first group that the second one has too. */
    public static final int INTERSECTION = 1;
    /** Combination: the members of the first group that the second one does not have. */
    public static final int DIFFERENCE = 2;
    /** Combination: the members of the first group with the ranks in the second list. */
    public static final int INCLUSION = 3;
    /** Combination: the members of the first group with other ranks. */
    public static final int EXCLUSION = 4;

    /**
     * Combines two groups, or a group and ranks, by {@link #UNION} to {@link #EXCLUSION}. A group is a list
     * of numbers, each once. Stores the members, for which there is room, and returns their number. A rank
     * outside the group or named twice is an {@link IllegalArgumentException}.
     */
    public static native int groupCombine(int how, int[] a, int aSize, int[] b, int bSize, int[] out, int room);

    /**
     * Includes or excludes the members of ranges of ranks. Each range is a first rank, a last rank that need
     * not be hit, and a stride. Results and errors are those of {@link #groupCombine}.
     */
    public static native int groupRanges(int[] members, int size, int[] ranges, int count, boolean excluded,
            int[] out, int room);

    /** Stores the rank in b of each of these ranks of a: -1 where b has no such member, -3 for -3. */
    public static native void groupTranslate(int[] a, int aSize, int[] ranks, int count, int[] b, int bSize,
            int[] out, int room);

    /** Returns 0 for the same members in the same order, 1 for another order, 2 for other members. */
    public static native int groupCompare(int[] a, int aSize, int[] b, int bSize);

    /** Stores the world rank of each member of a communicator, of an intercommunicator of its own group. */
    public static native void members(long comm, int[] out, int room);

    /** Returns the number of ranks that messages go to: the members, or the other group. */
    public static native int peerCount(long comm);

    /** Stores the world rank of each rank that messages go to. */
    public static native void peers(long comm, int[] out, int room);

    /**
     * Returns 0 for one communicator. For two, returns 3 if they have the same members in the same order, 1
     * for another order, 2 for other members. Of intercommunicators both groups count.
     */
    public static native int compareComms(long a, long b);

    /** Returns the largest tag of a message in a communicator. */
    public static native int tagMax(long comm);

    /** Replaces the extents that are 0 by balanced ones, so that all multiply to {@code nodes}. */
    public static native void dimsCreate(int nodes, int[] dims, int rank);

    /**
     * Checks a Cartesian topology on a communicator of {@code size} ranks, and returns the number of its
     * nodes. A period other than 0 makes its dimension periodic.
     */
    public static native int cartCheck(int size, int[] dims, int rank, int[] periods, int periodCount);

    /** Returns the rank with these coordinates, which wrap in periodic dimensions. */
    public static native int cartRank(int[] dims, int rank, int[] periods, int periodCount, int[] coords,
            int coordCount);

    /** Stores the coordinates of a rank. */
    public static native void cartCoords(int[] dims, int dimCount, int[] periods, int periodCount, int rank,
            int[] out, int room);

    /** Returns {@code source << 32 | dest} of a shift; -3 stands for a rank beyond an edge. */
    public static native long cartShift(int[] dims, int dimCount, int[] periods, int periodCount, int rank,
            int direction, int disp);

    /**
     * Returns {@code color << 32 | key} of the split into parts in which only the dimensions remain whose
     * entry is not 0.
     */
    public static native long cartPart(int[] dims, int dimCount, int[] periods, int periodCount, int rank,
            int[] remains, int remainCount);

    /**
     * Checks a graph on a communicator of {@code size} ranks, and returns the number of its nodes. The edges
     * of node i are those from {@code index[i - 1]} up to {@code index[i]}.
     */
    public static native int graphCheck(int size, int[] index, int nodes, int[] edges, int edgeCount);
}
