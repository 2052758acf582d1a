package mpjdev.tools;

import mpjdev.core.Native;

/** Time of a call of a native method, with the boundary that turns panics into exceptions. */
final class NativeCall {
    /** Code of doubles. */
    private static final int DOUBLES = 7;
    private static final int TIMES = 10_000;
    private static final int SLICES = 2000;

    /** Keeps the compiler from removing the calls. */
    private static volatile long sink;

    private NativeCall() {}

    /** Returns the nanoseconds of one call, best of many slices. The method only computes a length. */
    static double nanos() {
        double best = Double.POSITIVE_INFINITY;
        for (int slice = 0; slice < SLICES; slice++) {
            best = Math.min(best, slice());
        }
        return best;
    }

    private static double slice() {
        long sum = 0;
        long begin = System.nanoTime();
        for (int i = 0; i < TIMES; i++) {
            sum += Native.sectionCapacity(DOUBLES, i);
        }
        double nanos = (System.nanoTime() - begin) / (double) TIMES;
        sink = sum;
        return nanos;
    }
}
