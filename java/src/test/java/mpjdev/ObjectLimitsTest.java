package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.InvalidClassException;
import java.io.InvalidObjectException;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.concurrent.TimeUnit;
import mpjdev.core.HashWork;
import mpjdev.core.MessageFilter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Limits on memory and time of a read of objects, in terms of the payload. Ordinary graphs pass. */
@Timeout(60)
class ObjectLimitsTest {
    /** Returns a message of one section with one object. */
    private static byte[] message(byte[] stream) {
        ByteBuffer message = ByteBuffer.allocate(24 + stream.length).order(ByteOrder.LITTLE_ENDIAN);
        message.put((byte) 1).putInt(4, 8).put(8, (byte) 8).putInt(12, 1).putInt(20, stream.length);
        return message.position(24).put(stream).array();
    }

    private static byte[] serialised(Object object) throws Exception {
        ByteArrayOutputStream octets = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(octets)) {
            out.writeObject(object);
        }
        return octets.toByteArray();
    }

    private static Object read(byte[] stream) throws Exception {
        try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            in.load(message(stream));
            Object[] got = new Object[1];
            try {
                in.read(got, 0, 1);
            } catch (InvalidClassException e) {
                assertEquals(1, in.nextCount(), "a failed read leaves the position");
                throw e;
            }
            return got[0];
        }
    }

    private static void refused(byte[] stream, String why) {
        InvalidClassException e = assertThrows(InvalidClassException.class, () -> read(stream));
        assertTrue(e.getMessage().contains(why), e.getMessage());
    }

    @Test
    void shouldRejectArraysThatTogetherExceedTheLimit() throws Exception {
        int payload = 100_000;
        byte[] one = serialised(new Object[0]);
        ByteArrayOutputStream octets = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(octets);
        // The first array has the class description. The arrays inside refer to it.
        out.write(one, 0, one.length - 4);
        out.writeInt(payload);
        for (int i = 1; i < 900; i++) {
            out.writeByte(0x75);
            out.writeByte(0x71);
            out.writeInt(0x7e0000);
            out.writeInt(payload);
        }
        while (octets.size() < payload) {
            octets.write(0x70);
        }
        refused(octets.toByteArray(), "payload of 100000 octets");
    }

    enum Colour { RED, GREEN }

    private static <T extends Collection<Object>> T filled(T all, int n) {
        for (int i = 0; i < n; i++) {
            all.add("element " + i);
        }
        return all;
    }

    private static <T extends Map<Object, Object>> T filled(T all, int n) {
        for (int i = 0; i < n; i++) {
            all.put(i % 2 == 0 ? (Object) i : "key " + i, i % 3 == 0 ? null : i);
        }
        return all;
    }

    private static final class Node implements Serializable {
        private static final long serialVersionUID = 1L;
        private Node next;

        static Node list(int length) {
            Node first = null;
            for (int i = 0; i < length; i++) {
                Node node = new Node();
                node.next = first;
                first = node;
            }
            return first;
        }

        static int length(Node first) {
            int length = 0;
            for (Node node = first; node != null; node = node.next) {
                length++;
            }
            return length;
        }
    }

    @Test
    void shouldReadTheCollectionsOfThePlatform() throws Exception {
        for (int n : new int[] {0, 1, 2, 3, 12, 13, 100, 5000}) {
            List<Object> all = new ArrayList<>(List.of(filled(new HashMap<>(), n), filled(new LinkedHashMap<>(), n),
                    filled(new HashMap<>(16, 0.3f), n), filled(new HashSet<>(), n), filled(new LinkedHashSet<>(), n),
                    filled(new TreeSet<>(), n), filled(new ArrayList<>(), n), filled(new ArrayList<>(1000), n),
                    filled(new LinkedList<>(), n), filled(new Vector<>(1000), n), filled(new CopyOnWriteArrayList<>(), n)));
            Map<Object, Object> values = filled(new HashMap<>(), n);
            values.values().removeIf(Objects::isNull);
            all.addAll(List.of(new Hashtable<>(values), new ConcurrentHashMap<>(values), Map.copyOf(values),
                    Set.copyOf(values.values()), List.copyOf(values.values()), Collections.unmodifiableMap(values),
                    Collections.synchronizedList(filled(new ArrayList<>(), n)), Arrays.asList(new Object[n]),
                    Collections.nCopies(Math.min(n, 3), "x"), new EnumMap<>(Map.of(Colour.RED, n)), EnumSet.allOf(Colour.class),
                    BitSet.valueOf(new long[] {n, 7}), BigInteger.TWO.pow(n), new Locale("en")));
            for (Object object : all) {
                String what = object.getClass() + " of " + n;
                assertEquals(object, assertDoesNotThrow(() -> read(serialised(object)), what), what);
            }
            assertEquals(n, ((Collection<?>) read(serialised(filled(new ArrayDeque<>(), n)))).size());
            assertEquals(n, ((Collection<?>) read(serialised(filled(new PriorityQueue<>(), n)))).size());
            assertEquals(n, ((Collection<?>) read(serialised(filled(new PriorityBlockingQueue<>(), n)))).size());
            assertEquals(n, ((Map<?, ?>) read(serialised(filled(new IdentityHashMap<>(), n)))).size());
            Map<Object, Object> sorted = new ConcurrentSkipListMap<>();
            sorted.put("n", n);
            assertEquals(sorted, read(serialised(sorted)));
            assertArrayEquals(new String[n], (String[]) read(serialised(new String[n])));
            assertArrayEquals(new long[n][3], (long[][]) read(serialised(new long[n][3])));
            assertArrayEquals(new boolean[3][n], (boolean[][]) read(serialised(new boolean[3][n])));
        }
    }

    static Set<Object> setsOfSets(int levels) {
        Set<Object> outer = new HashSet<>();
        Set<Object> a = outer;
        Set<Object> b = new HashSet<>();
        for (int i = 0; i < levels; i++) {
            Set<Object> c = new HashSet<>();
            Set<Object> d = new HashSet<>();
            c.add("x");
            a.add(c);
            a.add(d);
            b.add(c);
            b.add(d);
            a = c;
            b = d;
        }
        return outer;
    }

    /** Without the limit the read takes longer than the deadline of the test. */
    @Test
    void shouldRejectSetsOfSetsThatShareElements() throws Exception {
        // The copy differs from the original, whose elements have changed their hash codes since they were
        // added.
        assertEquals(2, ((Set<?>) read(serialised(setsOfSets(8)))).size());
        refused(serialised(setsOfSets(22)), HashWork.PROPERTY);
    }

    @Test
    void shouldRejectListsThatShareElementsAsKeys() throws Exception {
        List<Object> list = new ArrayList<>(List.of("x"));
        for (int i = 0; i < 40; i++) {
            list = new ArrayList<>(Arrays.asList(list, list));
        }
        // This stream computes no hash codes.
        assertEquals(2, ((List<?>) read(serialised(list))).size());
        // A pair of an array stands for the map with this key, because making that map would take too long.
        Object[] pair = {list, new HashMap<>(Map.of(1, 2))};
        refused(serialised(pair), HashWork.PROPERTY);
        Object[] before = {new HashMap<>(Map.of(1, 2)), list};
        refused(serialised(before), HashWork.PROPERTY);
    }

    @Test
    void shouldReadNestedCollectionsThatShareNothing() throws Exception {
        Object nest = "x";
        for (int i = 0; i < 90; i++) {
            nest = i % 3 == 0 ? new HashSet<>(List.of(nest)) : i % 3 == 1 ? new HashMap<>(Map.of(nest, i)) : List.of(nest, i);
        }
        assertEquals(nest, read(serialised(nest)));
    }

    @Test
    void shouldNameThePropertyThatALongListNeeds() throws Exception {
        Deep.on(512 << 20, () -> {
            refused(serialised(Node.list(10_000)), MessageFilter.DEPTH_PROPERTY);
            assertEquals(900, Node.length((Node) read(serialised(Node.list(900)))));
        });
    }

    /** A graph that is too deep for the stack is an exception in both directions. A larger stack suffices. */
    @Test
    void shouldKeepTheBufferWhenTheStackOverflows() throws Exception {
        new Fork().with("-D" + MessageFilter.DEPTH_PROPERTY + "=200000", "-Xss512k").run(Deep.class).ok();
    }

    /** Writes and reads a long list on stacks of two sizes. */
    static final class Deep {
        private Deep() {}

        public static void main(String[] args) throws Exception {
            Node[] list = {Node.list(10_000)};
            try (ObjectWriteBuffer out = new ObjectWriteBuffer(64); ObjectReadBuffer in = new ObjectReadBuffer(64)) {
                out.write(new Object[] {"before"}, 0, 1);
                byte[] before = out.toByteArray();
                on(512 << 10, () -> assertThrows(InvalidObjectException.class, () -> out.write(list, 0, 1)));
                assertArrayEquals(before, out.toByteArray());
                on(512 << 20, () -> out.write(list, 0, 1));
                in.load(out.toByteArray());
                Object[] got = new Object[1];
                in.read(got, 0, 1);
                assertEquals("before", got[0]);
                on(512 << 10, () -> assertThrows(InvalidObjectException.class, () -> in.read(got, 0, 1)));
                assertEquals("before", got[0]);
                assertEquals(1, in.nextCount());
                on(512 << 20, () -> in.read(got, 0, 1));
                assertEquals(10_000, Node.length((Node) got[0]));
            }
        }

        private static void on(long stack, org.junit.jupiter.api.function.Executable work) throws Exception {
            Throwable[] failure = new Throwable[1];
            Thread thread = new Thread(null, () -> {
                try {
                    work.execute();
                } catch (Throwable t) {
                    failure[0] = t;
                }
            }, "stack", stack);
            thread.start();
            thread.join(TimeUnit.SECONDS.toMillis(60));
            if (failure[0] != null) {
                throw new AssertionError(failure[0]);
            }
        }
    }
}
