package mpjdev;

import java.io.ObjectInputFilter;

/**
 * What may be deserialised from a message: our own limits, the user's filter, and the JVM-wide one, which setting a filter
 * on a stream would otherwise replace (JDK 17). Whoever rejects wins.
 */
final class MessageFilter implements ObjectInputFilter {
    static final String DEPTH_PROPERTY = "mpjdev.filter.depth";
    static final String PATTERN_PROPERTY = "mpjdev.filter";

    private static final long DEPTH = limit(DEPTH_PROPERTY, "depth", 1000, Integer.MAX_VALUE);
    private static final ObjectInputFilter CONFIGURED = configured();

    private final ObjectInputFilter user;
    private final long payload;
    private final HashWork work;
    /** Elements of all arrays of the stream. */
    private long elements;
    /** Which of our own limits has rejected. */
    private String reason;

    /** A filter for a payload of this many octets; {@code user} may be null. */
    MessageFilter(ObjectInputFilter user, long payload) {
        this.user = user;
        this.payload = payload;
        work = new HashWork(payload);
    }

    /** Counts the steps of hash codes in the stream. */
    HashWork work() {
        return work;
    }

    /** Which of our own limits has rejected; null when none has. */
    String reason() {
        return reason;
    }

    private Status reject(String why) {
        reason = why;
        return Status.REJECTED;
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
    static long limit(String property, String what, long otherwise, long most) {
        String asked = System.getProperty(property);
        try {
            long limit = asked == null ? otherwise : Long.parseLong(asked.trim());
            if (asked == null || limit > 0 && limit <= most) {
                return limit;
            }
        } catch (NumberFormatException e) {
            // Said below, with the name of the property.
        }
        // Thrown by a static initialiser, an exception would lose its text.
        throw new ExceptionInInitializerError("-D" + property + "=" + asked + " is not a " + what + ": a number from 1 to "
                + most);
    }

    @Override
    public Status checkInput(FilterInfo info) {
        if (info.depth() > DEPTH) {
            return reject("the graph is deeper than " + DEPTH + " references: -D" + DEPTH_PROPERTY
                    + " allows more, for which a thread may need a larger stack (-Xss)");
        }
        // An element takes at least an octet, so an honest array is never longer than the payload. Neither is their sum, but
        // collections ask with the sizes of their tables.
        elements += Math.max(0, info.arrayLength());
        if (info.arrayLength() > payload || elements > 2 * payload) {
            return reject("its arrays are longer than a payload of " + payload + " octets can hold");
        }
        work.add(info.serialClass());
        if (work.isTooMuch()) {
            return reject(work.reason());
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
