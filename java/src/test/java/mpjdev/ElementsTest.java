package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Selection of the elements of an object array, and the errors of wrong indices. */
class ElementsTest {
    @Test
    void shouldAcceptRangesUpToTheEndAndRejectRangesBeyond() {
        for (int[] good : new int[][] {{0, 0}, {0, 10}, {10, 0}, {9, 1}, {3, 4}}) {
            Elements.checkRange("source", good[0], good[1], 10);
        }
        int max = Integer.MAX_VALUE;
        int min = Integer.MIN_VALUE;
        for (int[] bad : new int[][] {{0, 11}, {10, 1}, {11, 0}, {-1, 1}, {0, -1}, {max, 1}, {1, max}, {max, max},
            {min, 0}, {0, min}, {min, min}}) {
            ArrayIndexOutOfBoundsException e = assertThrows(ArrayIndexOutOfBoundsException.class,
                    () -> Elements.checkRange("source", bad[0], bad[1], 10));
            assertEquals("source: offset " + bad[0] + " and count " + bad[1] + " reach outside an array of length 10",
                    e.getMessage());
        }
    }

    @Test
    void shouldCheckUsedIndicesAndCopyThem() {
        int[] indexes = {-5, 2, 0, 2, 99};
        int[] chosen = Elements.indices(3, 3, 1, indexes);
        indexes[1] = 77;
        assertArrayEquals(new int[] {2, 0, 2}, chosen);
        assertEquals(0, Elements.indices(0, 0, 5, indexes).length);
        for (int bad : new int[] {-1, 3, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
            ArrayIndexOutOfBoundsException e = assertThrows(ArrayIndexOutOfBoundsException.class,
                    () -> Elements.indices(3, 2, 1, new int[] {0, 2, bad}));
            assertEquals("index " + bad + " at position 1 is outside an array of length 3", e.getMessage());
        }
        assertTrue(assertThrows(ArrayIndexOutOfBoundsException.class, () -> Elements.indices(3, 2, 4, indexes))
                .getMessage().startsWith("index array: offset 4 and count 2"));
    }

    @Test
    void shouldListTheElementsOfPatches() {
        Random random = new Random(17);
        int inside = 0;
        for (int round = 0; round < 2000; round++) {
            int rank = random.nextInt(4);
            int length = random.nextInt(60);
            int off = random.nextInt(60);
            int[] extents = random.ints(rank, 0, 5).toArray();
            int[] strides = random.ints(rank, -9, 10).toArray();
            // The strides precede the extents, and other numbers surround both.
            int[] indexes = random.ints(2 * rank + 3L, -100, 100).toArray();
            System.arraycopy(strides, 0, indexes, 1, rank);
            System.arraycopy(extents, 0, indexes, rank + 2, rank);
            int[] before = indexes.clone();
            int[] wanted = Naive.patch(off, extents, strides);
            if (Arrays.stream(wanted).allMatch(element -> element >= 0 && element < length)) {
                inside++;
                assertArrayEquals(wanted, Elements.patch(length, off, rank, rank + 2, 1, indexes));
            } else {
                assertThrows(ArrayIndexOutOfBoundsException.class,
                        () -> Elements.patch(length, off, rank, rank + 2, 1, indexes));
            }
            assertArrayEquals(before, indexes);
        }
        assertTrue(inside > 200 && inside < 1800, inside + " of 2000 inside");
    }
}
