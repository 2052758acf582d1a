package mpjdev.tools;

import java.nio.DoubleBuffer;
import mpjdev.BufferReadException;
import mpjdev.Comm;
import mpjdev.Type;

/** There and back with messages that are packed in other ways than as a whole array. */
abstract class ShapedTrips extends Work.WithArray {
    ShapedTrips(Comm world, int octets, int elements) {
        super(world, octets, elements);
    }

    abstract void pack(long round);

    abstract void unpack() throws BufferReadException;

    @Override
    final void run(long times) throws Exception {
        for (long i = 0; i < times && other >= 0; i++) {
            if (me == 0) {
                out.clear();
                pack(i);
                world.send(out, 1, TAG);
            }
            world.recv(in, other, TAG);
            unpack();
            if (me == 1) {
                out.clear();
                pack(i);
                world.send(out, 0, TAG);
            }
        }
    }

    /** Every second double. */
    static final class Strided extends ShapedTrips {
        /** Extent and stride. */
        private final int[] shape;

        Strided(Comm world, int octets) {
            super(world, octets, 2 * (octets / Double.BYTES));
            shape = new int[] {octets / Double.BYTES, 2};
        }

        @Override
        void pack(long round) {
            out.strGather(array, 0, 1, 0, 1, shape);
        }

        @Override
        void unpack() throws BufferReadException {
            in.strScatter(array, 0, 1, 0, 1, shape);
        }
    }

    /** All doubles in random order, the same that the C program has. */
    static final class Random extends ShapedTrips {
        private static final long MULTIPLIER = 6364136223846793005L;
        private static final long INCREMENT = 1442695040888963407L;

        private final int[] places;

        Random(Comm world, int octets) {
            super(world, octets, octets / Double.BYTES);
            places = new int[array.length];
            long state = 1;
            for (int i = 0; i < places.length; i++) {
                places[i] = i;
            }
            for (int i = places.length - 1; i > 0; i--) {
                state = state * MULTIPLIER + INCREMENT;
                int place = (int) ((state >>> 33) % (i + 1));
                int kept = places[i];
                places[i] = places[place];
                places[place] = kept;
            }
        }

        @Override
        void pack(long round) {
            out.gather(array, places.length, 0, places);
        }

        @Override
        void unpack() throws BufferReadException {
            in.scatter(array, places.length, 0, places);
        }
    }

    /** Outside the heap, through views: the sender rewrites every element, the receiver adds them all up. */
    static final class Sum extends ShapedTrips {
        private final int count;
        /** Kept, so that sums are not left out. */
        private double sum;

        Sum(Comm world, int octets) {
            super(world, octets, 0);
            count = octets / Double.BYTES;
        }

        @Override
        void pack(long round) {
            DoubleBuffer rewritten = out.view(Type.DOUBLE, count).asDoubleBuffer();
            for (int i = 0; i < count; i++) {
                rewritten.put(i, round + i);
            }
        }

        @Override
        void unpack() throws BufferReadException {
            DoubleBuffer received = in.view(Type.DOUBLE, count).asDoubleBuffer();
            double all = 0;
            for (int i = 0; i < count; i++) {
                all += received.get(i);
            }
            sum = all;
        }

        /** Of what was received last. */
        double sum() {
            return sum;
        }
    }
}
