package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Arrays;
import org.junit.jupiter.api.Test;

/** Groups and topologies through their native methods; the crate's own tests compare them with models. */
class TopologyNativesTest {
    private static final int[] A = {7, 3, 5};
    private static final int[] B = {5, 9, 7};
    private static final int[] DIMS = {2, 3};
    private static final int[] PERIODS = {0, 1};

    private static int[] combine(int how, int[] a, int... b) {
        int[] out = new int[a.length + b.length];
        return Arrays.copyOf(out, Native.groupCombine(how, a, a.length, b, b.length, out, out.length));
    }

    private static int[] ranges(boolean excluded, int... ranges) {
        int[] out = new int[A.length];
        return Arrays.copyOf(out, Native.groupRanges(A, 3, ranges, ranges.length, excluded, out, 3));
    }

    private static int[] dims(int nodes, int... dims) {
        Native.dimsCreate(nodes, dims, dims.length);
        return dims;
    }

    private static long shift(int rank, int direction, int disp) {
        return Native.cartShift(DIMS, 2, PERIODS, 2, rank, direction, disp);
    }

    private static void illegal(String text, Runnable call) {
        Exception refused = assertThrows(IllegalArgumentException.class, call::run);
        assertEquals(text, refused.getMessage());
    }

    @Test
    void shouldCombineGroups() {
        assertArrayEquals(new int[] {7, 3, 5, 9}, combine(Native.UNION, A, B));
        assertArrayEquals(new int[] {7, 5}, combine(Native.INTERSECTION, A, B));
        assertArrayEquals(new int[] {3}, combine(Native.DIFFERENCE, A, B));
        assertArrayEquals(new int[] {5, 7}, combine(Native.INCLUSION, A, 2, 0));
        assertArrayEquals(new int[] {3}, combine(Native.EXCLUSION, A, 2, 0));
        assertArrayEquals(new int[] {7, 5}, ranges(false, 0, 3, 2));
        assertArrayEquals(new int[] {3}, ranges(true, 2, 0, -2));
        int[] out = new int[3];
        Native.groupTranslate(A, 3, new int[] {2, 1, -3}, 3, B, 3, out, 3);
        assertArrayEquals(new int[] {0, -1, -3}, out);
        assertEquals(0, Native.groupCompare(A, 3, A.clone(), 3));
        assertEquals(1, Native.groupCompare(A, 3, new int[] {3, 5, 7}, 3));
        assertEquals(2, Native.groupCompare(A, 3, B, 3));
        illegal("rank 3 at position 1 is not in a group of 3", () -> combine(Native.INCLUSION, A, 0, 3));
        illegal("rank 0 at position 1 was named before", () -> combine(Native.EXCLUSION, A, 0, 0));
        illegal("range 0 has stride 0", () -> ranges(false, 0, 0, 0));
        illegal("the group cannot be used: there is no such combination", () -> combine(5, A, 0));
    }

    @Test
    void shouldDescribeMembersOfCommunicators() {
        long[] worlds = new long[2];
        Native.localJob(worlds, 2, false);
        int[] members = new int[2];
        Native.members(worlds[1], members, 2);
        assertArrayEquals(new int[] {0, 1}, members);
        assertEquals(Integer.MAX_VALUE, Native.tagMax(worlds[1]));
        assertEquals(0, Native.compareComms(worlds[1], worlds[1]));
        long one = Native.worldOfOne();
        assertEquals(2, Native.compareComms(one, worlds[0]));
        for (long world : new long[] {one, worlds[0], worlds[1]}) {
            Native.finish(world);
            Native.freeComm(world);
        }
    }

    @Test
    void shouldComputeWithCartesianTopologies() {
        assertArrayEquals(new int[] {3, 2}, dims(6, 0, 0));
        assertArrayEquals(new int[] {2, 3}, dims(6, 2, 0));
        illegal("6 nodes cannot be divided by the fixed extents, whose product is 4", () -> dims(6, 4, 0));
        assertEquals(6, Native.cartCheck(7, DIMS, 2, PERIODS, 2));
        illegal("the topology has 6 nodes, the communicator 5 ranks", () -> Native.cartCheck(5, DIMS, 2, PERIODS, 2));
        assertEquals(5, Native.cartRank(DIMS, 2, PERIODS, 2, new int[] {1, -1}, 2));
        illegal("coordinate 2 is outside dimension 0, which has extent 2",
                () -> Native.cartRank(DIMS, 2, PERIODS, 2, new int[] {2, 0}, 2));
        int[] coords = new int[2];
        Native.cartCoords(DIMS, 2, PERIODS, 2, 5, coords, 2);
        assertArrayEquals(new int[] {1, 2}, coords);
        assertEquals(4L << 32 | 3, shift(5, 1, 1));
        assertEquals(2L << 32 | -3L & 0xffff_ffffL, shift(5, 0, 1));
        assertEquals(-3L << 32 | 5, shift(2, 0, 1));
        assertEquals(2L << 32 | 1, Native.cartPart(DIMS, 2, PERIODS, 2, 5, new int[] {1, 0}, 2));
    }

    @Test
    void shouldCheckGraphs() {
        assertEquals(2, Native.graphCheck(3, new int[] {1, 2}, 2, new int[] {1, 0}, 2));
        illegal("edge 1 leads to node 2 of a graph of 2 nodes",
                () -> Native.graphCheck(3, new int[] {1, 2}, 2, new int[] {1, 2}, 2));
    }
}
