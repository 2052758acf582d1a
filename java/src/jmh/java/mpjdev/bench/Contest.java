package mpjdev.bench;

import java.util.Arrays;

/**
 * Several ways to do one thing, measured by turns inside one JVM: whatever disturbs the machine for a while disturbs all of
 * them, and their ratios stay. Each round gives every way one turn of about {@link #TURN_NANOS}; the figure of a way is
 * the median of its turns. JMH rules over forks, warm-up and iterations; one invocation is one round.
 */
final class Contest {
    /** Read before every operation, as JMH's own loops do: nothing may be moved out of a loop past it. */
    static volatile boolean going = true;

    private static final long TURN_NANOS = 300_000;
    private static final int TIMES_MAX = 1 << 20;
    private static final int ROUNDS_MAX = 4096;

    private final Loop[] loops;
    private final int[] times;
    private final double[][] nanos;
    private int rounds;

    /** Does one thing a number of times. */
    @FunctionalInterface
    interface Loop {
        void run(int times) throws Exception;
    }

    /** A contest of these loops; null takes the place of a way that does not exist here. */
    Contest(Loop... loops) {
        this.loops = loops.clone();
        times = new int[loops.length];
        Arrays.fill(times, 1);
        nanos = new double[loops.length][ROUNDS_MAX];
    }

    /** A contest of so many ways, whose results come by {@link #record}. */
    Contest(int ways) {
        this(new Loop[ways]);
    }

    /** Gives every loop its turn. Another one begins each time, so that none always follows the same. */
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

    /** How often to do next time what took so long, to fill a turn; at most sixteen times as often, since the first are slow. */
    static int adapted(int times, double nanosEach, long turnNanos) {
        return (int) Math.max(1, Math.min(Math.min(TIMES_MAX, 16.0 * times), turnNanos / Math.max(nanosEach, 0.1)));
    }

    /** Takes the results of one round, in nanoseconds for one operation; 0 stands for none. */
    void record(double... results) {
        for (int i = 0; i < results.length; i++) {
            nanos[i][rounds % ROUNDS_MAX] = results[i];
        }
        rounds++;
    }

    /** Forgets the results: an iteration begins. */
    void forget() {
        rounds = 0;
    }

    /** Median of a way's turns since then, in nanoseconds for one operation. */
    double median(int i) {
        double[] sorted = sorted(i);
        return sorted.length == 0 ? 0 : sorted[sorted.length / 2];
    }

    /** Largest of a way's turns since then. */
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
