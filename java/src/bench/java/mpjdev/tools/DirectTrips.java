package mpjdev.tools;

import mpjdev.Comm;

/** There and back from array to array, without a buffer. */
final class DirectTrips extends Work.WithArray {
    DirectTrips(Comm world, int octets) {
        super(world, octets);
    }

    @Override
    void run(long times) {
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

    /** As these, but the sender has just written every element, and the receiver adds them all up. */
    static final class Sum extends Work.WithArray {
        /** Kept, so that sums are not left out. */
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

        /** Of what was received last. */
        double sum() {
            return sum;
        }
    }
}
