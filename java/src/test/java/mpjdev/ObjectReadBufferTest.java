package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InvalidClassException;
import java.io.ObjectInputFilter;
import java.io.ObjectInputStream;
import java.io.Serializable;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/** Reads of objects: values, class loaders, filters, and failed reads that change nothing. */
@Timeout(120)
class ObjectReadBufferTest {
    /** A class that filters reject. */
    static final class Secret implements Serializable {
        private static final long serialVersionUID = 1L;
    }

    /** Returns a message of two object sections: valid objects, and the given ones. */
    private static byte[] message(Object... second) throws IOException {
        Object[] all = new Object[second.length + 2];
        all[0] = "first";
        all[1] = List.of(1);
        System.arraycopy(second, 0, all, 2, second.length);
        return new Naive(ByteOrder.nativeOrder()).objects(2).objects(second.length)
                .section(Type.INT, new int[] {9}).secondary(Naive.serialised(all)).toByteArray();
    }

    /**
     * Asserts that every read of the second section fails in this way, twice, and that the first is still
     * readable.
     */
    private static Throwable fails(ObjectReadBuffer in, Class<? extends Throwable> expected, int count)
            throws Exception {
        Object[] first = new Object[2];
        in.read(first, 0, 2);
        Object[] dest = new Object[count];
        java.util.Arrays.fill(dest, "untouched");
        Object[] before = dest.clone();
        Throwable last = null;
        for (Executable call : new Executable[] {() -> in.read(dest, 0, count),
            () -> in.scatter(dest, count, 0, Naive.range(0, count)),
            () -> in.strScatter(dest, 0, 1, 0, 1, new int[] {count, 1}), () -> in.read(dest, 0, count)}) {
            last = assertThrows(Throwable.class, call);
            assertSame(expected, last.getClass(), last.toString());
            assertArrayEquals(before, dest);
            assertSame(Type.OBJECT, in.nextType());
            assertEquals(count, in.nextCount());
        }
        in.reset();
        Object[] again = new Object[2];
        in.read(again, 0, 2);
        assertArrayEquals(first, again);
        return last;
    }

    @Test
    void shouldShareReferencesAcrossTheSectionsOfAMessage() throws Exception {
        List<Object> shared = new ArrayList<>();
        shared.add("text");
        Map<Object, Object> cycle = new HashMap<>();
        cycle.put("self", cycle);
        cycle.put("shared", shared);
        Object[] ring = new Object[2];
        ring[0] = ring;
        ring[1] = cycle;
        try (ObjectWriteBuffer out = new ObjectWriteBuffer(64); ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            out.write(new Object[] {shared, cycle}, 0, 2);
            out.write(new byte[] {1}, 0, 1);
            out.write(new Object[] {ring, shared}, 0, 2);
            in.load(out.toByteArray());
            for (int pass = 0; pass < 2; pass++) {
                Object[] a = new Object[2];
                Object[] b = new Object[2];
                in.read(a, 0, 2);
                in.read(new byte[1], 0, 1);
                in.scatter(b, 2, 0, new int[] {1, 0});
                assertSame(a[0], b[0]);
                assertEquals(shared, a[0]);
                Map<?, ?> map = (Map<?, ?>) a[1];
                assertSame(map, map.get("self"));
                assertSame(a[0], map.get("shared"));
                Object[] got = (Object[]) b[1];
                assertSame(got, got[0]);
                assertSame(map, got[1]);
                in.reset();
            }
        }
    }

    @Test
    void shouldStoreObjectsByIndexAndByPatch() throws Exception {
        Object[] six = {"0", "1", "2", "3", "4", "5"};
        try (ObjectWriteBuffer out = new ObjectWriteBuffer(64); ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            out.write(six, 0, 6);
            out.write(six, 0, 6);
            out.write(six, 3, 1);
            in.load(out.toByteArray());
            Object[] dest = new Object[8];
            in.strScatter(dest, 7, 2, 0, 2, new int[] {2, 3, -4, -1});
            assertArrayEquals(new Object[] {null, "5", "4", "3", null, "2", "1", "0"}, dest);
            in.scatter(dest, 6, 1, new int[] {0, 7, 6, 5, 4, 3, 2});
            assertArrayEquals(new Object[] {null, "5", "5", "4", "3", "2", "1", "0"}, dest);
            in.strScatter(dest, 0, 0, 0, 0, new int[0]);
            assertEquals("3", dest[0]);
        }
    }

    @Test
    void shouldReadIntoAnArrayOfTheTypeOfTheObjects() throws Exception {
        try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            in.load(message("a", 7, "c"));
            in.read(new Object[2], 0, 2);
            String[] strings = {"x", "y", "z"};
            ArrayStoreException e = assertThrows(ArrayStoreException.class, () -> in.read(strings, 0, 3));
            assertTrue(e.getMessage().contains("1") && e.getMessage().contains("Integer"), e.getMessage());
            assertThrows(ArrayStoreException.class, () -> in.scatter(strings, 3, 0, new int[] {2, 1, 0}));
            assertThrows(ArrayStoreException.class, () -> in.strScatter(strings, 0, 1, 0, 1, new int[] {3, 1}));
            assertArrayEquals(new String[] {"x", "y", "z"}, strings);
            Object[] objects = new Object[3];
            in.read(objects, 0, 3);
            assertArrayEquals(new Object[] {"a", 7, "c"}, objects);
            int[] ints = new int[1];
            in.read(ints, 0, 1);
            assertEquals(9, ints[0]);
        }
    }

    @Test
    void shouldRejectWrongCountsTypesAndRanges() throws Exception {
        Object[] dest = new Object[4];
        try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            in.load(message("a", "b", "c"));
            in.read(new Object[2], 0, 2);
            assertThrows(SectionSizeMismatchException.class, () -> in.read(dest, 0, 2));
            assertThrows(SectionSizeMismatchException.class, () -> in.scatter(dest, 4, 0, new int[4]));
            assertThrows(TypeMismatchException.class, () -> in.read(new int[3], 0, 3));
            for (Executable call : new Executable[] {() -> in.read(dest, 2, 3), () -> in.read(dest, -1, 3),
                () -> in.read(dest, 0, -3), () -> in.scatter(dest, 3, 0, new int[] {0, 1, 4}),
                () -> in.scatter(dest, 3, 0, new int[] {0, -1, 2}), () -> in.scatter(dest, 3, 1, new int[3]),
                () -> in.strScatter(dest, 0, 1, 0, 1, new int[] {3, 2}),
                () -> in.strScatter(dest, -1, 1, 0, 1, new int[] {3, 1})}) {
                assertTrue(assertThrows(ArrayIndexOutOfBoundsException.class, call).getMessage().matches(".*[0-9].*"));
            }
            assertThrows(IllegalArgumentException.class, () -> in.strScatter(dest, 0, 1, 0, 1, new int[] {-3, 1}));
            assertArrayEquals(new Object[4], dest);
            in.read(dest, 0, 3);
            assertThrows(TypeMismatchException.class, () -> in.read(dest, 0, 1));
            assertArrayEquals(new Object[] {"a", "b", "c", null}, dest);
        }
    }

    @Test
    void shouldKeepThePositionWhenAStreamEndsEarly() throws Exception {
        byte[] whole = Naive.serialised("first", List.of(1), "second");
        for (int cut = whole.length - 1; cut > whole.length - 8; cut--) {
            try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
                in.load(new Naive(ByteOrder.nativeOrder()).objects(2).objects(1)
                        .secondary(java.util.Arrays.copyOf(whole, cut)).toByteArray());
                Throwable e = fails(in, java.io.EOFException.class, 1);
                assertTrue(e instanceof IOException);
            }
        }
        try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            in.load(new Naive(ByteOrder.nativeOrder()).objects(1).toByteArray());
            assertThrows(IOException.class, () -> in.read(new Object[1], 0, 1));
            in.load(new Naive(ByteOrder.nativeOrder()).objects(1).secondary(new byte[] {1, 2, 3, 4, 5}).toByteArray());
            assertThrows(java.io.StreamCorruptedException.class, () -> in.read(new Object[1], 0, 1));
            assertEquals(1, in.nextCount());
        }
    }

    @Test
    void shouldNotAllocateForACountThatThePayloadCannotHold() throws Exception {
        try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            in.load(new Naive(ByteOrder.nativeOrder()).objects(Integer.MAX_VALUE)
                    .secondary(Naive.serialised("one")).toByteArray());
            assertEquals(Integer.MAX_VALUE, in.nextCount());
            assertThrows(SectionSizeMismatchException.class, () -> in.read(new Object[1], 0, 1));
        }
    }

    // ---- Classes

    @Test
    void shouldKeepThePositionWhenAClassIsMissing() throws Exception {
        byte[] message = message("a", new Secret());
        replace(message, "Secret", "Scerte");
        try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            in.load(message);
            Throwable e = fails(in, ClassNotFoundException.class, 2);
            assertTrue(e.getMessage().contains("Scerte"), e.getMessage());
        }
    }

    private static void replace(byte[] octets, String from, String to) {
        byte[] wanted = from.getBytes(StandardCharsets.US_ASCII);
        for (int at = 0; at <= octets.length - wanted.length; at++) {
            if (java.util.Arrays.equals(octets, at, at + wanted.length, wanted, 0, wanted.length)) {
                System.arraycopy(to.getBytes(StandardCharsets.US_ASCII), 0, octets, at, wanted.length);
                return;
            }
        }
        throw new AssertionError(from + " is not there");
    }

    /** A loader with its own Secret class, like that of a plug-in. */
    private static final class PlugIn extends ClassLoader {
        PlugIn() {
            super(ObjectReadBufferTest.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.equals(Secret.class.getName())) {
                return super.loadClass(name, resolve);
            }
            Class<?> own = findLoadedClass(name);
            if (own != null) {
                return own;
            }
            try (java.io.InputStream in = getResourceAsStream(name.replace('.', '/') + ".class")) {
                byte[] octets = in.readAllBytes();
                return defineClass(name, octets, 0, octets.length);
            } catch (IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }

    @Test
    void shouldAskTheContextClassLoaderFirst() throws Exception {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        ClassLoader plugIn = new PlugIn();
        // Without a context loader, or with one that finds nothing, the caller's loader finds the class.
        ClassLoader[] loaders = {plugIn, null, ClassLoader.getPlatformClassLoader()};
        try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            in.load(message(new Secret()));
            for (ClassLoader loader : loaders) {
                thread.setContextClassLoader(loader);
                in.reset();
                in.read(new Object[2], 0, 2);
                Object[] got = new Object[1];
                in.read(got, 0, 1);
                assertEquals(Secret.class.getName(), got[0].getClass().getName());
                assertSame(loader == plugIn ? plugIn : Secret.class.getClassLoader(),
                        got[0].getClass().getClassLoader());
            }
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    /** An object that its reader resolves to null. */
    static final class Vanishing implements Serializable {
        private static final long serialVersionUID = 1L;

        private Object readResolve() {
            return null;
        }
    }

    @Test
    void shouldReadNullWhereAnObjectResolvesToNull() throws Exception {
        try (ObjectWriteBuffer out = new ObjectWriteBuffer(64); ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            out.write(new Object[] {"a", new Vanishing(), "b"}, 0, 3);
            in.load(out.toByteArray());
            Object[] got = {"x", "x", "x"};
            in.read(got, 0, 3);
            assertArrayEquals(new Object[] {"a", null, "b"}, got);
        }
    }

    @Test
    void shouldReadPrimitiveClassesAndProxies() throws Exception {
        Runnable proxy = (Runnable) java.lang.reflect.Proxy.newProxyInstance(getClass().getClassLoader(),
                new Class<?>[] {Runnable.class}, new Handler());
        try (ObjectWriteBuffer out = new ObjectWriteBuffer(64); ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            out.write(new Object[] {int.class, int[][].class, Thread.State.NEW, proxy, Secret[].class}, 0, 5);
            in.load(out.toByteArray());
            Object[] got = new Object[5];
            in.read(got, 0, 5);
            assertSame(int.class, got[0]);
            assertSame(int[][].class, got[1]);
            assertSame(Thread.State.NEW, got[2]);
            assertTrue(got[3] instanceof Runnable);
            assertSame(Secret[].class, got[4]);
        }
    }

    /** An invocation handler that returns null. */
    private static final class Handler implements java.lang.reflect.InvocationHandler, Serializable {
        private static final long serialVersionUID = 1L;

        @Override
        public Object invoke(Object proxy, java.lang.reflect.Method method, Object[] arguments) {
            return null;
        }
    }

    // ---- Filters

    @Test
    void shouldRejectClassesThatTheUsersFilterRejects() throws Exception {
        ObjectInputFilter no = info -> info.serialClass() == Secret.class ? ObjectInputFilter.Status.REJECTED
                : ObjectInputFilter.Status.UNDECIDED;
        try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            in.setObjectFilter(no);
            in.load(message("a", new Secret(), "b"));
            fails(in, InvalidClassException.class, 3);
            // A filter that is set in the middle of a message applies from there on.
            in.setObjectFilter(null);
            Object[] got = new Object[3];
            in.read(got, 0, 3);
            assertSame(Secret.class, got[1].getClass());
            in.reset();
            in.read(new Object[2], 0, 2);
            in.setObjectFilter(no);
            assertThrows(InvalidClassException.class, () -> in.read(got, 0, 3));
        }
    }

    @Test
    void shouldRejectArraysThatAreLongerThanThePayload() throws Exception {
        for (Object small : new Object[] {new byte[4], new int[4], new Object[4], new long[4]}) {
            byte[] message = message(small);
            // The four octets of the length of an array follow 78 70, the end of its class description.
            int at = message.length - 1;
            while (!(message[at] == 4 && message[at - 4] == 0x70 && message[at - 5] == 0x78)) {
                at--;
            }
            message[at - 3] = 0x7f;
            message[at - 2] = (byte) 0xff;
            message[at - 1] = (byte) 0xff;
            message[at] = (byte) 0xf0;
            try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
                in.load(message);
                fails(in, InvalidClassException.class, 1);
            }
        }
    }

    @Test
    void shouldRejectTooDeepNesting() throws Exception {
        try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            in.load(message(nested(900)));
            in.read(new Object[2], 0, 2);
            in.read(new Object[1], 0, 1);
            in.load(message(nested(1100)));
            fails(in, InvalidClassException.class, 1);
        }
    }

    private static Object nested(int depth) {
        Object[] innermost = new Object[1];
        Object[] array = innermost;
        for (int i = 1; i < depth; i++) {
            array = new Object[] {array};
        }
        return array;
    }

    @Test
    void shouldRejectDeepSetsOfSetsInTime() throws Exception {
        // The work squares with every level. The attack needs more levels than this limit allows.
        Set<Object> outer = ObjectLimitsTest.setsOfSets(12);
        try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            in.load(message(outer));
            in.setObjectFilter(ObjectInputFilter.Config.createFilter("maxdepth=10"));
            fails(in, InvalidClassException.class, 1);
        }
    }

    /** Reads a Secret and prints the result. */
    static final class ReadSecret {
        private ReadSecret() {}

        public static void main(String[] args) throws Exception {
            try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
                in.load(message("a", new Secret()));
                in.read(new Object[2], 0, 2);
                if (args.length > 0) {
                    in.setObjectFilter(info -> ObjectInputFilter.Status.ALLOWED);
                }
                Object[] got = new Object[2];
                try {
                    in.read(got, 0, 2);
                    System.out.println("read " + got[1].getClass().getSimpleName());
                } catch (InvalidClassException e) {
                    System.out.println("refused " + e.getMessage() + ", next " + in.nextCount() + ", " + got[1]);
                }
                in.load(message(nested(40)));
                in.read(new Object[2], 0, 2);
                try {
                    in.read(new Object[1], 0, 1);
                    System.out.println("deep read");
                } catch (InvalidClassException e) {
                    System.out.println("deep refused");
                }
            }
        }
    }

    @Test
    void shouldRejectClassesThatTheFilterOfTheJvmRejects() throws Exception {
        String pattern = "-Djdk.serialFilter=!mpjdev.ObjectReadBufferTest$Secret";
        for (String[] arguments : new String[][] {{}, {"with a filter of its own that allows all"}}) {
            String output = new Fork().with(pattern).run(ReadSecret.class, arguments).ok();
            assertTrue(output.contains("refused") && output.contains("next 2, null"), output);
            assertTrue(output.contains("deep read"), output);
        }
    }

    @Test
    void shouldRejectClassesThatThePropertiesReject() throws Exception {
        String output = new Fork().with("-Dmpjdev.filter=!mpjdev.ObjectReadBufferTest$Secret",
                "-Dmpjdev.filter.depth=30")
                .run(ReadSecret.class, "with a filter of its own that allows all").ok();
        assertTrue(output.contains("refused") && output.contains("next 2, null"), output);
        assertTrue(output.contains("deep refused"), output);
        assertNull(System.getProperty("mpjdev.filter"));
    }

    @Test
    void shouldNameAnInvalidProperty() throws Exception {
        for (String bad : new String[] {"mpjdev.filter=a=b", "mpjdev.filter.depth=x", "mpjdev.filter.depth=-1"}) {
            Fork.Result result = new Fork().with("-D" + bad).run(ReadSecret.class);
            assertTrue(result.status != 0 && result.output.contains("-D" + bad), result.output);
        }
    }

    /** The one action of an object on the buffer that it is read from. */
    private interface Mischief {
        void with(ObjectReadBuffer buffer) throws Exception;
    }

    private static Mischief mischief;
    private static ObjectReadBuffer target;

    static final class Meddler implements Serializable {
        private static final long serialVersionUID = 1L;

        private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
            in.defaultReadObject();
            Mischief now = mischief;
            mischief = null;
            if (now != null) {
                try {
                    now.with(target);
                } catch (RuntimeException | IOException e) {
                    throw new IllegalStateException(e);
                } catch (Exception e) {
                    throw new AssertionError(e);
                }
            }
        }
    }

    @Test
    void shouldStayReadableAfterAnyActionOfAnObjectOnItsBuffer() throws Exception {
        Mischief[] all = {ObjectReadBuffer::reset, b -> b.read(new Object[1], 0, 1), b -> b.setObjectFilter(null)};
        for (int i = 0; i < all.length; i++) {
            try (ObjectWriteBuffer out = new ObjectWriteBuffer(64); ObjectReadBuffer in = new ObjectReadBuffer(64)) {
                out.write(new Object[] {"first"}, 0, 1);
                out.write(new Object[] {new Meddler(), new Meddler()}, 0, 2);
                out.write(new Object[] {"third"}, 0, 1);
                in.load(out.toByteArray());
                Object[] got = new Object[2];
                in.read(got, 0, 1);
                assertEquals("first", got[0]);
                mischief = all[i];
                target = in;
                assertThrows(IllegalStateException.class, () -> in.read(got, 0, 2), "mischief " + i);
                // The section was not read. The position is the start, or the one before the read.
                in.reset();
                in.read(got, 0, 1);
                assertEquals("first", got[0]);
                in.read(got, 0, 2);
                assertTrue(got[0] instanceof Meddler && got[1] instanceof Meddler);
                in.read(got, 0, 1);
                assertEquals("third", got[0]);
            }
        }
    }

    /** Only its own loader finds the interface. */
    @Test
    void shouldAskTheContextClassLoaderForTheInterfacesOfAProxy() throws Exception {
        String output = new Fork().run(ProxyOfAPlugIn.class).ok();
        assertTrue(output.contains("a proxy of the plug-in"), output);
    }

    /** Sends a proxy whose interface only a child of this class's loader finds. */
    static final class ProxyOfAPlugIn {
        private ProxyOfAPlugIn() {}

        public static void main(String[] args) throws Exception {
            Path folder = Files.createTempDirectory("mpjdev-test");
            Path source = folder.resolve("Face.java");
            try {
                Files.writeString(source, "public interface Face { }");
                int failed = javax.tools.ToolProvider.getSystemJavaCompiler().run(null, null, null, "-d",
                        folder.toString(), source.toString());
                assertEquals(0, failed);
                try (java.net.URLClassLoader plugIn = new java.net.URLClassLoader(
                        new java.net.URL[] {folder.toUri().toURL()}, ProxyOfAPlugIn.class.getClassLoader())) {
                    Thread.currentThread().setContextClassLoader(plugIn);
                    Class<?> face = plugIn.loadClass("Face");
                    Object proxy = java.lang.reflect.Proxy.newProxyInstance(plugIn, new Class<?>[] {face}, new Handler());
                    try (ObjectWriteBuffer out = new ObjectWriteBuffer(64);
                            ObjectReadBuffer in = new ObjectReadBuffer(64)) {
                        out.write(new Object[] {proxy}, 0, 1);
                        in.load(out.toByteArray());
                        Object[] got = new Object[1];
                        in.read(got, 0, 1);
                        System.out.println(face.isInstance(got[0]) ? "a proxy of the plug-in" : "something else");
                    }
                }
            } finally {
                Files.deleteIfExists(source);
                Files.deleteIfExists(folder.resolve("Face.class"));
                Files.delete(folder);
            }
        }
    }

    /** A list of the elements would not fit memory. */
    @Test
    void shouldCheckTheSectionBeforeListingTheElementsOfAPatch() throws Exception {
        try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            in.load(message("one"));
            assertThrows(BufferReadException.class,
                    () -> in.strScatter(new Object[1], 0, 1, 0, 1, new int[] {Integer.MAX_VALUE, 0}));
        }
    }
}
