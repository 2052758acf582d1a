package mpjdev.core;

import java.io.ObjectInputFilter;

/**
 * The filter of a message's objects: built-in limits, the filter of the user, and that of the JVM. It asks
 * the filter of the JVM itself, because a filter that is set on a stream replaces it (JDK 17). Each of them
 * can reject. Internal.
 */
public final class MessageFilter implements ObjectInputFilter {
    /** Property that sets the largest depth. */
    public static final String DEPTH_PROPERTY = "mpjdev.filter.depth";
    static final String PATTERN_PROPERTY = "mpjdev.filter";

    private static final long DEPTH = limit(DEPTH_PROPERTY, "depth", 1000, Integer.MAX_VALUE);
    private static final ObjectInputFilter CONFIGURED = configured();

    private final ObjectInputFilter user;
    private final long payload;
    private final HashWork work;
    /** Number of elements of all arrays of the stream. */
    private long elements;
    /** Text of the built-in limit that has rejected; null if none has. */
    private String reason;

    /**
     * Makes a filter for one stream.
     *
     * @param user filter of the program, may be null
     * @param payload octets of the stream
     */
    public MessageFilter(ObjectInputFilter user, long payload) {
        this.user = user;
        this.payload = payload;
        work = new HashWork(payload);
    }

    /** Returns the counter of the steps of hash codes in the stream. */
    HashWork work() {
        return work;
    }

    /** Returns the text of the built-in limit that has rejected, or null if none has. */
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
            throw new ExceptionInInitializerError("-D" + PATTERN_PROPERTY + "=" + pattern + " is not a filter pattern: "
                    + e.getMessage());
        }
    }

    /** Reads a limit. A value that cannot be parsed must not become the default silently. */
    static long limit(String property, String what, long otherwise, long most) {
        String asked = System.getProperty(property);
        try {
            long limit = asked == null ? otherwise : Long.parseLong(asked.trim());
            if (asked == null || limit > 0 && limit <= most) {
                return limit;
            }
        } catch (NumberFormatException e) {
            // The error below names the property.
        }
        // Any other exception of a static initialiser loses its text.
        throw new ExceptionInInitializerError("-D" + property + "=" + asked + " is not a " + what + ": a number from 1 to "
                + most);
    }

    @Override
    public Status checkInput(FilterInfo info) {
        if (info.depth() > DEPTH) {
            return reject("the graph is deeper than " + DEPTH + " references: -D" + DEPTH_PROPERTY
                    + " allows more, for which a thread may need a larger stack (-Xss)");
        }
        // An element takes at least an octet, so arrays of a valid stream are together no longer than the
        // payload. The factor 2 allows for collections, which report the sizes of their tables.
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
