package mpjdev;

import static org.junit.jupiter.api.Assertions.fail;

import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;

/** Waits on a condition with a deadline, and runs a job in one of its forms. Public: the tests of the core use it too. */
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

    /** The same, with a collection before each look. */
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

    /** Runs a job whose transport sends a message of objects as one or as two. */
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
