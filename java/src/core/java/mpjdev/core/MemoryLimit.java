package mpjdev.core;

/**
 * The limit on message memory outside the Java heap.
 *
 * <p>{@code -Dmpjdev.memory=SIZE} sets it, in octets or with a suffix k, m or g. The default is the largest
 * heap size, as for direct buffers.
 */
final class MemoryLimit {
    static final String LIMIT_PROPERTY = "mpjdev.memory";

    private MemoryLimit() {}

    /** Returns the limit that the property asks for. */
    static long of(String asked) {
        try {
            return parse(asked);
        } catch (IllegalArgumentException e) {
            // Any other exception of a static initialiser loses its text.
            throw new ExceptionInInitializerError(e.getMessage());
        }
    }

    /** Parses a size in octets, such as {@code 4096}, {@code 64k}, {@code 512m} or {@code 2g}. */
    static long parse(String size) {
        String text = size.trim().toLowerCase(java.util.Locale.ROOT);
        int shift = text.endsWith("k") ? 10 : text.endsWith("m") ? 20 : text.endsWith("g") ? 30 : 0;
        try {
            long number = Long.parseLong(shift == 0 ? text : text.substring(0, text.length() - 1));
            if (number >= 0 && number <= Long.MAX_VALUE >> shift) {
                return number << shift;
            }
        } catch (NumberFormatException e) {
            // The exception below names the property.
        }
        throw new IllegalArgumentException("-D" + LIMIT_PROPERTY + "=" + size
                + " is not a size: octets, or a number with k, m or g");
    }
}
