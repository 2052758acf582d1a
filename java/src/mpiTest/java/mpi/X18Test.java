package mpi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/**
 * Defect X18 of MPJ Express: Unpack computes its position from the items that fit, not from those that were
 * packed, and Pack_size adds a remainder instead of padding.
 */
class X18Test {
    @Test
    void shouldReturnThePositionBehindThePackedItems() {
        byte[] unit = new byte[64];
        int second = PackingUnits.pack(new int[] {1, 2}, 0, 2, MPI.INT, unit, 0);
        int end = PackingUnits.pack(new byte[] {3}, 0, 1, MPI.BYTE, unit, second);
        int[] ints = new int[10];
        assertEquals(second, PackingUnits.unpack(unit, 0, ints, 0, 10, MPI.INT));
        byte[] bytes = new byte[10];
        assertEquals(end, PackingUnits.unpack(unit, second, bytes, 0, 10, MPI.BYTE));
        assertArrayEquals(new int[] {1, 2, 0, 0, 0, 0, 0, 0, 0, 0}, ints);
        assertEquals(3, bytes[0]);
    }

    @Test
    void shouldHaveRoomForWhatPackSizeTells() {
        for (int n = 0; n <= 17; n++) {
            int size = PackingUnits.size(n, MPI.BYTE);
            assertEquals(8 + (n + 7) / 8 * 8, size);
            assertEquals(size, PackingUnits.pack(new byte[n], 0, n, MPI.BYTE, new byte[size], 0));
        }
    }
}
