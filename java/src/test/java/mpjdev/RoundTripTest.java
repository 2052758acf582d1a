package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Round trips of all shapes. The octets are those of the naive encoder, and reads of all shapes return the
 * elements. Sizes lie around those at which the engine changes its copy method.
 */
@Timeout(120)
class RoundTripTest {
    private static final ByteOrder[] ORDERS = {ByteOrder.BIG_ENDIAN, ByteOrder.LITTLE_ENDIAN};
    private static final int[] SMALL = {0, 1, 127, 128, 129, 4095, 4096, 4097};
    private static final int[] LARGE = {32767, 32768, 32769, 262143, 262144, 262145};
    private static final long SEED = 20030324;

    /** Elements of an array in an order: as a range, as indices or as a patch. */
    private static final class Shape {
        final int way;
        final int count;
        final int length;
        final int off;
        final int[] indexes;
        final int[] elements;
        final int rank;

        Shape(int way, int count, Random random) {
            this.way = way;
            this.count = count;
            int[] extents = {};
            int[] strides = {};
            if (way == 0) {
                off = random.nextInt(9);
                length = off + count + random.nextInt(9);
                indexes = new int[0];
                elements = Naive.range(off, count);
                rank = 0;
                return;
            }
            if (way == 1) {
                off = random.nextInt(5);
                length = count + random.nextInt(9) + 1;
                // No element occurs twice, because the result of such a scatter is not defined.
                int[] shuffled = Naive.range(0, length);
                for (int i = length - 1; i > 0; i--) {
                    int j = random.nextInt(i + 1);
                    int swap = shuffled[i];
                    shuffled[i] = shuffled[j];
                    shuffled[j] = swap;
                }
                indexes = new int[off + count + 2];
                System.arraycopy(shuffled, 0, indexes, off, count);
                elements = java.util.Arrays.copyOfRange(indexes, off, off + count);
                rank = 0;
                return;
            }
            rank = count == 1 ? random.nextInt(7) : 1 + random.nextInt(6);
            extents = factors(count, rank, random);
            strides = new int[rank];
            int span = 1;
            int lowest = 0;
            // Each stride exceeds the extent of all inner dimensions, so no element occurs twice.
            for (int d = rank - 1; d >= 0; d--) {
                int stride = span + random.nextInt(2);
                strides[d] = random.nextBoolean() ? stride : -stride;
                lowest += Math.min(0, strides[d]) * (Math.max(1, extents[d]) - 1);
                span = stride * Math.max(1, extents[d]);
            }
            off = -lowest + random.nextInt(4);
            length = off + span + 4;
            indexes = new int[3 + 2 * rank];
            System.arraycopy(extents, 0, indexes, 1, rank);
            System.arraycopy(strides, 0, indexes, 2 + rank, rank);
            elements = Naive.patch(off, extents, strides);
        }

        private static int[] factors(int count, int rank, Random random) {
            int[] extents = new int[rank];
            java.util.Arrays.fill(extents, 1);
            if (count == 0) {
                extents[random.nextInt(rank)] = 0;
                return extents;
            }
            int rest = count;
            for (int f = 2; rest > 1; f++) {
                for (; rest % f == 0; rest /= f) {
                    extents[random.nextInt(rank)] *= f;
                }
                if ((long) f * f > rest && rest > 1) {
                    extents[random.nextInt(rank)] *= rest;
                    rest = 1;
                }
            }
            return extents;
        }

        void write(WriteBuffer b, Object array) {
            if (way == 0) {
                AnyArray.write(b, array, off, count);
            } else if (way == 1) {
                AnyArray.gather(b, array, count, off, indexes);
            } else {
                AnyArray.strGather(b, array, off, rank, 1, 2 + rank, indexes);
            }
        }

        void read(ReadBuffer b, Object array) throws BufferReadException {
            if (way == 0) {
                AnyArray.read(b, array, off, count);
            } else if (way == 1) {
                AnyArray.scatter(b, array, count, off, indexes);
            } else {
                AnyArray.strScatter(b, array, off, rank, 1, 2 + rank, indexes);
            }
        }
    }

    private static void roundTrip(Type type, ByteOrder order, int count, int writeWay, int readWay, Random random)
            throws BufferReadException {
        String what = type + " x " + count + " " + order + ", ways " + writeWay + readWay + ", seed " + SEED;
        Shape from = new Shape(writeWay, count, random);
        Shape to = new Shape(readWay, count, random);
        Object source = AnyArray.random(type, from.length, random);
        Object before = AnyArray.copy(source);
        byte[] expected = new Naive(order).section(type, source, from.elements).toByteArray();
        int capacity = expected.length - 16;
        try (WriteBuffer out = new WriteBuffer(capacity, order); ReadBuffer in = new ReadBuffer(capacity)) {
            from.write(out, source);
            assertArrayEquals(expected, out.toByteArray(), what);
            assertTrue(AnyArray.same(before, source), what + ": the source has changed");
            in.load(expected);
            Object dest = AnyArray.random(type, to.length, random);
            Object wanted = AnyArray.copy(dest);
            for (int k = 0; k < count; k++) {
                AnyArray.set(wanted, to.elements[k], AnyArray.bits(source, from.elements[k]));
            }
            to.read(in, dest);
            assertTrue(AnyArray.same(wanted, dest), what + ": the destination differs");
        }
    }

    @ParameterizedTest
    @EnumSource(value = Type.class, names = "OBJECT", mode = Mode.EXCLUDE)
    void shouldKeepSmallSectionsInEveryShape(Type type) throws Exception {
        Random random = new Random(SEED + type.ordinal());
        for (ByteOrder order : ORDERS) {
            for (int count : SMALL) {
                for (int ways = 0; ways < 9; ways++) {
                    roundTrip(type, order, count, ways / 3, ways % 3, random);
                }
            }
        }
    }

    @ParameterizedTest
    @EnumSource(value = Type.class, names = "OBJECT", mode = Mode.EXCLUDE)
    void shouldKeepLargeSectionsInEveryShape(Type type) throws Exception {
        Random random = new Random(SEED - type.ordinal());
        for (int count : LARGE) {
            int shift = random.nextInt(3);
            for (int way = 0; way < 3; way++) {
                roundTrip(type, ORDERS[(way + shift) % 2], count, way, (way + shift) % 3, random);
            }
        }
    }

    @Test
    void shouldKeepMessagesOfManyRandomSections() throws Exception {
        Random random = new Random(SEED);
        for (int message = 0; message < 60; message++) {
            ByteOrder order = ORDERS[random.nextInt(2)];
            Naive naive = new Naive(order);
            int sections = random.nextInt(20);
            Shape[] from = new Shape[sections];
            Object[] sources = new Object[sections];
            for (int s = 0; s < sections; s++) {
                Type type = AnyArray.TYPES[random.nextInt(8)];
                from[s] = new Shape(random.nextInt(3), random.nextInt(300), random);
                sources[s] = AnyArray.random(type, from[s].length, random);
                naive.section(type, sources[s], from[s].elements);
            }
            byte[] expected = naive.toByteArray();
            try (WriteBuffer out = new WriteBuffer(expected.length - 16, order);
                    ReadBuffer in = new ReadBuffer(expected.length - 16)) {
                for (int s = 0; s < sections; s++) {
                    from[s].write(out, sources[s]);
                }
                assertArrayEquals(expected, out.toByteArray(), "message " + message + ", seed " + SEED);
                assertEquals(sections, out.sectionCount());
                in.load(expected);
                for (int s = 0; s < sections; s++) {
                    Object dest = AnyArray.make(in.nextType(), in.nextCount());
                    AnyArray.read(in, dest, 0, in.nextCount());
                    for (int k = 0; k < from[s].count; k++) {
                        assertEquals(AnyArray.bits(sources[s], from[s].elements[k]), AnyArray.bits(dest, k));
                    }
                }
                assertEquals(-1, in.nextCount());
            }
        }
    }

    @ParameterizedTest
    @EnumSource(value = Type.class, names = "OBJECT", mode = Mode.EXCLUDE)
    void shouldKeepDirectBuffersOfBothOrders(Type type) throws Exception {
        Random random = new Random(SEED + type.ordinal());
        int size = AnyArray.size(type);
        for (int count : new int[] {0, 1, 127, 129, 4097, 70_000}) {
            for (int orders = 0; orders < 8; orders++) {
                ByteOrder wire = ORDERS[orders & 1];
                int off = random.nextInt(20);
                Object values = AnyArray.random(type, count, random);
                ByteBuffer source = ByteBuffer.allocateDirect(off + count * size + 3).order(ORDERS[orders >> 1 & 1]);
                source.position(off);
                for (int i = 0; i < count; i++) {
                    AnyArray.put(source, values, i);
                }
                // Position and limit have no effect.
                source.position(1).limit(2);
                byte[] expected = new Naive(wire).section(type, values).toByteArray();
                try (WriteBuffer out = new WriteBuffer(expected.length - 16, wire);
                        ReadBuffer in = new ReadBuffer(expected.length - 16)) {
                    out.write(source, type, off, count);
                    assertArrayEquals(expected, out.toByteArray());
                    in.load(expected);
                    ByteOrder wanted = ORDERS[orders >> 2];
                    ByteBuffer dest = ByteBuffer.allocateDirect(off + count * size + 3).order(wanted);
                    in.read(dest, type, off, count);
                    ByteBuffer want = ByteBuffer.allocate(dest.capacity()).order(wanted).position(off);
                    for (int i = 0; i < count; i++) {
                        AnyArray.put(want, values, i);
                    }
                    assertEquals(want.clear(), dest.clear(), type + " x " + count + ", orders " + orders);
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 3, 127, 128, 255})
    void shouldReadAnyOctetButZeroAsTrue(int octet) throws Exception {
        for (int count : new int[] {3, 200, 5000}) {
            byte[] wire = new Naive(ByteOrder.nativeOrder()).section(Type.BOOLEAN, new boolean[count]).toByteArray();
            for (int i = 0; i < count; i += 2) {
                wire[16 + i] = (byte) octet;
            }
            int[] reversed = new int[count];
            for (int i = 0; i < count; i++) {
                reversed[i] = count - 1 - i;
            }
            try (ReadBuffer in = new ReadBuffer(wire.length)) {
                for (int way = 0; way < 4; way++) {
                    in.load(wire);
                    boolean[] dest = new boolean[count];
                    ByteBuffer direct = ByteBuffer.allocateDirect(count);
                    if (way == 0) {
                        in.read(dest, 0, count);
                    } else if (way == 1) {
                        in.scatter(dest, count, 0, reversed);
                    } else if (way == 2) {
                        in.strScatter(dest, count - 1, 1, 0, 1, new int[] {count, -1});
                    } else {
                        in.read(direct, Type.BOOLEAN, 0, count);
                    }
                    for (int i = 0; i < count; i++) {
                        int at = way == 1 || way == 2 ? count - 1 - i : i;
                        boolean wanted = i % 2 == 0;
                        if (way == 3) {
                            assertEquals(wanted ? 1 : 0, direct.get(i));
                            continue;
                        }
                        // A boolean that holds 2 would pass as a condition and still differ from true.
                        assertEquals(wanted, dest[at]);
                        assertEquals(Boolean.valueOf(wanted), Boolean.valueOf(dest[at]));
                        assertFalse(dest[at] ^ wanted);
                    }
                }
            }
        }
    }

    @Test
    void shouldGatherAnElementTwice() throws Exception {
        try (WriteBuffer out = new WriteBuffer(64); ReadBuffer in = new ReadBuffer(64)) {
            out.gather(new int[] {5, 6, 7}, 4, 1, new int[] {9, 2, 2, 0, 1});
            out.strGather(new int[] {5, 6, 7}, 1, 2, 0, 2, new int[] {2, 2, 0, 1});
            in.load(out.toByteArray());
            int[] dest = new int[4];
            in.read(dest, 0, 4);
            assertArrayEquals(new int[] {7, 7, 5, 6}, dest);
            in.read(dest, 0, 4);
            assertArrayEquals(new int[] {6, 7, 6, 7}, dest);
        }
    }

    @Test
    void shouldWriteOneElementForRankZeroAndNoneForAnEmptyExtent() throws Exception {
        try (WriteBuffer out = new WriteBuffer(64); ReadBuffer in = new ReadBuffer(64)) {
            out.strGather(new long[] {1, 2, 3}, 2, 0, 0, 0, new int[0]);
            // An empty patch selects no element, so no index is outside.
            out.strGather(new long[0], 0, 3, 0, 3, new int[] {5, 0, 5, 1, 1, 1});
            in.load(out.toByteArray());
            assertEquals(1, in.nextCount());
            long[] dest = new long[3];
            in.strScatter(dest, 1, 0, 0, 0, new int[0]);
            assertArrayEquals(new long[] {0, 3, 0}, dest);
            assertEquals(0, in.nextCount());
            in.strScatter(dest, 0, 2, 0, 2, new int[] {0, 9, 1, 1});
            assertEquals(-1, in.nextCount());
        }
    }

    @Test
    void shouldKeepPatchesOfManyDimensions() throws Exception {
        int rank = 40;
        int[] indexes = new int[2 * rank];
        java.util.Arrays.fill(indexes, 1);
        indexes[7] = 3;
        indexes[rank + 7] = -2;
        try (WriteBuffer out = new WriteBuffer(64); ReadBuffer in = new ReadBuffer(64)) {
            out.strGather(new short[] {1, 2, 3, 4, 5}, 4, rank, 0, rank, indexes);
            in.load(out.toByteArray());
            short[] dest = new short[3];
            in.read(dest, 0, 3);
            assertArrayEquals(new short[] {5, 3, 1}, dest);
        }
    }

    @Test
    void shouldRejectHeapBuffersAndReadOnlyDestinations() throws Exception {
        try (WriteBuffer out = new WriteBuffer(64); ReadBuffer in = new ReadBuffer(64)) {
            ByteBuffer direct = ByteBuffer.allocateDirect(8);
            out.write(direct.asReadOnlyBuffer(), Type.LONG, 0, 1);
            in.load(out.toByteArray());
            byte[] before = out.toByteArray();
            assertThrows(IllegalArgumentException.class, () -> out.write(ByteBuffer.allocate(8), Type.LONG, 0, 1));
            assertThrows(IllegalArgumentException.class, () -> in.read(ByteBuffer.allocate(8), Type.LONG, 0, 1));
            assertThrows(java.nio.ReadOnlyBufferException.class,
                    () -> in.read(direct.asReadOnlyBuffer(), Type.LONG, 0, 1));
            assertArrayEquals(before, out.toByteArray());
            assertEquals(1, in.nextCount());
        }
    }
}
