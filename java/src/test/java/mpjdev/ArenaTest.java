package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;

/** Direct buffers over arenas (JDK 22 and later): what Java would refuse to touch, native code does not touch either. */
class ArenaTest {
    /** The test is compiled by 17, where there are no arenas. */
    private static AutoCloseable arena() throws Exception {
        assumeTrue(Runtime.version().feature() >= 22, "arenas came with JDK 22");
        return (AutoCloseable) Class.forName("java.lang.foreign.Arena").getMethod("ofConfined").invoke(null);
    }

    private static ByteBuffer buffer(AutoCloseable arena, long octets) throws Exception {
        Method allocate = Class.forName("java.lang.foreign.Arena").getMethod("allocate", long.class);
        Object segment = allocate.invoke(arena, octets);
        return (ByteBuffer) Class.forName("java.lang.foreign.MemorySegment").getMethod("asByteBuffer").invoke(segment);
    }

    @Test
    void shouldRefuseABufferWhoseArenaIsClosed() throws Exception {
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
    void shouldRefuseABufferOfAnotherThreadsArena() throws Exception {
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
}
