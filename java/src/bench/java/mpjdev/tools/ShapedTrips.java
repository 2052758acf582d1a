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

    abstract void send(long round);

    abstract void receive() throws Exception;

    @Override
    final void run(long times) throws Exception {
        for (long i = 0; i < times && other >= 0; i++) {
            if (me == 0) {
                send(i);
            }
            receive();
            if (me == 1) {
                send(i);
            }
        }
    }

    /** By buffers. */
    abstract static class Packed extends ShapedTrips {
        Packed(Comm world, int octets, int elements) {
            super(world, octets, elements);
        }

        abstract void pack(long round);

        abstract void unpack() throws BufferReadException;

        @Override
        final void send(long round) {
            out.clear();
            pack(round);
            world.send(out, other, TAG);
        }

        @Override
        final void receive() throws Exception {
            world.recv(in, other, TAG);
            unpack();
        }
    }

    /** Extent and stride of every second double. */
    private static int[] shape(int octets) {
        return new int[] {octets / Double.BYTES, 2};
    }

    /** Every second double. */
    static final class Strided extends Packed {
        private final int[] shape;

        Strided(Comm world, int octets) {
            super(world, octets, 2 * (octets / Double.BYTES));
            shape = shape(octets);
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

    /** Every second double, without a buffer. */
    static final class StridedDirect extends ShapedTrips {
        private final int[] shape;

        StridedDirect(Comm world, int octets) {
            super(world, octets, 2 * (octets / Double.BYTES));
            shape = shape(octets);
        }

        @Override
        void send(long round) {
            world.sendPatch(array, 0, 1, 0, 1, shape, other, TAG);
        }

        @Override
        void receive() {
            world.recvPatch(array, 0, 1, 0, 1, shape, other, TAG);
        }
    }

    private static final long MULTIPLIER = 6364136223846793005L;
    private static final long INCREMENT = 1442695040888963407L;

    /** A random order of places, the same that the C program has. */
    private static int[] places(int octets) {
        int[] places = new int[octets / Double.BYTES];
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
        return places;
    }

    /** All doubles in random order. */
    static final class Random extends Packed {
        private final int[] places;

        Random(Comm world, int octets) {
            super(world, octets, octets / Double.BYTES);
            places = places(octets);
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

    /** All doubles in random order, without a buffer. */
    static final class RandomDirect extends ShapedTrips {
        private final int[] places;

        RandomDirect(Comm world, int octets) {
            super(world, octets, octets / Double.BYTES);
            places = places(octets);
        }

        @Override
        void send(long round) {
            world.sendGathered(array, places.length, 0, places, other, TAG);
        }

        @Override
        void receive() {
            world.recvScattered(array, places.length, 0, places, other, TAG);
        }
    }

    /** Outside the heap, through views: the sender rewrites every element, the receiver adds them all up. */
    static final class Sum extends Packed {
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
