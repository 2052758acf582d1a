package mpi;

import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** Sizes and bounds of datatypes, and their constructors' errors. */
class DatatypeTest {
    private static void assertBounds(int size, int lb, int ub, Datatype type) {
        assertEquals(size, type.Size(), "size");
        assertEquals(lb, type.Lb(), "lower bound");
        assertEquals(ub, type.Ub(), "upper bound");
        assertEquals(ub - lb, type.Extent(), "extent");
    }

    private static Datatype struct(int[] blocks, int[] displacements, Datatype... types) {
        return Datatype.Struct(blocks, displacements, types);
    }

    @Test
    void shouldHaveTheBoundsOfEachConstructor() {
        assertBounds(4, 0, 4, Datatype.Contiguous(4, MPI.INT));
        assertBounds(6, 0, 8, Datatype.Vector(2, 3, 5, MPI.INT));
        Datatype pair = Datatype.Contiguous(2, MPI.INT);
        assertBounds(6, 0, 14, Datatype.Vector(3, 1, 3, pair));
        assertBounds(6, 0, 8, Datatype.Hvector(3, 1, 3, pair));
        assertBounds(6, -4, 6, Datatype.Indexed(new int[] {2, 1}, new int[] {1, -2}, pair));
        assertBounds(6, -2, 5, Datatype.Hindexed(new int[] {2, 1}, new int[] {1, -2}, pair));
        assertBounds(1, 0, 1, MPI.DOUBLE);
    }

    @Test
    void shouldLetMarksOverrideBounds() {
        Datatype four = Datatype.Contiguous(4, MPI.INT);
        assertBounds(4, 0, 97, struct(new int[] {1, 1}, new int[] {0, 97}, four, MPI.UB));
        assertBounds(5, 65, 98, struct(new int[] {1, 1}, new int[] {65, 97}, four, MPI.INT));
        Datatype both = struct(new int[] {2, 1, 1}, new int[] {2, -3, 86}, four, MPI.LB, MPI.UB);
        assertBounds(8, -3, 86, both);
        assertBounds(16, -3, 175, Datatype.Contiguous(2, both));
        assertBounds(0, 0, 0, MPI.LB);
    }

    @Test
    void shouldHaveNoBoundsWithoutElements() {
        assertBounds(0, 0, 0, MPI.NULL);
        assertBounds(0, 0, 0, Datatype.Contiguous(2, MPI.NULL));
        assertBounds(0, 0, 0, Datatype.Contiguous(0, MPI.INT));
        assertBounds(0, 0, 0, struct(new int[0], new int[0]));
        assertBounds(1, 7, 8, struct(new int[] {0, 1}, new int[] {50, 7}, MPI.DOUBLE, MPI.INT));
    }

    @Test
    void shouldKnowBaseTypesAndOctets() {
        Datatype vector = Datatype.Vector(2, 3, 5, MPI.SHORT);
        assertEquals(MPI.SHORT.baseType, vector.baseType);
        assertEquals(12, vector.getByteSize());
        assertEquals(MPI.UNDEFINED, MPI.UB.baseType);
        assertEquals(0, MPI.UB.getByteSize());
        for (Datatype pair : new Datatype[] {MPI.SHORT2, MPI.INT2, MPI.LONG2, MPI.FLOAT2, MPI.DOUBLE2}) {
            assertBounds(2, 0, 2, pair);
            assertBounds(6, 0, 6, Datatype.Contiguous(3, pair));
        }
        assertEquals(MPI.DOUBLE.baseType, MPI.DOUBLE2.baseType);
    }

    @Test
    void shouldCopyItsArguments() {
        int[] blocks = {1, 1};
        int[] displacements = {0, 5};
        Datatype type = Datatype.Indexed(blocks, displacements, MPI.INT);
        blocks[1] = 9;
        displacements[1] = 77;
        assertBounds(2, 0, 6, type);
    }

    @Test
    void shouldHaveAName() {
        assertEquals("MPI.INT", MPI.INT.Get_name());
        Datatype type = Datatype.Contiguous(2, MPI.INT);
        type.Set_name("pair");
        assertEquals("pair", type.Get_name());
    }

    @Test
    void shouldRefuseInvalidArguments() {
        int[] one = {1};
        fails(MPI.ERR_ARG, () -> Datatype.Contiguous(-1, MPI.INT));
        fails(MPI.ERR_ARG, () -> Datatype.Vector(1, -1, 1, MPI.INT));
        fails(MPI.ERR_ARG, () -> Datatype.Hvector(-1, 1, 1, MPI.INT));
        fails(MPI.ERR_ARG, () -> Datatype.Indexed(one, new int[2], MPI.INT));
        fails(MPI.ERR_ARG, () -> Datatype.Indexed(null, one, MPI.INT));
        fails(MPI.ERR_ARG, () -> Datatype.Hindexed(one, null, MPI.INT));
        fails(MPI.ERR_ARG, () -> Datatype.Struct(one, one, null));
        fails(MPI.ERR_TYPE, () -> Datatype.Contiguous(1, null));
        fails(MPI.ERR_TYPE, () -> struct(one, one, (Datatype) null));
        String mixed = fails(MPI.ERR_ARG,
                () -> struct(new int[] {1, 1}, new int[] {0, 9}, MPI.INT, MPI.DOUBLE));
        assertEquals("block 1 has elements of type double, the blocks before it of type int", mixed);
        fails(MPI.ERR_ARG, () -> Datatype.Contiguous(Integer.MAX_VALUE, MPI.INT2));
    }
}
