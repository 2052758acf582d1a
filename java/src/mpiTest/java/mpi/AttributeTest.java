package mpi;

import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Attributes of communicators. */
@Timeout(180)
class AttributeTest {
    private static final int KEY = 5;
    private static final int LEAST_TAG_UB = 32_767;

    /** Reads, sets, copies and removes attributes. */
    static final class Attribute {
        private Attribute() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int tagMax = world.Attr_get(MPI.TAG_UB);
            assertTrue(tagMax >= LEAST_TAG_UB, () -> "" + tagMax);
            int[] got = new int[1];
            world.Send(new int[] {7}, 0, 1, MPI.INT, world.Rank(), tagMax);
            world.Recv(got, 0, 1, MPI.INT, world.Rank(), tagMax);
            assertEquals(7, got[0]);
            assertEquals(MPI.PROC_NULL, world.Attr_get(MPI.HOST).intValue());
            assertEquals(world.Rank(), world.Attr_get(MPI.IO).intValue());
            assertEquals(0, world.Attr_get(MPI.WTIME_IS_GLOBAL).intValue());
            fails(MPI.ERR_ARG, () -> world.Attr_get(KEY));
            fails(MPI.ERR_ARG, () -> world.Attr_put(MPI.IO, 1));
            fails(MPI.ERR_ARG, () -> world.Set_attr(KEY, null));
            world.Attr_put(KEY, 8);
            world.Set_attr(KEY + 1, got);
            Comm copy = (Comm) world.clone();
            world.Attr_delete(KEY);
            fails(MPI.ERR_ARG, () -> world.Attr_get(KEY));
            fails(MPI.ERR_ARG, () -> world.Attr_delete(KEY));
            assertEquals(8, copy.Attr_get(KEY).intValue());
            assertSame(got, copy.Get_attr(KEY + 1));
            fails(MPI.ERR_ARG, () -> copy.Attr_get(KEY + 1));
            copy.Delete_attr(KEY + 1);
            fails(MPI.ERR_ARG, () -> copy.Get_attr(KEY + 1));
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldKeepAttributesApartFromThoseOfAClone(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Attribute.class));
    }
}
