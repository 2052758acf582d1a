package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteOrder;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Reads of sections in order, and queries that leave the position. */
@Timeout(60)
class ReadBufferTest {
    private static byte[] message(ByteOrder order) {
        return new Naive(order).section(Type.INT, new int[] {1, 2, 3}).section(Type.CHAR, new char[0])
                .section(Type.DOUBLE, new double[] {0.5}).toByteArray();
    }

    @Test
    void shouldReportTheNextSectionWithoutReading() throws Exception {
        for (ByteOrder order : new ByteOrder[] {ByteOrder.BIG_ENDIAN, ByteOrder.LITTLE_ENDIAN}) {
            try (ReadBuffer in = new ReadBuffer(64)) {
                assertNull(in.nextType());
                assertEquals(-1, in.nextCount());
                assertEquals(0, in.sectionCount());
                in.load(message(order));
                for (int again = 0; again < 3; again++) {
                    assertSame(Type.INT, in.nextType());
                    assertEquals(3, in.nextCount());
                    assertEquals(3, in.sectionCount());
                }
                in.read(new int[3], 0, 3);
                assertSame(Type.CHAR, in.nextType());
                assertEquals(0, in.nextCount());
                assertEquals(3, in.sectionCount(), "the count covers the whole message");
                in.read(new char[0], 0, 0);
                assertSame(Type.DOUBLE, in.nextType());
                double[] dest = new double[1];
                in.read(dest, 0, 1);
                assertEquals(0.5, dest[0]);
                assertNull(in.nextType());
                assertEquals(-1, in.nextCount());
                assertEquals(3, in.sectionCount());
            }
        }
    }

    @Test
    void shouldReadAgainAfterAReset() throws Exception {
        try (ReadBuffer in = new ReadBuffer(64)) {
            in.reset();
            in.load(message(ByteOrder.BIG_ENDIAN));
            int[] dest = new int[3];
            for (int again = 0; again < 3; again++) {
                in.read(dest, 0, 3);
                assertArrayEquals(new int[] {1, 2, 3}, dest);
                assertThrows(TypeMismatchException.class, () -> in.read(dest, 0, 3));
                in.reset();
                in.reset();
                assertSame(Type.INT, in.nextType());
                java.util.Arrays.fill(dest, 0);
            }
            in.reset();
            assertThrows(SectionSizeMismatchException.class, () -> in.read(dest, 0, 2));
            in.read(dest, 0, 3);
            assertSame(Type.CHAR, in.nextType());
        }
    }

    @Test
    void shouldBeginAtTheFirstSectionAfterALoad() throws Exception {
        try (ReadBuffer in = new ReadBuffer(64)) {
            in.load(message(ByteOrder.BIG_ENDIAN));
            in.read(new int[3], 0, 3);
            in.load(message(ByteOrder.LITTLE_ENDIAN));
            assertSame(Type.INT, in.nextType());
            in.read(new int[3], 0, 3);
            // A rejected load changes nothing.
            assertThrows(BufferReadException.class, () -> in.load(new byte[15]));
            assertSame(Type.CHAR, in.nextType());
        }
    }

    @Test
    void shouldCopyALoadedMessage() throws Exception {
        byte[] octets = message(ByteOrder.BIG_ENDIAN);
        try (ReadBuffer in = new ReadBuffer(64)) {
            in.load(octets);
            java.util.Arrays.fill(octets, (byte) -1);
            int[] dest = new int[3];
            in.read(dest, 0, 3);
            assertArrayEquals(new int[] {1, 2, 3}, dest);
        }
    }

    @Test
    void shouldKeepTheElementsAroundTheDestination() throws Exception {
        try (ReadBuffer in = new ReadBuffer(64)) {
            in.load(message(ByteOrder.BIG_ENDIAN));
            int[] dest = {9, 9, 9, 9, 9};
            in.read(dest, 1, 3);
            assertArrayEquals(new int[] {9, 1, 2, 3, 9}, dest);
            in.reset();
            int[] twice = {9, 9, 9, 9, 9};
            // An element that is named twice keeps the last value.
            in.scatter(twice, 3, 1, new int[] {0, 4, 0, 4});
            assertArrayEquals(new int[] {2, 9, 9, 9, 3}, twice);
        }
    }

    @Test
    void shouldRejectSectionsOfObjects() throws Exception {
        byte[] octets = new Naive(ByteOrder.nativeOrder()).section(Type.INT, new int[] {1}).objects(1)
                .secondary(Naive.serialised("x")).toByteArray();
        try (ReadBuffer in = new ReadBuffer(64)) {
            in.load(octets);
            in.read(new int[1], 0, 1);
            assertSame(Type.OBJECT, in.nextType());
            assertEquals(1, in.nextCount());
            assertEquals(2, in.sectionCount());
            assertThrows(TypeMismatchException.class, () -> in.read(new int[1], 0, 1));
        }
    }
}
