package mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/**
 * Defect X21 of MPJ Express: a Struct grows with every question for its packed size, and takes the last mark
 * of a bound instead of the outermost one.
 */
class X21Test {
    @Test
    void shouldKeepItsSize() {
        Datatype type = Datatype.Struct(new int[] {2, 3}, new int[] {0, 5}, new Datatype[] {MPI.INT, MPI.INT});
        for (int times = 0; times < 3; times++) {
            assertEquals(32, PackingUnits.size(1, type));
            assertEquals(20, type.getByteSize());
            assertEquals(5, type.Size());
        }
    }

    @Test
    void shouldTakeTheOutermostMarks() {
        Datatype[] types = {MPI.LB, MPI.LB, MPI.INT, MPI.UB, MPI.UB};
        Datatype type = Datatype.Struct(new int[] {1, 1, 1, 1, 1}, new int[] {-7, -2, 0, 9, 4}, types);
        assertEquals(-7, type.Lb());
        assertEquals(9, type.Ub());
        assertEquals(16, type.Extent());
    }
}
