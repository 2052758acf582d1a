package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import mpjdev.core.Segments;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Direct buffers over arenas (JDK 22 and later). Native code never accesses memory that Java would not
 * access.
 */
@Tag("jdk")
class ArenaTest {
    /** JDK 17 compiles the test and has no arenas, so it uses reflection. */
    private static AutoCloseable arena() throws Exception {
        return arena("ofConfined");
    }

    private static AutoCloseable arena(String kind) throws Exception {
        assumeTrue(Runtime.version().feature() >= 22, "arenas came with JDK 22");
        return (AutoCloseable) Class.forName("java.lang.foreign.Arena").getMethod(kind).invoke(null);
    }

    private static ByteBuffer buffer(AutoCloseable arena, long octets) throws Exception {
        Method allocate = Class.forName("java.lang.foreign.Arena").getMethod("allocate", long.class);
        Object segment = allocate.invoke(arena, octets);
        return (ByteBuffer) Class.forName("java.lang.foreign.MemorySegment").getMethod("asByteBuffer").invoke(segment);
    }

    @Test
    void shouldRejectABufferOfAClosedArena() throws Exception {
        ByteBuffer direct;
        try (AutoCloseable arena = arena(); WriteBuffer out = new WriteBuffer(4096 + 8)) {
            direct = buffer(arena, 4096);
            out.write(direct, Type.BYTE, 0, 4096);
        }
        try (WriteBuffer out = new WriteBuffer(64); ReadBuffer in = new ReadBuffer(64)) {
            assertThrows(IllegalStateException.class, () -> out.write(direct, Type.BYTE, 0, 10));
            assertEquals(0, out.sectionCount());
            out.write(new byte[10], 0, 10);
            in.load(out.toByteArray());
            assertThrows(IllegalStateException.class, () -> in.read(direct, Type.BYTE, 0, 10));
            in.read(new byte[10], 0, 10);
        }
    }

    @Test
    void shouldRejectABufferOfAnArenaOfAnotherThread() throws Exception {
        try (AutoCloseable arena = arena(); WriteBuffer out = new WriteBuffer(64)) {
            ByteBuffer direct = buffer(arena, 64);
            Throwable[] thrown = new Throwable[1];
            Thread other = new Thread(() -> {
                try {
                    out.write(direct, Type.BYTE, 0, 10);
                } catch (Throwable e) {
                    thrown[0] = e;
                }
            });
            other.start();
            other.join();
            assertEquals(wrongThread(), thrown[0].getClass().getName());
            assertEquals(0, out.sectionCount());
        }
    }

    private static String wrongThread() {
        return "java.lang.WrongThreadException";
    }

    @Test
    void shouldReportSharedArenasOnlyAsShared() throws Exception {
        assertFalse(Segments.isShared(ByteBuffer.allocateDirect(8)));
        assertFalse(Segments.isShared(ByteBuffer.allocateDirect(8).slice(1, 3).asReadOnlyBuffer()));
        try (AutoCloseable confined = arena(); AutoCloseable shared = arena("ofShared")) {
            assertFalse(Segments.isShared(buffer(confined, 8)));
            assertTrue(Segments.isShared(buffer(shared, 8)));
            assertTrue(Segments.isShared(buffer(shared, 8).slice(1, 3).asReadOnlyBuffer()));
        }
    }

    /** All types, both byte orders of buffer and message, and an offset, as for any direct buffer. */
    @Test
    void shouldCopyToAndFromSharedArenas() throws Exception {
        try (AutoCloseable arena = arena("ofShared")) {
            int n = 13;
            for (Type type : AnyArray.TYPES) {
                for (ByteOrder order : new ByteOrder[] {ByteOrder.BIG_ENDIAN, ByteOrder.LITTLE_ENDIAN}) {
                    ByteBuffer plain = ByteBuffer.allocateDirect(3 + n * 8).order(order);
                    ByteBuffer shared = buffer(arena, 3 + n * 8).order(order);
                    for (int at = 0; at < plain.capacity(); at++) {
                        plain.put(at, (byte) (type == Type.BOOLEAN ? at & 1 : 37 * at));
                        shared.put(at, plain.get(at));
                    }
                    for (ByteOrder message : new ByteOrder[] {ByteOrder.BIG_ENDIAN, ByteOrder.LITTLE_ENDIAN}) {
                        trip(type, n, plain, shared, message);
                    }
                }
            }
        }
    }

    private static void trip(Type type, int n, ByteBuffer plain, ByteBuffer shared, ByteOrder order) throws Exception {
        ByteBuffer back = shared.duplicate().clear().order(shared.order());
        int capacity = (int) (2 * Buffer.requiredCapacity(type, n));
        try (WriteBuffer one = new WriteBuffer(capacity, order); WriteBuffer other = new WriteBuffer(capacity, order);
                ReadBuffer in = new ReadBuffer(256)) {
            for (int section = 0; section < 2; section++) {
                one.write(plain, type, 3, n);
                other.write(shared, type, 3, n);
            }
            assertArrayEquals(one.toByteArray(), other.toByteArray());
            assertThrows(ArrayIndexOutOfBoundsException.class, () -> other.write(shared, type, 4 + n * 8, n));
            assertThrows(BufferOverflowException.class, () -> other.write(shared, Type.LONG, 0, n));
            assertEquals(2, other.sectionCount());
            in.load(other.toByteArray());
            in.read(back, type, 3, n);
            assertThrows(SectionSizeMismatchException.class, () -> in.read(back, type, 3, n - 1));
            in.read(back, type, 3, n);
            assertNull(in.nextType());
            for (int at = 0; at < plain.capacity(); at++) {
                assertEquals(plain.get(at), back.get(at), type + " " + order + " octet " + at);
            }
        }
    }

    /**
     * A thread closes the arena during a copy: the copy succeeds, or throws and leaves the message unchanged.
     */
    @Test
    void shouldSurviveAnArenaThatAnotherThreadCloses() throws Exception {
        int octets = 32 << 20;
        for (int round = 0; round < 12; round++) {
            AutoCloseable arena = arena("ofShared");
            ByteBuffer direct = buffer(arena, octets);
            java.util.concurrent.CountDownLatch begun = new java.util.concurrent.CountDownLatch(1);
            Thread closer = new Thread(() -> {
                try {
                    begun.await();
                    while (true) {
                        try {
                            arena.close();
                            return;
                        } catch (IllegalStateException e) {
                            // A copy keeps the arena open at this time.
                        }
                    }
                } catch (Exception e) {
                    throw new AssertionError(e);
                }
            });
            closer.start();
            try (WriteBuffer out = new WriteBuffer(octets + 8); ReadBuffer in = new ReadBuffer(octets + 8)) {
                boolean writes = round % 2 == 0;
                out.write(writes ? direct : ByteBuffer.allocateDirect(octets), Type.BYTE, 0, octets);
                if (!writes) {
                    in.load(out.toByteArray());
                } else {
                    out.clear();
                }
                begun.countDown();
                int sections = 0;
                try {
                    for (; sections < 100; sections++) {
                        if (writes) {
                            out.clear();
                            out.write(direct, Type.BYTE, 0, octets);
                        } else {
                            in.reset();
                            in.read(direct, Type.BYTE, 0, octets);
                        }
                    }
                } catch (IllegalStateException e) {
                    if (writes) {
                        assertEquals(0, out.sectionCount(), "a failed write adds nothing");
                    } else {
                        assertEquals(octets, in.nextCount(), "a failed read leaves the position");
                    }
                }
            } finally {
                // HotSpot interrupts a thread whose copy it stops.
                Thread.interrupted();
                Wait.join(closer);
            }
        }
    }
}
