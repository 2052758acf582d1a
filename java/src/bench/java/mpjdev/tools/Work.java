package mpjdev.tools;

import mpjdev.Buffer;
import mpjdev.Comm;
import mpjdev.ReadBuffer;
import mpjdev.WriteBuffer;

/** Repeated work of one rank, with its resources. */
abstract class Work implements AutoCloseable {
    static final int TAG = 1;

    final Comm world;
    final int me;
    final int size;
    /** The other one of the first two ranks, which alone do something where two are enough; else -1. */
    final int other;

    /** Nanoseconds of the part that counts, where that is not all of it; else NaN. */
    double nanos = Double.NaN;
    /** Second result: octets, or a number of wake-ups. */
    double extra;

    Work(Comm world) {
        this.world = world;
        me = world.id();
        size = world.size();
        other = size > 1 && me < 2 ? 1 - me : -1;
    }

    /** Does it so often. All ranks call it with the same number. */
    abstract void run(long times) throws Exception;

    @Override
    public void close() {}

    /** With an array, and a buffer for each direction that it fits. */
    abstract static class WithArray extends Work {
        final double[] array;
        final WriteBuffer out;
        final ReadBuffer in;

        WithArray(Comm world, int octets) {
            this(world, octets, octets / Double.BYTES);
        }

        WithArray(Comm world, int octets, int elements) {
            super(world);
            array = new double[elements];
            out = new WriteBuffer(Buffer.SECTION_OVERHEAD + octets);
            in = new ReadBuffer(Buffer.SECTION_OVERHEAD + octets);
        }

        final void write() {
            out.clear();
            out.write(array, 0, array.length);
        }

        @Override
        public void close() {
            out.close();
            in.close();
        }
    }
}
