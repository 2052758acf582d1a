package mpjdev.core;

import java.io.InputStream;
import java.util.Objects;

/** Reads the secondary payload of a buffer in chunks. Internal. */
public final class SecondaryInput extends InputStream {
    private static final int CHUNK = 8192;

    private final long handle;
    private final byte[] chunk = new byte[CHUNK];
    private int next;
    private int end;
    /** Octets of the payload that were fetched. */
    private long fetched;

    /**
     * Makes a stream from the beginning of a payload.
     *
     * @param handle a buffer for reading; its owner keeps it reachable during every call
     */
    public SecondaryInput(long handle) {
        this.handle = handle;
    }

    @Override
    public int read() {
        return next < end || fill() ? chunk[next++] & 255 : -1;
    }

    @Override
    public int read(byte[] dest, int off, int count) {
        Objects.checkFromIndexSize(off, count, dest.length);
        if (count == 0) {
            return 0;
        }
        if (next == end) {
            if (count >= CHUNK) {
                int n = Native.readSecondary(handle, fetched, dest, dest.length, off, count);
                fetched += n;
                return n == 0 ? -1 : n;
            }
            if (!fill()) {
                return -1;
            }
        }
        int n = Math.min(count, end - next);
        System.arraycopy(chunk, next, dest, off, n);
        next += n;
        return n;
    }

    @Override
    public int available() {
        return end - next;
    }

    private boolean fill() {
        end = Native.readSecondary(handle, fetched, chunk, CHUNK, 0, CHUNK);
        fetched += end;
        next = 0;
        return end > 0;
    }
}
