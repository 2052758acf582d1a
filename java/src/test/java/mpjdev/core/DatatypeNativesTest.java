package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Arrays;
import org.junit.jupiter.api.Test;

/** Datatypes through their native methods; the crate's own tests compare all shapes with a model. */
class DatatypeNativesTest {
    private static final long INT = -1 - Types.INT;

    private static int[] info(long datatype) {
        int[] out = new int[5];
        Native.typeInfo(datatype, out, out.length);
        return out;
    }

    private static int[] elements(long datatype, int off, int count, int length) {
        int[] out = new int[100];
        return Arrays.copyOf(out, Native.typeElements(datatype, off, count, length, out, out.length));
    }

    private static long struct(int[] blocks, int[] displacements, long... types) {
        return Native.typeStruct(blocks, blocks.length, displacements, displacements.length, types, types.length);
    }

    private static void illegal(String text, Runnable call) {
        Exception refused = assertThrows(IllegalArgumentException.class, call::run);
        assertEquals(text, refused.getMessage());
    }

    @Test
    void shouldDescribeBasicTypes() {
        for (int code = Types.BYTE; code <= Types.OBJECT; code++) {
            assertArrayEquals(new int[] {code, 1, 0, 1, 1}, info(-1 - code));
        }
        assertArrayEquals(new int[] {Native.PACKED, 1, 0, 1, 1}, info(-1 - Native.PACKED));
        for (int mark : new int[] {Native.LOWER_MARK, Native.UPPER_MARK}) {
            assertArrayEquals(new int[] {Native.NO_BASE, 0, 0, 0, 0}, info(-1 - mark));
        }
    }

    @Test
    void shouldConstructEachKindOfType() {
        long four = Native.typeContiguous(INT, 4);
        assertArrayEquals(new int[] {Types.INT, 4, 0, 4, 1}, info(four));
        long vector = Native.typeVector(INT, 2, 3, 5, false);
        assertArrayEquals(new int[] {Types.INT, 6, 0, 8, 0}, info(vector));
        assertArrayEquals(new int[] {1, 2, 3, 6, 7, 8, 9, 10, 11, 14, 15, 16}, elements(vector, 1, 2, 17));
        long hvector = Native.typeVector(four, 2, 1, 5, true);
        assertArrayEquals(new int[] {0, 1, 2, 3, 5, 6, 7, 8}, elements(hvector, 0, 1, 9));
        long indexed = Native.typeIndexed(four, new int[] {1, 1}, 2, new int[] {2, 0}, 2, false);
        assertArrayEquals(new int[] {8, 9, 10, 11, 0, 1, 2, 3}, elements(indexed, 0, 1, 12));
        long hindexed = Native.typeIndexed(four, new int[] {1, 1}, 2, new int[] {2, 7}, 2, true);
        assertArrayEquals(new int[] {2, 3, 4, 5, 7, 8, 9, 10}, elements(hindexed, 0, 1, 11));
        long marked = struct(new int[] {2, 1, 1}, new int[] {2, -3, 86}, four, -1 - Native.LOWER_MARK,
                -1 - Native.UPPER_MARK);
        assertArrayEquals(new int[] {Types.INT, 8, -3, 86, 0}, info(marked));
        for (long type : new long[] {four, vector, hvector, indexed, hindexed, marked}) {
            Native.freeType(type);
            Native.freeType(type);
            assertThrows(IllegalStateException.class, () -> info(type));
        }
    }

    @Test
    void shouldKeepTypesThatWereMadeOfFreedOnes() {
        long pair = Native.typeContiguous(INT, 2);
        long four = Native.typeContiguous(pair, 2);
        Native.freeType(pair);
        assertArrayEquals(new int[] {5, 6, 7, 8}, elements(four, 5, 1, 9));
        Native.freeType(four);
    }

    @Test
    void shouldRefuseBadArgumentsWithTheNumbers() {
        illegal("count is negative: -2", () -> Native.typeContiguous(INT, -2));
        illegal("block length is negative: -1", () -> Native.typeVector(INT, 1, -1, 1, true));
        illegal("2 block lengths, 1 displacements and 2 types: one of each per block",
                () -> Native.typeIndexed(INT, new int[2], 2, new int[1], 1, true));
        illegal("block 1 has elements of type double, the blocks before it of type int",
                () -> struct(new int[] {1, 1}, new int[2], INT, -1 - Types.DOUBLE));
        illegal("the datatype cannot be used: it is neither a handle nor a code", () -> Native.typeContiguous(-99, 1));
        Exception outside = assertThrows(ArrayIndexOutOfBoundsException.class, () -> elements(INT, 5, 6, 10));
        assertEquals("the items reach from element 5 to 10, outside an array of length 10", outside.getMessage());
    }

    @Test
    void shouldStoreAsManyElementsAsThereIsRoomFor() {
        int[] out = {-1, -1, -1};
        assertEquals(5, Native.typeElements(INT, 3, 5, 9, out, 2));
        assertArrayEquals(new int[] {3, 4, -1}, out);
        assertEquals(0, Native.typeElements(INT, 3, 0, 0, out, 3));
    }
}
