package mpjdev;

import java.lang.ref.Reference;
import mpjdev.core.Native;
import mpjdev.core.Resource;

/**
 * A communicator: a group of ranks whose messages are separate from those of all other communicators.
 *
 * <p>Any number of threads may use a communicator at once. A buffer belongs to one thread at a time. A send
 * captures its message: when {@code send} or {@code isend} returns, the program may change, send or close the
 * buffer. A receive replaces the contents of its buffer and resets the read position. The capacity of that
 * buffer must be at least the primary payload of the message, and at least the capacity of the sender's
 * buffer if the message may hold objects.
 *
 * <p>A message of one section needs no buffer: {@link #send(byte[], int, int, int, int)} and
 * {@link #recv(byte[], int, int, int, int)} move elements from array to array. It is the same message: a
 * {@link ReadBuffer} receives what was sent from an array, and the other way round. These are the fastest
 * calls for one array.
 *
 * <p>Methods that block throw {@link InterruptedOperationException} if their thread is interrupted, and
 * {@link PeerFailedException} if only a failed or finished rank could have completed them.
 *
 * <p>The collective calls are {@link #dup}, {@link #create}, {@link #split}, {@link #barrier}, and those that
 * move or combine elements, such as {@link #bcast(byte[], int, int, int)}. A rank abandons a collective call
 * if it is interrupted or fails in it. Every later collective call of this rank on this communicator throws
 * {@link CollectiveAbandonedException}. The other members throw it as soon as they receive the notice: a
 * member that waits in a collective call throws it, or completes this call and throws it in the next one.
 * Messages between ranks still work, and so do other communicators. The program can make a new communicator
 * from one of those, or {@link #finish}. A program that interrupts threads in collective calls on
 * {@link #WORLD} should keep a {@code dup} of it. A member of another implementation receives no notice; it
 * waits as for a rank that is late.
 *
 * <p>Tags are 0 to 2<sup>31</sup>-1. All exceptions of communication are {@link MPJDevException}s. A thread
 * without a rank gets an {@link IllegalStateException}.
 */
public class Comm extends ArrayCollectives {
    /** Model of {@link #getModel}: ranks are processes. */
    public static final int MODEL_MULTIPROCESS = 0;
    /** Model of {@link #getModel}: ranks are threads of one process. */
    public static final int MODEL_MULTITHREADED = 1;
    /** Source of a receive or probe: any rank. */
    public static final int ANY_SOURCE = Native.ANY_SOURCE;
    /** Tag of a receive or probe: any tag. */
    public static final int ANY_TAG = Native.ANY_TAG;

    /**
     * The communicator of all ranks. After {@link #init} it is the world of the process. Otherwise it is the
     * world of the calling thread's rank; a thread belongs to the rank of the thread that has created it (see
     * {@link #runThreads}).
     */
    public static final Comm WORLD = new Comm();

    /** Longest reason that is sent to other ranks, in characters. */
    private static final int REASON_MAX = 10_000;

    /** The native communicator; 0 in {@link #WORLD}, which finds that of its caller. */
    private final long handle;
    /** Null in {@link #WORLD}. */
    private final Resource resource;

    Comm(long handle) {
        this.handle = handle;
        resource = new Resource(this, handle, Resource.COMM);
    }

    private Comm() {
        handle = 0;
        resource = null;
    }

    @Override
    final long handle() {
        return handle == 0 ? Ranks.world().handle() : handle;
    }

    // ---- Jobs

    /**
     * Makes this process a rank of the job that {@code mpjrun}, or the {@code mpirun} of an MPI, has started
     * it for. Without a launcher the process is rank 0 of 1. In a rank that is a thread, the call does
     * nothing. Blocks until all ranks of the job have called it.
     *
     * <p>A process may call it again after {@link #finish}. Then all ranks must do so, and they form a new
     * job. A virtual thread that waits in this call keeps its carrier.
     *
     * @param args arguments of the program
     * @return the arguments that belong to the program
     * @throws IllegalStateException if the process is a rank already, the launcher rejects it, or no usable
     *     MPI exists
     * @throws PeerFailedException if a rank has ended and therefore cannot call it
     * @throws InterruptedOperationException if the thread is interrupted before all ranks have called it. No
     *     rank has joined then, and this rank may try again. Over a C MPI the join continues: the other ranks
     *     may return from this call, and this rank is one of them as soon as it calls it again. A later
     *     interrupt ends the next blocking call. The flag stays set
     */
    public static String[] init(String[] args) {
        String[] own = args.clone();
        Ranks.init();
        return own;
    }

    /**
     * Ends this rank. Blocks.
     *
     * <p>It waits until all messages to other ranks have left this rank, and until pending sends to them are
     * received, as long as heartbeats of their receivers arrive. It does not wait for the receipt of messages
     * that have left, nor for messages to this rank itself. Under {@code mpirun} it also waits until long
     * messages are received or their receivers have finished.
     *
     * <p>Unreceived messages are no failure: they have reached this rank, and no receive took them. One line
     * on standard error states their number and, for the first ones, source, tag, octets and communicator.
     * The number includes messages and RTS packets that have arrived by the end of this call, and messages
     * that freed communicators have dropped. The sender of such a message gets an exception only for a
     * synchronous send that it has not waited for.
     *
     * <p>The call releases memory, descriptors and threads of the rank at once. Communicators and requests of
     * the rank then throw {@link NotInitializedException}, but requests that were done keep their result. A
     * buffer keeps the message that it has received, and with it the address space of the message.
     *
     * <p>In a job with ranks of another implementation the call is collective, as IMPI defines it. It waits
     * until all ranks have called it, as long as heartbeats of the other implementation arrive and ten
     * minutes more.
     *
     * <p>A virtual thread that waits in this call keeps its carrier.
     *
     * @throws UndeliveredException if messages have not left this rank because a receiver sent no heartbeat
     *     or has failed, if the receiver's machine has not acknowledged them for some seconds (TCP, UDP), or
     *     if a synchronous send was not received. The rank has ended nevertheless
     * @throws PeerFailedException in a job with ranks of another implementation, if a rank has failed or does
     *     not call it. The rank has ended nevertheless
     */
    public static void finish() {
        Ranks.finish();
    }

    /**
     * Returns whether the ranks are processes or threads, as the calling thread sees them. A program may call
     * it before {@link #init}.
     *
     * @return {@link #MODEL_MULTIPROCESS} or {@link #MODEL_MULTITHREADED}
     */
    public static int getModel() {
        return Ranks.isThread() ? MODEL_MULTITHREADED : MODEL_MULTIPROCESS;
    }

    /**
     * The work of a rank that is a thread.
     *
     * @param <E> type of its checked exceptions
     */
    @FunctionalInterface
    public interface Task<E extends Exception> {
        /**
         * Does the work of one rank.
         *
         * @param world the communicator of all ranks of the job
         * @throws E if the work fails
         */
        void run(Comm world) throws E;
    }

    /**
     * Runs a job whose ranks are threads of this process. Blocks until the job ends.
     *
     * <p>In these threads and their child threads {@link #WORLD} is the world of the job, unless the process
     * has called {@link #init}. If a rank throws, the operations of all other ranks fail with
     * {@link PeerFailedException}, and this method throws the same exception. If the calling thread is
     * interrupted, the job ends in the same way and this method throws {@link InterruptedOperationException}.
     *
     * @param <E> type of the checked exceptions of a rank
     * @param ranks number of ranks, 1 to 1024
     * @param task the work of each rank
     * @throws E the exception of the first rank that failed
     * @throws IllegalArgumentException if {@code ranks} is out of range, or {@code -Dmpjdev.messageOriented}
     *     is neither {@code true} nor {@code false}
     */
    public static <E extends Exception> void runThreads(int ranks, Task<E> task) throws E {
        ThreadRanks.run(ranks, task);
    }

    // ---- This communicator

    /**
     * Returns the number of ranks.
     *
     * @return the number
     */
    public int size() {
        try {
            return Native.size(handle());
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Returns the number of the calling rank.
     *
     * @return 0 to size - 1
     */
    public int id() {
        try {
            return Native.rank(handle());
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Makes a communicator of the same ranks with a context of its own. Collective; blocks until all ranks
     * have called it.
     *
     * @return the new communicator
     * @throws CollectiveAbandonedException if a rank has abandoned a collective call on this communicator
     * @throws UnsupportedOperationException if this communicator has a rank of another implementation, which
     *     cannot agree on a context; nothing has been sent then
     */
    public Comm dup() {
        return CollectiveCalls.complete(this, Native.startDup(handle()));
    }

    /**
     * Makes a communicator of the given ranks in the given order (MPI_Comm_create). Collective over this
     * communicator; blocks until all ranks have called it. All ranks of a list pass this list. Lists without
     * a common rank make one communicator each, as in MPI-2.2.
     *
     * @param ids ranks of this communicator
     * @return the new communicator, or null in a rank that is not in its own list
     * @throws CollectiveAbandonedException if a rank has abandoned a collective call on this communicator
     * @throws BadArgumentException in all ranks, if a rank of a list passed another one, or a list repeats a
     *     rank or names one that does not exist
     * @throws UnsupportedOperationException if this communicator has a rank of another implementation, which
     *     cannot agree on a context; nothing has been sent then
     */
    public Comm create(int[] ids) {
        return CollectiveCalls.complete(this, Native.startCreate(handle(), ids, ids.length));
    }

    /**
     * Makes one communicator for each colour (MPI_Comm_split). Its ranks are ordered by key, and by their
     * number in this communicator if keys are equal. Collective; blocks until all ranks have called it.
     *
     * @param color colour of the new communicator of this rank; a negative colour means no communicator
     * @param key position among the ranks of the same colour
     * @return the new communicator, or null for a negative colour
     * @throws CollectiveAbandonedException if a rank has abandoned a collective call on this communicator
     * @throws UnsupportedOperationException if this communicator has a rank of another implementation, which
     *     cannot agree on a context; nothing has been sent then
     */
    public Comm split(int color, int key) {
        return CollectiveCalls.complete(this, Native.startSplit(handle(), color, key));
    }

    /**
     * Waits until all ranks have called it, including those of another implementation. Collective; blocks.
     *
     * @throws CollectiveAbandonedException if a rank has abandoned a collective call on this communicator
     * @throws UnsupportedOperationException if this communicator has a rank of another implementation and the
     *     job uses the draft of IMPI, which defines no barrier; nothing has been sent then
     */
    public void barrier() {
        CollectiveCalls.barrier(this);
    }

    /**
     * Ends this communicator at this rank. Does not block.
     *
     * <p>Posted receives still receive their messages. The rank drops all other messages, also those that
     * arrive later, and they count as received: their memory returns to the sender, and {@code ssend}
     * returns. The garbage collector ends an unreachable communicator.
     */
    public void free() {
        if (resource == null) {
            throw new IllegalStateException("WORLD cannot be freed; finish() ends it");
        }
        resource.close();
    }

    /**
     * Ends the job: every operation of every rank fails. Over a C MPI all processes of the job end, this one
     * too. Does not block.
     *
     * @param why reason for the error texts of the ranks
     */
    public void abort(String why) {
        try {
            Native.abort(handle(), why.substring(0, Math.min(why.length(), REASON_MAX)));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    // ---- Sending

    /**
     * Sends a message in standard mode. Blocks until the message has left this rank or, without credit at the
     * receiver, until a receive has matched it.
     *
     * @param buf the message
     * @param dest destination
     * @param tag tag
     */
    public void send(Buffer buf, int dest, int tag) {
        BufferCalls.send(this, buf, dest, tag, false);
    }

    /**
     * Sends a message in synchronous mode. Blocks until a receive has matched it.
     *
     * @param buf the message
     * @param dest destination
     * @param tag tag
     */
    public void ssend(Buffer buf, int dest, int tag) {
        BufferCalls.send(this, buf, dest, tag, true);
    }

    /**
     * Starts a send in standard mode. Does not block.
     *
     * @param buf the message
     * @param dest destination
     * @param tag tag
     * @return the request
     * @throws OutOfMemoryError if no memory is left for the message, or too many messages to {@code dest} are
     *     unmatched; the text names their number and the limit, and nothing has been sent
     */
    public Request isend(Buffer buf, int dest, int tag) {
        return BufferCalls.isend(this, buf, dest, tag, false);
    }

    /**
     * Starts a send in synchronous mode. Does not block.
     *
     * @param buf the message
     * @param dest destination
     * @param tag tag
     * @return the request
     * @throws OutOfMemoryError if no memory is left for the message, or too many messages to {@code dest} are
     *     unmatched; the text names their number and the limit, and nothing has been sent
     */
    public Request issend(Buffer buf, int dest, int tag) {
        return BufferCalls.isend(this, buf, dest, tag, true);
    }

    // ---- Receiving

    /**
     * Receives a message. Blocks.
     *
     * @param buf buffer for the message; it loses its contents, also if the receive fails
     * @param src source, or {@link #ANY_SOURCE}
     * @param tag tag, or {@link #ANY_TAG}
     * @return source, tag, size, and type and count of the first section
     * @throws TruncationException if the message is larger than the buffer; the message is lost then
     */
    public Status recv(Buffer buf, int src, int tag) {
        return BufferCalls.recv(this, buf, src, tag);
    }

    /**
     * Posts a receive. Does not block. The buffer is in use until the request is done.
     *
     * @param buf buffer for the message; it loses its contents
     * @param src source, or {@link #ANY_SOURCE}
     * @param tag tag, or {@link #ANY_TAG}
     * @return the request
     */
    public Request irecv(Buffer buf, int src, int tag) {
        return BufferCalls.irecv(this, buf, src, tag);
    }

    /**
     * Waits for a message without receiving it. Blocks.
     *
     * @param src source, or {@link #ANY_SOURCE}
     * @param tag tag, or {@link #ANY_TAG}
     * @return source, tag, size, and type and count of the first section
     */
    public Status probe(int src, int tag) {
        return BufferCalls.probe(this, src, tag);
    }

    /**
     * Probes for a message without receiving it. Does not block.
     *
     * @param src source, or {@link #ANY_SOURCE}
     * @param tag tag, or {@link #ANY_TAG}
     * @return as of {@link #probe}; null if no message matches
     */
    public Status iprobe(int src, int tag) {
        return BufferCalls.iprobe(this, src, tag);
    }
}
