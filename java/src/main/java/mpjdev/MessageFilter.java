package mpjdev;

import java.io.ObjectInputFilter;

/**
 * What may be deserialised from a message: our own limits, the user's filter, and the JVM-wide one, which setting a filter
 * on a stream would otherwise replace (JDK 17). Whoever rejects wins.
 */
final class MessageFilter implements ObjectInputFilter {
    static final String DEPTH_PROPERTY = "mpjdev.filter.depth";
    static final String PATTERN_PROPERTY = "mpjdev.filter";

    private static final int DEPTH = depth();
    private static final ObjectInputFilter CONFIGURED = configured();

    private final ObjectInputFilter user;
    private final long payload;

    /** A filter for a payload of so many octets; {@code user} may be null. */
    MessageFilter(ObjectInputFilter user, long payload) {
        this.user = user;
        this.payload = payload;
    }

    private static ObjectInputFilter configured() {
        String pattern = System.getProperty(PATTERN_PROPERTY);
        try {
            return pattern == null ? null : ObjectInputFilter.Config.createFilter(pattern);
        } catch (IllegalArgumentException e) {
            throw new ExceptionInInitializerError("-D" + PATTERN_PROPERTY + "=" + pattern + " is no filter pattern: "
                    + e.getMessage());
        }
    }

    /** A limit that cannot be read must not become another one silently. */
    private static int depth() {
        String depth = System.getProperty(DEPTH_PROPERTY);
        try {
            int limit = depth == null ? 1000 : Integer.parseInt(depth.trim());
            if (limit > 0) {
                return limit;
            }
        } catch (NumberFormatException e) {
            // Said below, with the name of the property.
        }
        // Thrown by a static initialiser, an exception would lose its text.
        throw new ExceptionInInitializerError("-D" + DEPTH_PROPERTY + "=" + depth + " is not a depth: a number from 1 to "
                + Integer.MAX_VALUE);
    }

    @Override
    public Status checkInput(FilterInfo info) {
        // An element takes at least an octet, so an honest array is never longer than the payload.
        if (info.depth() > DEPTH || info.arrayLength() > payload) {
            return Status.REJECTED;
        }
        Status all = Status.UNDECIDED;
        for (ObjectInputFilter filter : new ObjectInputFilter[] {user, CONFIGURED, Config.getSerialFilter()}) {
            Status one = filter == null ? Status.UNDECIDED : filter.checkInput(info);
            if (one == Status.REJECTED) {
                return one;
            }
            if (one == Status.ALLOWED) {
                all = one;
            }
        }
        return all;
    }
}
