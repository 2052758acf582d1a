package mpjbuf;

import java.lang.reflect.Array;

/** A section of a buffer: elements of one type. */
final class Section {
    private static final int LEAST = 8;

    /** Type of the elements. A look into a received section of objects may find a dynamic type. */
    Type type;
    /** Number of elements. */
    int count;
    /** Number of elements that were read. */
    int taken;
    /** The elements; null for objects, which are in the stream, and for dynamic types until they are read. */
    Object elements;
    /** The first object, if it was read to look into it. */
    Object first;

    Section(Type type) {
        this.type = type;
    }

    /** Returns the octets in the static part of the buffer. */
    long octets() {
        return type.octets(count);
    }

    /** Appends elements of the type of {@code source}, which are inside it. */
    void append(Object source, int off, int n) {
        int room = elements == null ? 0 : Array.getLength(elements);
        if (count + n > room || elements == null) {
            Object longer = type.array(Math.max(count + n, Math.min(2 * room, Integer.MAX_VALUE / LEAST) + LEAST));
            if (count > 0) {
                System.arraycopy(elements, 0, longer, 0, count);
            }
            elements = longer;
        }
        System.arraycopy(source, off, elements, count, n);
        count += n;
    }

    /** Returns an array of exactly the elements. */
    Object exactly() {
        Object exact = type.array(count);
        if (count > 0) {
            System.arraycopy(elements, 0, exact, 0, count);
        }
        return exact;
    }
}
