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
    /** The peer in cases of two ranks; -1 for idle ranks. */
    final int other;

    /** Nanoseconds of the measured part; NaN if that is the whole run. */
    double nanos = Double.NaN;
    /** Second result of the case. */
    double extra;

    Work(Comm world) {
        this.world = world;
        me = world.id();
        size = world.size();
        other = size > 1 && me < 2 ? 1 - me : -1;
    }

    /** Runs the work {@code times} times. All ranks call it with the same number. */
    abstract void run(long times) throws Exception;

    @Override
    public void close() {}

    /** Work with an array, and a buffer of its length for each direction. */
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
