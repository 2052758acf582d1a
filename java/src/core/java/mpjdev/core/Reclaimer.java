package mpjdev.core;

import java.util.function.LongSupplier;

/**
 * Garbage collections that free message memory or descriptors, and a limit on their rate.
 *
 * <p>After three collections in a row that freed nothing, the reclaimer pauses for ten times as long as the
 * last one took. So a program that reaches its limit again and again spends at most a tenth of its time on
 * them.
 */
final class Reclaimer {
    /** Longest wait for the cleaner, whose thread may have to wait for a processor. */
    private static final long WAIT_NANOS = 1_000_000_000;
    private static final long PAUSE = 10;
    private static final int EMPTY_RUNS_MAX = 3;

    private final LongSupplier clock;
    private final LongSupplier used;
    private final Runnable collect;
    private final long settleNanos;

    private int emptyRuns;
    private long ended;
    private long took;

    /**
     * Makes a reclaimer. {@code clock} returns nanoseconds, {@code used} the resource in use. A run ends when
     * {@code used} has shrunk and then stayed the same for {@code settleNanos}; 0 ends it at once, for a
     * resource that is requested in small pieces.
     */
    Reclaimer(LongSupplier clock, LongSupplier used, Runnable collect, long settleNanos) {
        this.clock = clock;
        this.used = used;
        this.collect = collect;
        this.settleNanos = settleNanos;
    }

    /** Collects and waits for the cleaner, unless it pauses. Returns whether something was freed. */
    synchronized boolean run() {
        long begun = clock.getAsLong();
        if (emptyRuns >= EMPTY_RUNS_MAX && begun - ended < PAUSE * took) {
            return false;
        }
        long before = used.getAsLong();
        collect.run();
        long least = before;
        long since = clock.getAsLong();
        // A condition with a deadline: the Cleaner closes one handle after the other on its own thread.
        while (clock.getAsLong() - since < (least < before ? settleNanos : WAIT_NANOS)) {
            Thread.onSpinWait();
            Thread.yield();
            long now = used.getAsLong();
            if (now < least) {
                least = now;
                since = clock.getAsLong();
            }
        }
        boolean freed = least < before;
        emptyRuns = freed ? 0 : emptyRuns + 1;
        ended = clock.getAsLong();
        took = ended - begun;
        return freed;
    }
}
