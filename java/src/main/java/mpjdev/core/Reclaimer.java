package mpjdev.core;

import java.util.function.LongSupplier;

/**
 * Collections that are to free message memory or descriptors, and how often they are worth it.
 *
 * <p>After three collections in a row that freed nothing there is none for ten times as long as the last one took: a program
 * that meets the limit again and again spends at most a tenth of its time on them.
 */
final class Reclaimer {
    /** How long to wait for what the collector has found to be given back, by a thread that may have to wait for a processor. */
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
     * {@code clock} gives nanoseconds, {@code used} what is to become less. It counts as freed when it has become no less for
     * {@code settleNanos}; with 0 at once, for what is asked for in small pieces.
     */
    Reclaimer(LongSupplier clock, LongSupplier used, Runnable collect, long settleNanos) {
        this.clock = clock;
        this.used = used;
        this.collect = collect;
        this.settleNanos = settleNanos;
    }

    /** Collects and waits a little, unless that is not worth it; whether something was freed. */
    synchronized boolean run() {
        long begun = clock.getAsLong();
        if (emptyRuns >= EMPTY_RUNS_MAX && begun - ended < PAUSE * took) {
            return false;
        }
        long before = used.getAsLong();
        collect.run();
        long least = before;
        long since = clock.getAsLong();
        // A condition with a deadline: the Cleaner closes one after the other, in its own time.
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
