package mpjdev.core;

import java.util.Collection;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A count of the steps that the hash codes of a stream's collections take.
 *
 * <p>The hash code of a collection visits its elements, and a shared element again for each occurrence. So
 * collections that share elements take a number of steps that is exponential in their nesting. This class
 * counts a collection after it was read and before it is added to another one. It stores the count of each,
 * so counting is linear. Internal.
 */
public final class HashWork {
    /** Property that sets the limit. */
    public static final String PROPERTY = "mpjdev.filter.work";

    private static final long CONFIGURED = MessageFilter.limit(PROPERTY, "number of steps", -1, Long.MAX_VALUE / 4);
    private static final long LEAST = 1 << 20;
    private static final long STEPS_AN_OCTET = 64;

    private final IdentityHashMap<Object, Long> steps = new IdentityHashMap<>();
    private final long most;
    private long total;
    private boolean hashes;
    /**
     * The last class of the stream, and the last one without counted objects. Most objects have the class of
     * the previous one.
     */
    private Class<?> last;
    private Class<?> lastUncounted;

    /** Makes a counter with the limit for a payload of {@code payload} octets. */
    HashWork(long payload) {
        most = CONFIGURED >= 0 ? CONFIGURED : LEAST + STEPS_AN_OCTET * payload;
    }

    /** Adds a class of the stream. Only a stream with a hashing collection computes hash codes. */
    void add(Class<?> type) {
        if (hashes || type == last) {
            return;
        }
        last = type;
        if (type != null && (Map.class.isAssignableFrom(type) || Set.class.isAssignableFrom(type)
                || type == Map.Entry[].class || type.getName().equals("java.util.CollSer"))) {
            hashes = true;
        }
    }

    /** Returns whether {@link #add(Object)} has nothing to count for an object that was read. */
    boolean isUncounted(Object object) {
        return object.getClass() == lastUncounted;
    }

    /** Adds an object that was read. */
    void add(Object object) {
        if (total > most) {
            return;
        }
        if (!isCounted(object)) {
            lastUncounted = object.getClass();
            return;
        }
        long sum = 1;
        try {
            sum = count(object);
        } catch (RuntimeException e) {
            // A stream can make broken collections. They have no hash code either.
        }
        steps.put(object, sum);
        total += sum;
    }

    /** Returns whether the hash codes take more steps than the limit. */
    boolean isTooMuch() {
        return hashes && total > most;
    }

    /** Returns the text of a rejection. */
    String reason() {
        return "hash codes of its collections take more than " + most + " steps, since they share elements; -D" + PROPERTY
                + " allows more";
    }

    private static boolean isCounted(Object object) {
        return (object instanceof List || object instanceof Map || object instanceof Set || object instanceof Map.Entry)
                && object.getClass().getName().startsWith("java.util.");
    }

    private long count(Object object) {
        if (object instanceof Map.Entry) {
            Map.Entry<?, ?> entry = (Map.Entry<?, ?>) object;
            return 1 + of(entry.getKey()) + of(entry.getValue());
        }
        long sum = 1;
        Collection<?> elements = object instanceof Map ? ((Map<?, ?>) object).entrySet() : (Collection<?>) object;
        for (Object element : elements) {
            // The entries of a map belong to it, so no earlier call has counted them.
            sum += object instanceof Map ? count(element) : of(element);
            if (sum > most) {
                break;
            }
        }
        return sum;
    }

    private long of(Object element) {
        Long known = isCounted(element) ? steps.get(element) : null;
        return known == null ? 1 : 1 + known;
    }
}
