package mpjdev;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;

/**
 * A second implementation of the message format, written from its description and without regard to speed.
 */
final class Naive {
    /** Type codes, in the order of the format. */
    private static final List<Type> CODES = List.of(
            Type.BYTE, Type.CHAR, Type.SHORT, Type.BOOLEAN, Type.INT, Type.LONG, Type.FLOAT, Type.DOUBLE, Type.OBJECT);

    private final ByteOrder order;
    private final ByteArrayOutputStream primary = new ByteArrayOutputStream();
    private byte[] secondary = {};

    Naive(ByteOrder order) {
        this.order = order;
    }

    /** Returns a section of the given elements of an array, in the given order. */
    Naive section(Type type, Object array, int[] elements) {
        int data = AnyArray.size(type) * elements.length;
        ByteBuffer octets = ByteBuffer.allocate(8 + (data + 7) / 8 * 8).order(order);
        octets.put((byte) CODES.indexOf(type)).put(new byte[3]).putInt(elements.length);
        for (int element : elements) {
            AnyArray.put(octets, array, element);
        }
        primary.writeBytes(octets.array());
        return this;
    }

    /** Returns a section of all elements of an array. */
    Naive section(Type type, Object array) {
        return section(type, array, range(0, AnyArray.length(array)));
    }

    /** Returns the header of an object section. */
    Naive objects(int count) {
        return section(Type.OBJECT, new Object[0], new int[0]).count(count);
    }

    private Naive count(int count) {
        byte[] octets = primary.toByteArray();
        ByteBuffer.wrap(octets).order(order).putInt(octets.length - 4, count);
        primary.reset();
        primary.writeBytes(octets);
        return this;
    }

    Naive secondary(byte[] payload) {
        secondary = payload;
        return this;
    }

    byte[] toByteArray() {
        byte[] sections = primary.toByteArray();
        ByteBuffer octets = ByteBuffer.allocate(16 + sections.length + secondary.length).order(order);
        octets.put((byte) (order == ByteOrder.BIG_ENDIAN ? 0 : 1)).put(new byte[3]).putInt(sections.length);
        octets.put(sections);
        octets.put(new byte[4]).putInt(secondary.length);
        octets.put(secondary);
        return octets.array();
    }

    static int[] range(int from, int count) {
        int[] range = new int[count];
        for (int i = 0; i < count; i++) {
            range[i] = from + i;
        }
        return range;
    }

    /** Returns the elements of a strided patch. The last dimension varies fastest. */
    static int[] patch(int off, int[] extents, int[] strides) {
        int volume = 1;
        for (int extent : extents) {
            volume *= extent;
        }
        int[] elements = new int[volume];
        for (int k = 0; k < volume; k++) {
            int rest = k;
            elements[k] = off;
            for (int d = extents.length - 1; d >= 0; d--) {
                elements[k] += rest % extents[d] * strides[d];
                rest /= extents[d];
            }
        }
        return elements;
    }

    /** Returns the stream of the objects, with one writeObject call for each. */
    static byte[] serialised(Object... objects) throws IOException {
        ByteArrayOutputStream octets = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(octets)) {
            for (Object object : objects) {
                out.writeObject(object);
            }
        }
        return octets.toByteArray();
    }
}
