package mpi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Defect X22 of MPJ Express: datatypes without elements have the bounds 2^31 - 1 and -2^31, and a message
 * that is shorter than a receive of an indexed datatype is read as if it were whole.
 */
@Timeout(180)
class X22Test {
    @Test
    void shouldHaveNoBoundsWithoutElements() {
        int[] none = {};
        int[] zero = {0};
        for (Datatype empty : new Datatype[] {Datatype.Contiguous(0, MPI.INT), Datatype.Vector(0, 2, 3, MPI.INT),
            Datatype.Vector(2, 0, 3, MPI.INT), Datatype.Indexed(none, none, MPI.INT),
            Datatype.Indexed(zero, new int[] {7}, MPI.INT), Datatype.Struct(none, none, new Datatype[0])}) {
            assertArrayEquals(new int[4], new int[] {empty.Size(), empty.Lb(), empty.Ub(), empty.Extent()});
        }
    }

    /** Receives, and unpacks, three of six elements. */
    static final class Partial {
        private Partial() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int me = world.Rank();
            Datatype type = Datatype.Indexed(new int[] {1, 2}, new int[] {4, 0}, MPI.DOUBLE);
            double[] sent = {1, 2, 3, 4};
            double[] expected = {2, 3, 0, 0, 1, 0, 0, 0, 0, 4, 0, 0};
            double[] got = new double[12];
            world.Send(sent, 0, 4, MPI.DOUBLE, me, 1);
            Status status = world.Recv(got, 0, 2, type, me, 1);
            assertEquals(4, status.Get_elements(type));
            assertEquals(MPI.UNDEFINED, status.Get_count(type));
            assertArrayEquals(expected, got);
            byte[] unit = new byte[world.Pack_size(4, MPI.DOUBLE)];
            world.Pack(sent, 0, 4, MPI.DOUBLE, unit, 0);
            double[] unpacked = new double[12];
            world.Unpack(unit, 0, unpacked, 0, 2, type);
            assertArrayEquals(expected, unpacked);
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldStoreAShorterMessage(World world) throws Exception {
        assertEquals(List.of("done"), world.run(1, Partial.class));
    }
}
