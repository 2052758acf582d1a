package mpjdev.core;

import java.lang.Thread.UncaughtExceptionHandler;

/**
 * The end of a process that is a rank: it reports what was counted and finalises a C MPI. Internal.
 *
 * <p>All processes of a job finalise an MPI together, once. The end of a rank cannot do that, because a
 * process may become a rank again after it. A rank under mpjrun that counts nothing does not load this class.
 */
public final class ProcessEnd {
    private static boolean reports;
    private static boolean endsMpi;

    private ProcessEnd() {}

    /** Makes the process report its statistics and its profile, also if it ends without finish. */
    public static synchronized void report() {
        if (!reports) {
            reports = true;
            Runtime.getRuntime().addShutdownHook(new Thread(Native::reportEnd, "mpjdev-stats"));
        }
    }

    /**
     * Makes the process end its C MPI, and an uncaught exception of the calling thread end the job.
     *
     * @param world world of the rank; another call follows when the process becomes a rank again
     */
    public static synchronized void endMpi(long world) {
        if (!endsMpi) {
            endsMpi = true;
            Runtime.getRuntime().addShutdownHook(new Thread(() -> Native.endProcess(""), "mpjdev-end"));
        }
        AbortOnUncaught.world = world;
        Thread thread = Thread.currentThread();
        UncaughtExceptionHandler before = thread.getUncaughtExceptionHandler();
        if (!(before instanceof AbortOnUncaught)) {
            thread.setUncaughtExceptionHandler(new AbortOnUncaught(before));
        }
    }

    /**
     * Ends the job. Otherwise other threads could keep the process alive while other ranks wait for this one.
     */
    private static final class AbortOnUncaught implements UncaughtExceptionHandler {
        static volatile long world;

        private final UncaughtExceptionHandler before;

        AbortOnUncaught(UncaughtExceptionHandler before) {
            this.before = before;
        }

        @Override
        public void uncaughtException(Thread thread, Throwable thrown) {
            try {
                before.uncaughtException(thread, thrown);
            } finally {
                abort("uncaught in thread " + thread.getName() + ": " + thrown);
            }
        }

        private static void abort(String why) {
            try {
                Native.abort(world, why);
            } catch (RuntimeException e) {
                // The rank has finished, so no other rank waits for it.
            }
        }
    }
}
