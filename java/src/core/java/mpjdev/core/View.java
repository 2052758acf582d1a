package mpjdev.core;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Sections in place: direct buffers of message memory. Internal.
 *
 * <p>Native code keeps the memory until the direct buffer and all buffers derived from it are unreachable.
 */
public final class View {
    private static final int VIEW = 0;
    private static final int ORDER = 1;
    private static final int OUT_LENGTH = 2;

    private View() {}

    /**
     * Writes a section whose elements the caller fills later.
     *
     * @param buffer handle of a buffer for writing
     * @param type code of a primitive type
     * @param count number of elements
     * @param flags flags
     * @return the octets of the elements, in the byte order of the message
     */
    public static ByteBuffer write(long buffer, int type, int count, int flags) {
        long[] out = new long[OUT_LENGTH];
        return keep(Native.writeView(buffer, type, count, out, OUT_LENGTH, flags), out);
    }

    /**
     * Reads a section.
     *
     * @param buffer handle of a buffer for reading
     * @param type code of a primitive type
     * @param count number of elements
     * @param flags flags
     * @return the octets of the elements, read-only, in the byte order of the message
     */
    public static ByteBuffer read(long buffer, int type, int count, int flags) {
        long[] out = new long[OUT_LENGTH];
        ByteBuffer octets = keep(Native.readView(buffer, type, count, out, OUT_LENGTH, flags), out);
        return octets.asReadOnlyBuffer().order(octets.order());
    }

    private static ByteBuffer keep(ByteBuffer octets, long[] out) {
        try {
            new Resource(octets, out[VIEW], Resource.VIEW);
        } catch (Throwable e) {
            Native.freeView(out[VIEW]);
            throw e;
        }
        return octets.order(out[ORDER] == 0 ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN);
    }
}
