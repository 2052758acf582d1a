package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteOrder;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;

/** Writes: octets of the format, and writes that do not fit and change nothing. */
class WriteBufferTest {
    @Test
    void shouldLayOutAnIntSectionInBothOrders() {
        try (WriteBuffer big = new WriteBuffer(24, ByteOrder.BIG_ENDIAN);
                WriteBuffer little = new WriteBuffer(24, ByteOrder.LITTLE_ENDIAN)) {
            for (WriteBuffer b : new WriteBuffer[] {big, little}) {
                b.write(new int[] {9, 1, 2, -1, 9}, 1, 3);
            }
            assertEquals("0000000000000018" + "0400000000000003" + "0000000100000002" + "ffffffff00000000"
                    + "0000000000000000", HexFormat.of().formatHex(big.toByteArray()));
            assertEquals("0100000018000000" + "0400000003000000" + "0100000002000000" + "ffffffff00000000"
                    + "0000000000000000", HexFormat.of().formatHex(little.toByteArray()));
        }
    }

    @Test
    void shouldRejectASectionAboveTheCapacityAndKeepTheMessage() {
        try (WriteBuffer b = new WriteBuffer(16)) {
            byte[] before = b.toByteArray();
            BufferOverflowException e =
                    assertThrows(BufferOverflowException.class, () -> b.write(new int[3], 0, 3));
            assertEquals("buffer overflow: 24 octets needed for the section, 16 available of capacity 16",
                    e.getMessage());
            assertArrayEquals(before, b.toByteArray());
        }
    }

    @Test
    void shouldReadWrittenElements() throws BufferReadException {
        try (WriteBuffer out = new WriteBuffer(4096); ReadBuffer in = new ReadBuffer(4096)) {
            int[] source = new int[900];
            for (int i = 0; i < source.length; i++) {
                source[i] = i * i - 1000;
            }
            out.write(source, 0, source.length);
            in.load(out.toByteArray());
            int[] dest = new int[900];
            in.read(dest, 0, 900);
            assertArrayEquals(source, dest);
        }
    }

    @Test
    void shouldCountSectionsAndDropThemAtClear() {
        try (WriteBuffer b = new WriteBuffer(64)) {
            assertEquals(0, b.sectionCount());
            b.clear();
            for (int i = 1; i <= 3; i++) {
                b.write(new byte[] {1, 2, 3}, 0, 3);
                assertEquals(i, b.sectionCount());
            }
            b.clear();
            assertEquals(0, b.sectionCount());
            assertEquals(16, b.toByteArray().length);
            b.write(new byte[] {9}, 0, 1);
            assertEquals(1, b.sectionCount());
            // Padding is zero over any earlier octets.
            assertArrayEquals(new Naive(ByteOrder.nativeOrder()).section(Type.BYTE, new byte[] {9}).toByteArray(),
                    b.toByteArray());
        }
    }

    @Test
    void shouldLeaveZeroPaddingAfterAFailedWrite() {
        try (WriteBuffer b = new WriteBuffer(64)) {
            int[] indexes = new int[40];
            indexes[39] = -1;
            byte[] ones = new byte[40];
            java.util.Arrays.fill(ones, (byte) -1);
            assertThrows(ArrayIndexOutOfBoundsException.class, () -> b.gather(ones, 40, 0, indexes));
            b.write(new byte[] {5}, 0, 1);
            b.write(new short[] {6}, 0, 1);
            assertArrayEquals(new Naive(ByteOrder.nativeOrder()).section(Type.BYTE, new byte[] {5})
                    .section(Type.SHORT, new short[] {6}).toByteArray(), b.toByteArray());
        }
    }

    @Test
    void shouldClearBeforeAWriteThatFails() {
        try (WriteBuffer b = new WriteBuffer(16)) {
            b.write(new int[2], 0, 2);
            b.clear();
            assertThrows(BufferOverflowException.class, () -> b.write(new int[3], 0, 3));
            assertThrows(ArrayIndexOutOfBoundsException.class, () -> b.write(new int[3], 2, 2));
            assertEquals(0, b.sectionCount());
            b.write(new int[2], 0, 2);
            assertEquals(1, b.sectionCount());
        }
    }
}
