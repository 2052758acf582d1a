package mpjdev;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicReference;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;

/** The rank of the calling thread: the rank of the process, a rank that is a thread, or no rank. */
final class Ranks {
    /** Limit on threads: each rank holds 300 octets for each other rank, so 1024 ranks hold 300 MiB. */
    static final int RANKS_MAX = 1024;

    static final String MESSAGE_ORIENTED_PROPERTY = "mpjdev.messageOriented";

    /** The world of the process, between init and finish. */
    private static volatile Comm process;

    /** Set once the process has been a rank and has finished. */
    private static volatile boolean finished;

    /** Set once a shutdown hook prints the statistics. */
    private static boolean statsAtExit;

    /** The world of a rank that is a thread, for the thread and its child threads. */
    private static final InheritableThreadLocal<Comm.ThreadWorld> BOUND = new InheritableThreadLocal<>();

    private Ranks() {}

    static Comm world() {
        Comm own = process;
        if (own != null) {
            return own;
        }
        Comm bound = bound();
        if (bound != null) {
            return bound;
        }
        throw new IllegalStateException("this thread has no rank" + (finished ? " since Comm.finish was called" : "")
                + ": call Comm.init first, or run it inside Comm.runThreads(n, task)");
    }

    /**
     * Returns the world of the thread's job; null after its end, as for a thread of a pool that outlives the
     * job.
     */
    private static Comm bound() {
        Comm.ThreadWorld bound = BOUND.get();
        return bound == null || bound.hasEnded() ? null : bound;
    }

    /** Ends the job of the process, if the process is a rank. Over a C MPI it also ends the process. */
    static void abort(String why) {
        Comm own = process;
        if (own != null) {
            Native.abort(own.handle(), why);
        }
    }

    static boolean isThread() {
        return process == null && bound() != null;
    }

    static synchronized void init() {
        if (process == null && bound() != null) {
            return;
        }
        if (process != null) {
            throw new IllegalStateException("Comm.init was called before: call Comm.finish first");
        }
        try {
            process = new Comm(Native.processWorld());
            printStatsAtExit();
            ProcessEnd.install();
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        }
    }

    /**
     * Makes a rank print its statistics, if {@code MPJDEV_STATS} asks for them, also if it ends without
     * finish.
     */
    private static void printStatsAtExit() {
        if (!statsAtExit && System.getenv("MPJDEV_STATS") != null) {
            statsAtExit = true;
            Runtime.getRuntime().addShutdownHook(new Thread(Native::printStats, "mpjdev-stats"));
        }
    }

    static void finish() {
        Comm own;
        synchronized (Ranks.class) {
            own = world();
            finished = finished || process != null;
            process = null;
        }
        try {
            Native.finish(own.handle());
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            // Free it now: no part of the rank has to wait for a garbage collection.
            if (!(own instanceof Comm.ThreadWorld)) {
                own.free();
            }
        }
    }

    static <E extends Exception> void runThreads(int ranks, Comm.Task<E> task) throws E {
        if (ranks < 1 || ranks > RANKS_MAX) {
            throw new IllegalArgumentException("a job in one JVM has 1 to " + RANKS_MAX + " ranks, not " + ranks);
        }
        long[] handles = new long[ranks];
        Native.localJob(handles, ranks, messageOriented());
        AtomicReference<Throwable> first = new AtomicReference<>();
        Comm.ThreadWorld[] worlds = new Comm.ThreadWorld[ranks];
        Thread[] threads = new Thread[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            Comm.ThreadWorld world = new Comm.ThreadWorld(handles[rank]);
            worlds[rank] = world;
            int number = rank;
            threads[rank] = new Thread(() -> runRank(world, number, task, first), "rank-" + rank);
        }
        start(threads, worlds[0]);
        boolean interrupted = join(threads, worlds[0]);
        for (Comm.ThreadWorld world : worlds) {
            world.end();
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
            InterruptedOperationException e = new InterruptedOperationException("interrupted while the job ran");
            if (first.get() != null) {
                e.addSuppressed(first.get());
            }
            throw e;
        }
        rethrow(first.get());
    }

    /** Reads the property. A value that cannot be parsed must not become false silently. */
    private static boolean messageOriented() {
        String asked = System.getProperty(MESSAGE_ORIENTED_PROPERTY, "false");
        if (!asked.equals("true") && !asked.equals("false")) {
            throw new IllegalArgumentException("-D" + MESSAGE_ORIENTED_PROPERTY + "=" + asked
                    + " is neither true nor false");
        }
        return asked.equals("true");
    }

    private static <E extends Exception> void runRank(Comm.ThreadWorld world, int rank, Comm.Task<E> task,
            AtomicReference<Throwable> first) {
        BOUND.set(world);
        try {
            task.run(world);
            Native.finish(world.handle());
        } catch (NativeFailure f) {
            fail(world, rank, Errors.comm(f), first);
        } catch (Throwable t) {
            fail(world, rank, t, first);
        } finally {
            BOUND.remove();
        }
    }

    private static void fail(Comm world, int rank, Throwable t, AtomicReference<Throwable> first) {
        String why = "a rank threw";
        try {
            if (!first.compareAndSet(null, t) && first.get() != t && !(t instanceof PeerFailedException)) {
                first.get().addSuppressed(t);
            }
            why = "rank " + rank + " threw " + t.getClass().getName();
            why = "rank " + rank + " threw " + t;
        } catch (Throwable e) {
            // The exception has no usable text, or memory is full. The abort below must happen all the same.
        } finally {
            Native.abort(world.handle(), why);
        }
    }

    /** Starts all threads. If the system cannot start one, ends those that run. */
    private static void start(Thread[] threads, Comm any) {
        int started = 0;
        try {
            for (; started < threads.length; started++) {
                threads[started].start();
            }
        } finally {
            if (started < threads.length) {
                Native.abort(any.handle(), "only " + started + " of " + threads.length + " threads could be started");
                join(Arrays.copyOf(threads, started), any);
            }
        }
    }

    /** Waits for all threads. An interrupt ends the job first. Returns whether there was one. */
    private static boolean join(Thread[] threads, Comm any) {
        boolean interrupted = false;
        for (int i = 0; i < threads.length; ) {
            try {
                threads[i].join();
                i++;
            } catch (InterruptedException e) {
                interrupted = true;
                Native.abort(any.handle(), "the thread that runs the job was interrupted");
                for (Thread thread : threads) {
                    thread.interrupt();
                }
            }
        }
        return interrupted;
    }

    /** Throws the exception of a rank with its own type. The type parameter names the checked ones. */
    @SuppressWarnings("unchecked")
    private static <E extends Throwable> void rethrow(Throwable t) throws E {
        if (t != null) {
            throw (E) t;
        }
    }
}
