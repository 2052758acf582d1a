package mpjdev.tools;

import java.util.Arrays;
import mpjdev.Comm;

/** Round trips from array to array, without a buffer. */
class DirectTrips extends Work.WithArray {
    DirectTrips(Comm world, int octets) {
        super(world, octets);
    }

    @Override
    void run(long times) {
        trips(times);
    }

    final void trips(long times) {
        int n = array.length;
        for (long i = 0; i < times && other >= 0; i++) {
            if (me == 0) {
                world.send(array, 0, n, 1, TAG);
            }
            world.recv(array, 0, n, other, TAG);
            if (me == 1) {
                world.send(array, 0, n, 0, TAG);
            }
        }
    }

    /**
     * Round trips, each timed by rank 0. The second result is the median multiplied by the number of trips.
     */
    static final class Timed extends DirectTrips {
        /** Limit of the trips of a median. */
        private static final int TIMED_MAX = 1 << 16;

        private final long[] trips = new long[TIMED_MAX];

        Timed(Comm world, int octets) {
            super(world, octets);
        }

        @Override
        void run(long times) {
            if (me != 0 || other < 0) {
                trips(times);
                return;
            }
            long step = (times + TIMED_MAX - 1) / TIMED_MAX;
            int kept = 0;
            long begin = System.nanoTime();
            for (long i = 0; i < times; i++) {
                trips(1);
                long end = System.nanoTime();
                if (i % step == 0) {
                    trips[kept++] = end - begin;
                }
                begin = end;
            }
            Arrays.sort(trips, 0, kept);
            extra = (trips[(kept - 1) / 2] + trips[kept / 2]) / 2.0 * times;
        }
    }

    /** Round trips in which the sender rewrites every element and the receiver adds them up. */
    static final class Sum extends Work.WithArray {
        /** Keeps the compiler from removing the sums. */
        private double sum;

        Sum(Comm world, int octets) {
            super(world, octets);
        }

        @Override
        void run(long times) {
            for (long i = 0; i < times && other >= 0; i++) {
                if (me == 0) {
                    send(i);
                }
                world.recv(array, 0, array.length, other, TAG);
                double all = 0;
                for (double element : array) {
                    all += element;
                }
                sum = all;
                if (me == 1) {
                    send(i);
                }
            }
        }

        private void send(long round) {
            for (int i = 0; i < array.length; i++) {
                array[i] = round + i;
            }
            world.send(array, 0, array.length, other, TAG);
        }

        /** Sum of the last message. */
        double sum() {
            return sum;
        }
    }
}
