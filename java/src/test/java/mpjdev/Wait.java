package mpjdev;

import static org.junit.jupiter.api.Assertions.fail;

import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;

/**
 * Waits for conditions with a deadline, and jobs that split messages or not. Public: the tests of the core
 * use it too.
 */
public final class Wait {
    private static final long DEADLINE_SECONDS = 30;

    private Wait() {}

    /** Waits until the condition holds. */
    public static void until(String what, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(DEADLINE_SECONDS);
        while (!condition.call()) {
            if (System.nanoTime() > end) {
                fail("after " + DEADLINE_SECONDS + " s still not: " + what);
            }
            Thread.yield();
        }
    }

    /** Waits until the condition holds, with a collection before each check. */
    static void untilCollected(String what, Callable<Boolean> condition) throws Exception {
        until(what, () -> {
            System.gc();
            return condition.call();
        });
    }

    /** Waits for the end of threads. */
    public static void join(Thread... threads) throws Exception {
        for (Thread thread : threads) {
            thread.join(TimeUnit.SECONDS.toMillis(DEADLINE_SECONDS));
            if (thread.isAlive()) {
                fail("after " + DEADLINE_SECONDS + " s still running: " + thread.getName());
            }
        }
    }

    /** Runs a job of threads that splits messages with objects, or does not. */
    public static <E extends Exception> void job(boolean messageOriented, int ranks, Comm.Task<E> task) throws E {
        String before = System.getProperty("mpjdev.messageOriented");
        System.setProperty("mpjdev.messageOriented", Boolean.toString(messageOriented));
        try {
            Comm.runThreads(ranks, task);
        } finally {
            if (before == null) {
                System.clearProperty("mpjdev.messageOriented");
            } else {
                System.setProperty("mpjdev.messageOriented", before);
            }
        }
    }
}
