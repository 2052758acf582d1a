package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import mpjdev.core.Native;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Capacity in units of 8 octets, its arithmetic, and the release of memory by close and by the collector. */
@Timeout(60)
class BufferTest {
    @Test
    void shouldFillTheCapacityToTheLastOctetWithEveryType() {
        for (Type type : AnyArray.TYPES) {
            for (int count : new int[] {0, 1, 2, 3, 7, 8, 9, 100}) {
                int needed = 8 + (count * AnyArray.size(type) + 7) / 8 * 8;
                assertEquals(needed, Buffer.requiredCapacity(type, count), type + " x " + count);
                Object array = AnyArray.make(type, count);
                try (WriteBuffer fits = new WriteBuffer(needed); WriteBuffer tight = new WriteBuffer(needed - 8)) {
                    AnyArray.write(fits, array, 0, count);
                    assertEquals(16 + needed, fits.toByteArray().length);
                    assertThrows(BufferOverflowException.class, () -> AnyArray.write(tight, array, 0, count));
                }
            }
        }
    }

    @Test
    void shouldRoundTheCapacityUpToAMultipleOfEight() {
        for (int asked = 0; asked < 40; asked++) {
            int rounded = (asked + 7) / 8 * 8;
            try (WriteBuffer out = new WriteBuffer(asked); ReadBuffer in = new ReadBuffer(asked);
                    ObjectWriteBuffer objects = new ObjectWriteBuffer(asked); Buffer plain = new Buffer(asked) {};
                    ObjectReadBuffer objectsIn = new ObjectReadBuffer(asked)) {
                for (Buffer b : List.of(out, in, objects, plain, objectsIn)) {
                    assertEquals(rounded, b.capacity(), b.getClass() + " of " + asked);
                    b.ensureCapacity(asked + 64);
                    assertEquals(rounded + 64, b.capacity(), b.getClass() + " of " + asked);
                    b.restoreCapacity();
                    assertEquals(rounded, b.capacity(), b.getClass() + " of " + asked);
                }
            }
        }
        try (WriteBuffer b = new WriteBuffer(Buffer.MAX_CAPACITY - 7)) {
            assertEquals(Buffer.MAX_CAPACITY, b.capacity());
        }
    }

    /** Programs for the original mpjdev use 8 + n * z octets for n elements of z octets, without padding. */
    @Test
    void shouldAcceptASectionWhoseCapacityOmitsThePadding() throws Exception {
        for (Type type : AnyArray.TYPES) {
            for (int count : new int[] {1, 3, 5, 7, 13, 100, 101, 4097}) {
                int capacity = Buffer.SECTION_OVERHEAD + count * AnyArray.size(type);
                Object array = AnyArray.make(type, count);
                Object back = AnyArray.make(type, count);
                try (WriteBuffer out = new WriteBuffer(capacity); ReadBuffer in = new ReadBuffer(capacity)) {
                    AnyArray.write(out, array, 0, count);
                    in.load(out.toByteArray());
                    AnyArray.read(in, back, 0, count);
                    assertThrows(BufferOverflowException.class, () -> out.write(new int[0], 0, 0));
                }
            }
        }
    }

    @Test
    void shouldAllowCapacityZeroAndTheLargestOne() {
        try (WriteBuffer none = new WriteBuffer(0);
                WriteBuffer largest = new WriteBuffer(Buffer.MAX_CAPACITY);
                ReadBuffer in = new ReadBuffer(Buffer.MAX_CAPACITY)) {
            assertEquals(0, none.capacity());
            assertEquals(16, none.toByteArray().length);
            assertEquals(2147483624, largest.capacity());
            assertEquals(2147483624, in.capacity());
        }
    }

    @Test
    void shouldNameTheRangeOfAWrongCapacity() {
        for (int bad : new int[] {-1, Integer.MIN_VALUE, Buffer.MAX_CAPACITY + 1, Integer.MAX_VALUE}) {
            for (Runnable make : List.<Runnable>of(() -> new WriteBuffer(bad), () -> new ReadBuffer(bad),
                    () -> new ObjectWriteBuffer(bad), () -> new ObjectReadBuffer(bad), () -> new Buffer(bad) {})) {
                IllegalArgumentException e = assertThrows(IllegalArgumentException.class, make::run);
                assertTrue(e.getMessage().contains("" + bad) && e.getMessage().contains("2147483624"), e.getMessage());
            }
        }
    }

    @Test
    void shouldGrowOnRequestAndShrinkAgain() {
        try (WriteBuffer b = new WriteBuffer(16)) {
            b.write(new int[1], 0, 1);
            b.ensureCapacity(8);
            assertEquals(16, b.capacity());
            assertEquals(0, b.sectionCount(), "the contents are discarded even if the capacity suffices");
            b.ensureCapacity(100);
            assertEquals(104, b.capacity());
            b.write(new long[11], 0, 11);
            assertThrows(IllegalArgumentException.class, () -> b.ensureCapacity(-1));
            assertEquals(1, b.sectionCount(), "a rejected request changes nothing");
            b.restoreCapacity();
            assertEquals(16, b.capacity());
            assertEquals(0, b.sectionCount());
            assertThrows(BufferOverflowException.class, () -> b.write(new long[2], 0, 2));
        }
    }

    @Test
    void shouldGrowAndShrinkABufferForReading() throws Exception {
        byte[] message;
        try (WriteBuffer b = new WriteBuffer(64)) {
            b.write(new long[6], 0, 6);
            message = b.toByteArray();
        }
        try (ReadBuffer b = new ReadBuffer(16)) {
            assertThrows(BufferReadException.class, () -> b.load(message));
            b.ensureCapacity(56);
            b.load(message);
            assertEquals(1, b.sectionCount());
            b.restoreCapacity();
            assertEquals(16, b.capacity());
            assertEquals(0, b.sectionCount());
        }
    }

    @Test
    void shouldCountRequiredCapacityInLong() {
        assertEquals(8 + 8L * Integer.MAX_VALUE, Buffer.requiredCapacity(Type.DOUBLE, Integer.MAX_VALUE));
        assertEquals(8 + 2147483648L, Buffer.requiredCapacity(Type.BYTE, Integer.MAX_VALUE));
        assertEquals(8, Buffer.requiredCapacity(Type.OBJECT, Integer.MAX_VALUE));
        assertThrows(IllegalArgumentException.class, () -> Buffer.requiredCapacity(Type.INT, -1));
        assertThrows(NullPointerException.class, () -> Buffer.requiredCapacity((Type) null, 1));
    }

    @Test
    void shouldSumTheCapacitiesOfArrays() {
        assertEquals(0, Buffer.requiredCapacity());
        assertEquals(24 + 16 + 8 + 8, Buffer.requiredCapacity(new int[3], new byte[5], new String[9], new double[0]));
        assertThrows(IllegalArgumentException.class, () -> Buffer.requiredCapacity("no array"));
        assertThrows(NullPointerException.class, () -> Buffer.requiredCapacity(new Object[] {null}));
    }

    @Test
    void shouldKeepTheConstantsOfTheOriginal() {
        assertEquals(8, Buffer.SECTION_OVERHEAD);
        assertEquals(7, Buffer.MAX_SECTION_PADDING);
    }

    @Test
    void shouldCloseTwiceAndRejectLaterCalls() {
        WriteBuffer b = new WriteBuffer(8);
        int open = Native.openBuffers();
        b.close();
        b.close();
        b.free();
        assertEquals(open - 1, Native.openBuffers());
        IllegalStateException e = assertThrows(IllegalStateException.class, b::capacity);
        assertTrue(e.getMessage().contains("closed"), e.getMessage());
    }

    @Test
    void shouldReleaseMemoryAtClose() {
        long before = Native.usedMemory();
        WriteBuffer b = new WriteBuffer(1 << 20);
        assertEquals(before, Native.usedMemory(), "the first write allocates memory");
        b.write(new byte[1], 0, 1);
        assertTrue(Native.usedMemory() >= before + (1 << 20));
        b.close();
        assertEquals(before, Native.usedMemory());
    }

    @Test
    void shouldReleaseMemoryOfUnreachableBuffers() throws Exception {
        int open = Native.openBuffers();
        long used = Native.usedMemory();
        abandon(50);
        Wait.untilCollected("50 unreachable buffers are closed",
                () -> Native.openBuffers() <= open && Native.usedMemory() <= used);
    }

    private static void abandon(int count) {
        List<Buffer> buffers = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            ObjectWriteBuffer b = new ObjectWriteBuffer(10_000);
            b.write(new int[10], 0, 10);
            buffers.add(b);
        }
        assertTrue(Native.openBuffers() >= count, "" + buffers.size());
    }
}
