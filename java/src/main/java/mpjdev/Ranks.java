package mpjdev;

import mpjdev.core.Native;
import mpjdev.core.ProcessEnd;

/**
 * The rank of the calling thread: the rank of the process, a rank that is a thread, or no rank.
 *
 * <p>Each rank loads this class when it joins its job. A handler of {@code NativeFailure} would load that
 * class too, so the handlers are for its superclass.
 */
final class Ranks {
    /** The world of the process, between init and finish. */
    private static volatile Comm process;

    /** Set once the process has been a rank and has finished. */
    private static volatile boolean finished;

    /** Set before the first job of threads. */
    private static volatile boolean hadThreads;

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

    private static Comm bound() {
        return hadThreads ? ThreadRanks.bound() : null;
    }

    /** Prepares this class for a job of threads. */
    static void haveThreads() {
        hadThreads = true;
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
        } catch (RuntimeException e) {
            throw Errors.rank(e);
        }
        if (System.getenv("MPJDEV_STATS") != null || System.getenv("MPJDEV_PROFILE") != null) {
            ProcessEnd.report();
        }
        if (Native.usesMpi()) {
            ProcessEnd.endMpi(process.handle());
        }
    }

    static void finish() {
        Comm own;
        boolean ofProcess;
        synchronized (Ranks.class) {
            own = world();
            ofProcess = process != null;
            finished = finished || ofProcess;
            process = null;
        }
        try {
            Native.finish(own.handle());
        } catch (RuntimeException e) {
            throw Errors.rank(e);
        } finally {
            // Free it now: no part of the rank has to wait for a garbage collection.
            if (ofProcess) {
                own.free();
            }
        }
    }
}
