package mpjdev;

import java.io.ObjectInputFilter;

/**
 * What may be deserialised from a message: our own limits, the user's filter, and the JVM-wide one, which setting a filter
 * on a stream would otherwise replace (JDK 17). Whoever rejects wins.
 */
final class MessageFilter implements ObjectInputFilter {
    static final String DEPTH_PROPERTY = "mpjdev.filter.depth";
    static final String PATTERN_PROPERTY = "mpjdev.filter";

    private static final int DEPTH = Integer.getInteger(DEPTH_PROPERTY, 1000);
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
        return pattern == null ? null : ObjectInputFilter.Config.createFilter(pattern);
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
