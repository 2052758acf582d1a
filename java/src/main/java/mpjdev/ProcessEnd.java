package mpjdev;

import java.lang.Thread.UncaughtExceptionHandler;
import mpjdev.core.Native;

/**
 * What a process that is a rank over a C MPI has to do before it ends. An MPI is finalised once in a process, by all of its job together,
 * so not by {@link Comm#finish}, after which a process may be a rank again. Where our own launcher watches the ranks nothing is to
 * be done.
 */
final class ProcessEnd {
    private static boolean installed;

    private ProcessEnd() {}

    /** The calling thread has made this process a rank. */
    static synchronized void install() {
        if (!Native.usesMpi()) {
            return;
        }
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

    /** Other threads of the program may go on for ever, and other ranks wait for this one: the job ends. */
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
