package mpjdev;

import java.lang.ref.Reference;
import mpjdev.core.Backoff;
import mpjdev.core.HandleCloser;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;
import mpjdev.core.Resource;

/**
 * A communicator: a group of ranks that exchange messages apart from all others.
 *
 * <p>Any number of threads may use a communicator at once. A buffer belongs to one thread at a time. A send captures its
 * message: when {@code send} or {@code isend} returns, the buffer may be changed, sent again or closed. A receive resets the
 * buffer's read position; the buffer's capacity must be that of the sender's buffer when objects may come, else at
 * least the message's primary payload.
 *
 * <p>Methods that block end with {@link InterruptedOperationException} when their thread is interrupted, and with
 * {@link PeerFailedException} when only a dead or finished rank could have completed them.
 *
 * <p>A rank that is interrupted in a collective call ({@link #dup}, {@link #create}, {@link #split}, {@link #barrier}), or fails in
 * the middle of one, abandons it. From then on every collective call on this communicator throws
 * {@link CollectiveAbandonedException} in this rank, and in every other member as soon as the notice of it arrives: those that wait
 * in a collective call fail with it, or complete that call and fail with the next. Messages from rank to rank go on, and so do other
 * communicators; a new one can be made of one of these, or the rank can {@link #finish}. A program that interrupts threads in
 * collective calls on {@link #WORLD} keeps a {@code dup} of it for that. A member of another implementation hears of no notice and
 * waits as for a rank that does not come.
 *
 * <p>Tags are 0 to 2<sup>31</sup>-1.
 * All exceptions of communication are {@link MPJDevException}s; a thread without a rank gets an
 * {@link IllegalStateException}.
 */
public class Comm {
    /** Model: ranks are processes. */
    public static final int MODEL_MULTIPROCESS = 0;
    /** Model: ranks are threads of one process. */
    public static final int MODEL_MULTITHREADED = 1;
    /** Source of a receive or probe: any rank. */
    public static final int ANY_SOURCE = Native.ANY_SOURCE;
    /** Tag of a receive or probe: any tag. */
    public static final int ANY_TAG = Native.ANY_TAG;

    /**
     * The communicator of all ranks. In a process that has called {@link #init} it is the process's own; else it is that
     * of the rank whose thread, or whose thread's child, asks (see {@link #runThreads}).
     */
    public static final Comm WORLD = new CurrentWorld();

    /** Characters of a reason that are passed on. */
    private static final int REASON_MAX = 10_000;

    private final long handle;
    private final Resource resource;

    Comm(long handle) {
        this.handle = handle;
        resource = new Resource(this, handle, HandleCloser.COMM);
    }

    private Comm() {
        handle = 0;
        resource = null;
    }

    /** The world of a rank that is a thread: it ends with its job, not before. */
    static final class ThreadWorld extends Comm {
        private volatile boolean ended;

        ThreadWorld(long handle) {
            super(handle);
        }

        @Override
        public void free() {
            throw new IllegalStateException("the world of a rank cannot be freed; it ends when its task returns");
        }

        void end() {
            ended = true;
            super.free();
        }

        boolean hasEnded() {
            return ended;
        }
    }

    /** Resolves to the world of the process or of the calling thread's rank. */
    private static final class CurrentWorld extends Comm {
        @Override
        long handle() {
            return Ranks.world().handle();
        }

        @Override
        public void free() {
            throw new IllegalStateException("WORLD cannot be freed; finish() ends it");
        }
    }

    long handle() {
        return handle;
    }

    // ---- Jobs

    /**
     * Makes this process a rank: of the job that {@code mpjrun}, or the {@code mpirun} of an MPI, has started it for, once all its
     * ranks have come here; without a launcher rank 0 of 1. In a rank that is a thread, does nothing. Blocks.
     *
     * <p>After {@link #finish} it may be called again: then all ranks must, and are a new job.
     *
     * @param args arguments of the program
     * @return those of them that are the program's own
     * @throws IllegalStateException when the process is a rank already, the launcher does not take it, or there is no MPI that can be
     *     used
     * @throws PeerFailedException when a rank has ended, so that it will not come here
     * @throws InterruptedOperationException when the thread is interrupted before all ranks are there: then none of them has joined, and
     *     this one may try again; an interrupt that comes later waits for what blocks next. The flag stays
     */
    public static String[] init(String[] args) {
        String[] own = args.clone();
        Ranks.init();
        return own;
    }

    /**
     * Ends this rank. Blocks.
     *
     * <p>It waits until the messages that this rank has sent to others have left it, and until pending sends to them have been
     * received, as long as their receivers show life. For messages that have left and were not received, and for messages to
     * itself, it does not wait. Under {@code mpirun} it also waits for long messages until they are received, or their
     * receivers have finished.
     *
     * <p>Messages that have reached this rank and that no receive took are no failure. One line on standard error names their
     * number and, of the first ones, source, tag, octets and communicator. It counts what has arrived, or was announced, by the
     * end of this call, and what freed communicators have dropped. The sender of such a message has no exception, except for
     * a synchronous send that it has not waited for.
     *
     * <p>Memory, descriptors and threads of the rank are given back at once. Communicators and requests of it that the program still
     * holds are of no use any more: they throw {@link NotInitializedException}, except that requests that were done keep their outcome.
     * A buffer keeps the message that it has received, and with it the address space that the message lies in.
     *
     * <p>In a job with ranks of another implementation it is collective, as IMPI has it: it waits until all ranks have called it, for
     * as long as those of the other implementation show life and ten minutes more.
     *
     * @throws UndeliveredException when messages have not left this rank, because a receiver showed no life or has failed, when the
     *     receiver's machine has not acknowledged them for some seconds (TCP, UDP), or when a synchronous send was not received; the
     *     rank has ended all the same
     * @throws PeerFailedException in a job with ranks of another implementation, when a rank has failed or does not call it; the
     *     rank has ended all the same
     */
    public static void finish() {
        Ranks.finish();
    }

    /**
     * Whether ranks are processes or threads, for the calling thread. May be called before {@link #init}.
     *
     * @return {@link #MODEL_MULTIPROCESS} or {@link #MODEL_MULTITHREADED}
     */
    public static int getModel() {
        return Ranks.isThread() ? MODEL_MULTITHREADED : MODEL_MULTIPROCESS;
    }

    /**
     * What a rank that is a thread does.
     *
     * @param <E> what it may throw
     */
    @FunctionalInterface
    public interface Task<E extends Exception> {
        /**
         * Does the work of one rank.
         *
         * @param world the communicator of all ranks of the job
         * @throws E as the work has it
         */
        void run(Comm world) throws E;
    }

    /**
     * Runs a job whose ranks are threads of this process, and waits for its end. Blocks.
     *
     * <p>In these threads and their children {@link #WORLD} is the job's, unless the process itself has called
     * {@link #init}. When a rank throws, the operations of all others fail with {@link PeerFailedException}, and what it
     * threw is thrown here. When the calling thread is interrupted, the job ends in the same way.
     *
     * @param <E> what a rank may throw
     * @param ranks number of ranks, 1 to 1024
     * @param task what each rank does
     * @throws E what the first rank that failed has thrown
     * @throws IllegalArgumentException when there cannot be so many ranks, or {@code -Dmpjdev.messageOriented} is neither
     *     {@code true} nor {@code false}
     */
    public static <E extends Exception> void runThreads(int ranks, Task<E> task) throws E {
        Ranks.runThreads(ranks, task);
    }

    // ---- This communicator

    /**
     * Number of ranks.
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
     * Number of the calling rank.
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
     * A communicator of the same ranks, whose messages are apart. Collective; blocks until all ranks have called it.
     *
     * @return the new communicator
     * @throws CollectiveAbandonedException when a rank has left a collective call on this communicator unfinished
     * @throws UnsupportedOperationException when a rank of this communicator is another implementation's, with which none can be
     *     agreed; nothing has been sent then
     */
    public Comm dup() {
        return collective(Native.startDup(handle()));
    }

    /**
     * A communicator of some ranks, in this order (MPI_Comm_create). Collective over this communicator: all its ranks call
     * it with the same list; blocks until all have.
     *
     * @param ids ranks of this communicator
     * @return the new communicator, or null in a rank that is not in the list
     * @throws CollectiveAbandonedException when a rank has left a collective call on this communicator unfinished
     * @throws BadArgumentException in all ranks, when the lists differ, repeat a rank or name one that is not there
     * @throws UnsupportedOperationException when a rank of this communicator is another implementation's, with which none can be
     *     agreed; nothing has been sent then
     */
    public Comm create(int[] ids) {
        return collective(Native.startCreate(handle(), ids, ids.length));
    }

    /**
     * One communicator for each colour, ranks ordered by key and then by their order here (MPI_Comm_split). Collective;
     * blocks until all ranks have called it.
     *
     * @param color which one this rank goes to; negative for none
     * @param key order within it
     * @return the new communicator, or null for a negative colour
     * @throws CollectiveAbandonedException when a rank has left a collective call on this communicator unfinished
     * @throws UnsupportedOperationException when a rank of this communicator is another implementation's, with which none can be
     *     agreed; nothing has been sent then
     */
    public Comm split(int color, int key) {
        return collective(Native.startSplit(handle(), color, key));
    }

    /**
     * Waits until all ranks have called it, those of another implementation too. Collective; blocks.
     *
     * @throws CollectiveAbandonedException when a rank has left a collective call on this communicator unfinished
     * @throws UnsupportedOperationException when a rank of this communicator is another implementation's and the job speaks IMPI's
     *     draft, which does not say how; nothing has been sent then
     */
    public void barrier() {
        collective(Native.startBarrier(handle()));
    }

    private Comm collective(long operation) {
        try {
            long made;
            if (Backoff.isVirtual()) {
                Backoff backoff = new Backoff();
                made = Native.advance(operation, false);
                while (made == Native.PENDING) {
                    if (Thread.currentThread().isInterrupted()) {
                        throw new InterruptedOperationException("interrupted in a collective operation");
                    }
                    backoff.pause();
                    made = Native.advance(operation, false);
                }
            } else {
                made = Native.advance(operation, true);
            }
            return made == 0 ? null : new Comm(made);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Native.freeOperation(operation);
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Ends this communicator at this rank. Does not block.
     *
     * <p>Receives that are posted still get their messages. Other messages that have arrived or arrive later are dropped and
     * count as received: their memory returns to the sender, and {@code ssend} ends. A communicator that nobody refers to any
     * more is ended by the garbage collector.
     */
    public void free() {
        resource.close();
    }

    /**
     * Ends the job: every operation of every rank fails. Over a C MPI all its processes end, this one too. Does not block.
     *
     * @param why a text for people
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
     * Sends a message in standard mode. Blocks until the message has left; when too much is waiting at the receiver, until
     * it is received.
     *
     * @param buf the message
     * @param dest destination
     * @param tag tag
     */
    public void send(Buffer buf, int dest, int tag) {
        send(buf, dest, tag, false);
    }

    /**
     * Sends a message in synchronous mode. Blocks until a receive has been matched with it.
     *
     * @param buf the message
     * @param dest destination
     * @param tag tag
     */
    public void ssend(Buffer buf, int dest, int tag) {
        send(buf, dest, tag, true);
    }

    private void send(Buffer buf, int dest, int tag, boolean synchronous) {
        if (Backoff.isVirtual()) {
            isend(buf, dest, tag, synchronous).iwait();
            return;
        }
        try {
            Native.send(handle(), buf.handle(), dest, tag, synchronous, buf.flags);
            buf.flagsApplied();
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(buf);
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Starts to send a message in standard mode. Does not block.
     *
     * @param buf the message
     * @param dest destination
     * @param tag tag
     * @return the request
     * @throws OutOfMemoryError if there is no memory for the message, or too many messages to {@code dest} are
     *     unmatched; it names their number and the limit, and nothing has been sent
     */
    public Request isend(Buffer buf, int dest, int tag) {
        return isend(buf, dest, tag, false);
    }

    /**
     * Starts to send a message in synchronous mode. Does not block.
     *
     * @param buf the message
     * @param dest destination
     * @param tag tag
     * @return the request
     * @throws OutOfMemoryError if there is no memory for the message, or too many messages to {@code dest} are
     *     unmatched; it names their number and the limit, and nothing has been sent
     */
    public Request issend(Buffer buf, int dest, int tag) {
        return isend(buf, dest, tag, true);
    }

    private Request isend(Buffer buf, int dest, int tag, boolean synchronous) {
        try {
            long request = Native.isend(handle(), buf.handle(), dest, tag, synchronous, buf.flags);
            buf.flagsApplied();
            return Request.of(request, null);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(buf);
            Reference.reachabilityFence(this);
        }
    }

    // ---- Receiving

    /**
     * Receives a message. Blocks.
     *
     * @param buf where the message goes; what it held is gone, also when the receive fails
     * @param src source, or {@link #ANY_SOURCE}
     * @param tag tag, or {@link #ANY_TAG}
     * @return source, tag, size, and type and count of the first section
     * @throws TruncationException when the message is larger than the buffer; it is gone then
     */
    public Status recv(Buffer buf, int src, int tag) {
        if (Backoff.isVirtual()) {
            return recvVirtually(buf, src, tag);
        }
        Status status = new Status();
        try {
            if (src >= 0 && tag >= 0) {
                long detail = Native.recvFrom(handle(), buf.handle(), src, tag);
                buf.contentReplaced();
                return status.received(src, tag, detail, buf);
            }
            long result = Native.recv(handle(), buf.handle(), src, tag, status);
            buf.contentReplaced();
            return status.received(result, buf);
        } catch (NativeFailure f) {
            if (!wasRefused(f, buf)) {
                buf.contentReplaced();
            }
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(buf);
            Reference.reachabilityFence(this);
        }
    }

    /** Whether a receive failed before anything was done for it; else its buffer is empty. */
    private static boolean wasRefused(NativeFailure f, Buffer buf) {
        return f.code() == NativeFailure.BAD_ARGUMENT || f.code() == NativeFailure.NOT_INITIALIZED && buf.hasContent();
    }

    private Status recvVirtually(Buffer buf, int src, int tag) {
        Request request = irecv(buf, src, tag);
        try {
            return request.iwait();
        } catch (InterruptedOperationException e) {
            if (request.cancel()) {
                request.discardOutcome();
                throw e;
            }
            // Too late to withdraw: the message is there or about to be. The flag is put back afterwards.
            boolean interrupted = Thread.interrupted();
            try {
                return request.iwait();
            } finally {
                if (interrupted) {
                    Thread.currentThread().interrupt();
                }
            }
        }
    }

    /**
     * Posts a receive. Does not block. The buffer is in use until the request is done.
     *
     * @param buf where the message goes; what it held is gone
     * @param src source, or {@link #ANY_SOURCE}
     * @param tag tag, or {@link #ANY_TAG}
     * @return the request
     */
    public Request irecv(Buffer buf, int src, int tag) {
        try {
            Request request = Request.of(Native.irecv(handle(), buf.handle(), src, tag), buf);
            buf.contentReplaced();
            return request;
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(buf);
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Waits for a message without receiving it. Blocks.
     *
     * @param src source, or {@link #ANY_SOURCE}
     * @param tag tag, or {@link #ANY_TAG}
     * @return source, tag and size
     */
    public Status probe(int src, int tag) {
        if (Backoff.isVirtual()) {
            Backoff backoff = new Backoff();
            Status status = iprobe(src, tag);
            while (status == null) {
                if (Thread.currentThread().isInterrupted()) {
                    throw new InterruptedOperationException("interrupted in a probe");
                }
                backoff.pause();
                status = iprobe(src, tag);
            }
            return status;
        }
        Status status = new Status();
        try {
            return status.put(Native.probe(handle(), src, tag, status));
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Looks for a message without receiving it. Does not block.
     *
     * @param src source, or {@link #ANY_SOURCE}
     * @param tag tag, or {@link #ANY_TAG}
     * @return source, tag and size; null when there is none
     */
    public Status iprobe(int src, int tag) {
        Status status = new Status();
        try {
            long found = Native.iprobe(handle(), src, tag, status);
            return found == Native.PENDING ? null : status.put(found);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(this);
        }
    }
}
