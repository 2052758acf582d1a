package mpjdev;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicReference;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;

/** Jobs whose ranks are threads of this process. */
final class ThreadRanks {
    /** Limit on threads: each rank holds 300 octets for each other rank, so 1024 ranks hold 300 MiB. */
    static final int RANKS_MAX = 1024;

    static final String MESSAGE_ORIENTED_PROPERTY = "mpjdev.messageOriented";

    /** The world of a rank that is a thread, for the thread and its child threads. */
    private static final InheritableThreadLocal<World> BOUND = new InheritableThreadLocal<>();

    private ThreadRanks() {}

    /** The world of a rank that is a thread. It ends with its job. */
    private static final class World extends Comm {
        private volatile boolean ended;

        World(long handle) {
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

    /**
     * Returns the world of the thread's job; null after its end, as for a thread of a pool that outlives the
     * job.
     */
    static Comm bound() {
        World bound = BOUND.get();
        return bound == null || bound.hasEnded() ? null : bound;
    }

    static <E extends Exception> void run(int ranks, Comm.Task<E> task) throws E {
        if (ranks < 1 || ranks > RANKS_MAX) {
            throw new IllegalArgumentException("a job in one JVM has 1 to " + RANKS_MAX + " ranks, not " + ranks);
        }
        Ranks.haveThreads();
        long[] handles = new long[ranks];
        Native.localJob(handles, ranks, messageOriented());
        AtomicReference<Throwable> first = new AtomicReference<>();
        World[] worlds = new World[ranks];
        Thread[] threads = new Thread[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            World world = new World(handles[rank]);
            worlds[rank] = world;
            int number = rank;
            threads[rank] = new Thread(() -> runRank(world, number, task, first), "rank-" + rank);
        }
        start(threads, worlds[0]);
        boolean interrupted = join(threads, worlds[0]);
        for (World world : worlds) {
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

    private static <E extends Exception> void runRank(World world, int rank, Comm.Task<E> task,
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
            // The exception has no usable text, or memory is full. The abort below must happen nevertheless.
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
