package mpjdev;

import java.util.Collection;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * How many steps the hash codes of a stream's collections take.
 *
 * <p>A hash code of a collection walks its elements, and does so again for an element that occurs again: collections that
 * share elements take steps exponential in their nesting. Collections are counted when they have been read, which is before
 * they are put anywhere; the count of each is kept, so counting is linear.
 */
final class HashWork {
    static final String PROPERTY = "mpjdev.filter.work";

    private static final long CONFIGURED = MessageFilter.limit(PROPERTY, "number of steps", -1, Long.MAX_VALUE / 4);
    private static final long LEAST = 1 << 20;
    private static final long STEPS_AN_OCTET = 64;

    private final IdentityHashMap<Object, Long> steps = new IdentityHashMap<>();
    private final long most;
    private long total;
    private boolean hashes;
    /** The last class of the stream, and the last one without counted objects: most objects have the class of the one before. */
    private Class<?> last;
    private Class<?> lastUncounted;

    /** Work that is allowed for a payload of this many octets. */
    HashWork(long payload) {
        most = CONFIGURED >= 0 ? CONFIGURED : LEAST + STEPS_AN_OCTET * payload;
    }

    /** Notes a class of the stream: only with a hashing collection among them are there hash codes. */
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

    /** Whether nothing is to be noted of an object that has been read. */
    boolean isUncounted(Object object) {
        return object.getClass() == lastUncounted;
    }

    /** Notes an object that has been read. */
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
            // A stream can make collections that do not work: those have no hash code either.
        }
        steps.put(object, sum);
        total += sum;
    }

    /** Whether hash codes would take more steps than are allowed. */
    boolean isTooMuch() {
        return hashes && total > most;
    }

    /** What is said of it. */
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
            // Entries of a map are its own and were not counted.
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
