package mpjdev.tools;

import java.util.Arrays;
import java.util.Locale;
import mpjdev.Comm;
import mpjdev.core.Native;

/**
 * The cost of counting: calls with a profile and without it, in turns of one job. Rank 0 prints for each row
 * its name, and the nanoseconds of a call without and with a profile: medians over the turns.
 */
public final class ProfileCost {
    private static final int TIMES = 2000;
    private static final int TAG = 1;

    private final Comm world = Comm.WORLD;
    private final int me = world.id();
    private final double[] element = new double[1];

    private ProfileCost() {}

    private interface Calls {
        /** Makes two calls this number of times. */
        void run(int times);
    }

    /** Sends to the other rank and receives from it: half of the time is a send and a receive. */
    private void trips(int times) {
        for (int i = 0; i < times; i++) {
            if (me == 0) {
                world.send(element, 0, 1, 1, TAG);
                world.recv(element, 0, 1, 1, TAG);
            } else {
                world.recv(element, 0, 1, 0, TAG);
                world.send(element, 0, 1, 0, TAG);
            }
        }
    }

    /** Sends to the own rank, where nothing waits. */
    private void own(int times) {
        for (int i = 0; i < times; i++) {
            world.send(element, 0, 1, me, TAG);
            world.recv(element, 0, 1, me, TAG);
        }
    }

    private void measure(String name, int turns, int callsEach, Calls calls) {
        double[][] nanos = new double[2][turns];
        for (int warm = 0; warm < 20; warm++) {
            calls.run(TIMES);
        }
        for (int turn = 0; turn < turns; turn++) {
            // The first one of a pair changes: neither always runs after the other.
            for (int which = 0; which < 2; which++) {
                int counted = which ^ turn % 2;
                Native.pauseProfile(counted == 0);
                world.barrier();
                long begun = System.nanoTime();
                calls.run(TIMES);
                nanos[counted][turn] = (System.nanoTime() - begun) / (double) TIMES / callsEach;
            }
        }
        double[] differences = new double[turns];
        Arrays.setAll(differences, turn -> nanos[1][turn] - nanos[0][turn]);
        if (me == 0) {
            System.out.printf(Locale.ROOT, "%s %.2f %.2f %.2f%n", name, median(nanos[0]), median(nanos[1]),
                    median(differences));
        }
    }

    private static double median(double[] values) {
        Arrays.sort(values);
        return values[values.length / 2];
    }

    /** Runs the turns: their number is the first argument. */
    public static void main(String[] args) {
        Comm.init(args);
        int turns = Integer.parseInt(args[0]);
        ProfileCost cost = new ProfileCost();
        cost.measure("trip", turns, 4, cost::trips);
        cost.measure("own", turns, 2, cost::own);
        Comm.finish();
    }
}
