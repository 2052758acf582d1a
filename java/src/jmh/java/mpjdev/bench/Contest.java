package mpjdev.bench;

import java.util.Arrays;

/**
 * A comparison of several ways to do one thing, by turns in one JVM. A disturbance of the machine then
 * affects all of them, and their ratios stay. In each round every way has one turn of {@link #TURN_NANOS}.
 * The figure of a way is the median of its turns. JMH controls forks, warm-up and iterations. One invocation
 * is one round.
 */
final class Contest {
    /**
     * Every loop reads it before each operation, as those of JMH do, so that no work moves out of the loop.
     */
    static volatile boolean going = true;

    private static final long TURN_NANOS = 300_000;
    private static final int TIMES_MAX = 1 << 20;
    private static final int ROUNDS_MAX = 4096;

    private final Loop[] loops;
    private final int[] times;
    private final double[][] nanos;
    private int rounds;

    /** A loop that runs an operation a number of times. */
    @FunctionalInterface
    interface Loop {
        void run(int times) throws Exception;
    }

    /** Makes a contest of loops. Null marks a missing way. */
    Contest(Loop... loops) {
        this.loops = loops.clone();
        times = new int[loops.length];
        Arrays.fill(times, 1);
        nanos = new double[loops.length][ROUNDS_MAX];
    }

    /** Makes a contest of {@code ways} ways, whose results {@link #record} stores. */
    Contest(int ways) {
        this(new Loop[ways]);
    }

    /** Runs a turn of every loop. The first loop changes from round to round, and so does the order. */
    void round() throws Exception {
        double[] results = new double[loops.length];
        for (int turn = 0; turn < loops.length; turn++) {
            int i = (turn + rounds) % loops.length;
            results[i] = loops[i] == null ? 0 : measure(i);
        }
        record(results);
    }

    private double measure(int i) throws Exception {
        int n = times[i];
        long start = System.nanoTime();
        loops[i].run(n);
        double each = (System.nanoTime() - start) / (double) n;
        times[i] = adapted(n, each, TURN_NANOS);
        return each;
    }

    /**
     * Returns the repetitions that fill the next turn: at most 16 times the last ones, because the first are
     * slow.
     */
    static int adapted(int times, double nanosEach, long turnNanos) {
        return (int) Math.max(1, Math.min(Math.min(TIMES_MAX, 16.0 * times), turnNanos / Math.max(nanosEach, 0.1)));
    }

    /** Stores the results of one round in nanoseconds for one operation; 0 means no result. */
    void record(double... results) {
        for (int i = 0; i < results.length; i++) {
            nanos[i][rounds % ROUNDS_MAX] = results[i];
        }
        rounds++;
    }

    /** Discards the results at the beginning of an iteration. */
    void forget() {
        rounds = 0;
    }

    /** Returns the median of a way's turns in this iteration, in nanoseconds for one operation. */
    double median(int i) {
        double[] sorted = sorted(i);
        return sorted.length == 0 ? 0 : sorted[sorted.length / 2];
    }

    /** Returns the largest of a way's turns in this iteration. */
    double worst(int i) {
        double[] sorted = sorted(i);
        return sorted.length == 0 ? 0 : sorted[sorted.length - 1];
    }

    private double[] sorted(int i) {
        double[] sorted = Arrays.copyOf(nanos[i], Math.min(rounds, ROUNDS_MAX));
        Arrays.sort(sorted);
        return sorted;
    }
}
