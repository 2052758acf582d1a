package mpjdev.core;

import java.io.OutputStream;
import java.util.Objects;

/**
 * Appends to the secondary payload of a buffer in chunks, so that the Java heap never holds all of it.
 * Internal.
 */
public final class SecondaryOutput extends OutputStream {
    private static final int CHUNK = 8192;

    private final long handle;
    private final byte[] chunk = new byte[CHUNK];
    private int fill;

    /**
     * Makes a stream that appends to a payload.
     *
     * @param handle a buffer for writing; its owner keeps it reachable during every call
     */
    public SecondaryOutput(long handle) {
        this.handle = handle;
    }

    @Override
    public void write(int octet) {
        if (fill == CHUNK) {
            flush();
        }
        chunk[fill++] = (byte) octet;
    }

    @Override
    public void write(byte[] source, int off, int count) {
        Objects.checkFromIndexSize(off, count, source.length);
        if (count > CHUNK - fill) {
            flush();
            if (count >= CHUNK) {
                Native.appendSecondary(handle, source, source.length, off, count);
                return;
            }
        }
        System.arraycopy(source, off, chunk, fill, count);
        fill += count;
    }

    /** Appends the octets of the chunk to the payload. */
    @Override
    public void flush() {
        if (fill > 0) {
            Native.appendSecondary(handle, chunk, CHUNK, 0, fill);
            fill = 0;
        }
    }

    /** Discards the octets of the chunk. */
    public void drop() {
        fill = 0;
    }
}
