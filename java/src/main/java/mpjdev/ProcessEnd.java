package mpjdev;

import java.lang.Thread.UncaughtExceptionHandler;
import mpjdev.core.Native;

/**
 * The end of a process that is a rank over a C MPI.
 *
 * <p>All processes of a job finalise an MPI together, once. {@link Comm#finish} cannot do that, because a
 * process may become a rank again after it. Under mpjrun, which monitors the ranks, this class is not loaded.
 */
final class ProcessEnd {
    private static boolean installed;

    private ProcessEnd() {}

    /** Installs the hooks. The calling thread has made this process a rank. */
    static synchronized void install() {
        if (!installed) {
            installed = true;
            Runtime.getRuntime().addShutdownHook(new Thread(() -> Native.endProcess(""), "mpjdev-end"));
        }
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
        private final UncaughtExceptionHandler before;

        AbortOnUncaught(UncaughtExceptionHandler before) {
            this.before = before;
        }

        @Override
        public void uncaughtException(Thread thread, Throwable thrown) {
            try {
                before.uncaughtException(thread, thrown);
            } finally {
                Ranks.abort("uncaught in thread " + thread.getName() + ": " + thrown);
            }
        }
    }
}
