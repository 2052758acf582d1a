package mpjdev.tools;

import java.nio.DoubleBuffer;
import java.util.Arrays;
import java.util.SplittableRandom;
import mpjdev.BufferReadException;
import mpjdev.Comm;
import mpjdev.Type;

/** Round trips with messages that are not packed as a whole array. */
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

    /** A random permutation of the indexes of all doubles, the same in every run. */
    static int[] permutation(int octets) {
        int[] indexes = new int[octets / Double.BYTES];
        Arrays.setAll(indexes, i -> i);
        SplittableRandom random = new SplittableRandom(1);
        for (int i = indexes.length - 1; i > 0; i--) {
            int other = random.nextInt(i + 1);
            int index = indexes[i];
            indexes[i] = indexes[other];
            indexes[other] = index;
        }
        return indexes;
    }

    /** All doubles in random order. */
    static final class Random extends Packed {
        private final int[] indexes;

        Random(Comm world, int octets) {
            super(world, octets, octets / Double.BYTES);
            indexes = permutation(octets);
        }

        @Override
        void pack(long round) {
            out.gather(array, indexes.length, 0, indexes);
        }

        @Override
        void unpack() throws BufferReadException {
            in.scatter(array, indexes.length, 0, indexes);
        }
    }

    /** All doubles in random order, without a buffer. */
    static final class RandomDirect extends ShapedTrips {
        private final int[] indexes;

        RandomDirect(Comm world, int octets) {
            super(world, octets, octets / Double.BYTES);
            indexes = permutation(octets);
        }

        @Override
        void send(long round) {
            world.sendGathered(array, indexes.length, 0, indexes, other, TAG);
        }

        @Override
        void receive() {
            world.recvScattered(array, indexes.length, 0, indexes, other, TAG);
        }
    }

    /**
     * Doubles outside the heap, through views. The sender rewrites every element, and the receiver adds them
     * up.
     */
    static final class Sum extends Packed {
        private final int count;
        /** Keeps the compiler from removing the sums. */
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

        /** Sum of the last message. */
        double sum() {
            return sum;
        }
    }
}
