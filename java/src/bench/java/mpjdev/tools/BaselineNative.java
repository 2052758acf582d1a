package mpjdev.tools;

import java.nio.ByteBuffer;

/** Native methods of the baseline: one of two ranks that trust each other, with one thread. */
final class BaselineNative {
    /** Property that names the library. */
    static final String PROPERTY = "mpjdev.baseline.path";

    static {
        String file = System.getProperty(PROPERTY);
        if (file == null) {
            throw new UnsatisfiedLinkError("-D" + PROPERTY + "=FILE must name the library of rust/bench/baseline");
        }
        System.load(file);
    }

    private BaselineNative() {}

    /** Opens a rank over its own segment and that of its peer, which must stay mapped. */
    static native long open(ByteBuffer own, ByteBuffer peer);

    static native void close(long rank);

    /** Returns a buffer for sections of {@code capacity} octets. */
    static native long newBuffer(long rank, int capacity);

    static native void freeBuffer(long rank, long buffer);

    /** Empties a buffer and writes a section of the first {@code count} elements of an array. */
    static native void write(long rank, long buffer, double[] array, int count);

    /** Reads a section into the first {@code count} elements of an array. */
    static native void read(long rank, long buffer, double[] array, int count);

    static native void send(long rank, long buffer, int tag);

    /** Waits for a message and returns the octets of its sections. */
    static native long recv(long rank, long buffer, int tag);
}
