package mpjdev.core;

import java.util.function.LongSupplier;

/**
 * Collections that are to free message memory or descriptors, and how often they are worth it.
 *
 * <p>After three collections in a row that freed nothing there is none for ten times as long as the last one took: a program
 * that meets the limit again and again spends at most a tenth of its time on them.
 */
final class Reclaiming {
    /** How long to wait for buffers that the collector has found to give their memory back. */
    private static final long WAIT_NANOS = 100_000_000;
    private static final long PAUSE = 10;
    private static final int FRUITLESS_MAX = 3;

    private final LongSupplier clock;
    private final LongSupplier used;
    private final Runnable collect;

    private int fruitless;
    private long ended;
    private long took;

    /** {@code clock} gives nanoseconds, {@code used} what is to become less. */
    Reclaiming(LongSupplier clock, LongSupplier used, Runnable collect) {
        this.clock = clock;
        this.used = used;
        this.collect = collect;
    }

    /** Collects and waits a little, unless that is not worth it; whether something was freed. */
    synchronized boolean run() {
        long begun = clock.getAsLong();
        if (fruitless >= FRUITLESS_MAX && begun - ended < PAUSE * took) {
            return false;
        }
        long before = used.getAsLong();
        collect.run();
        long end = clock.getAsLong() + WAIT_NANOS;
        // A condition with a deadline: the Cleaner closes buffers in its own time.
        while (used.getAsLong() >= before && clock.getAsLong() < end) {
            Thread.onSpinWait();
            Thread.yield();
        }
        boolean freed = used.getAsLong() < before;
        fruitless = freed ? 0 : fruitless + 1;
        ended = clock.getAsLong();
        took = ended - begun;
        return freed;
    }
}
