package mpi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Defect X29 of MPJ Express: objects of a strided datatype are moved as if they were consecutive. */
@Timeout(180)
class X29Test {
    /** Rank 0 sends blocks of objects to rank 1. */
    static final class Blocks {
        private Blocks() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            Datatype[] types = {Datatype.Vector(2, 3, 4, MPI.OBJECT), Datatype.Hvector(2, 3, 4, MPI.OBJECT)};
            for (Datatype type : types) {
                if (world.Rank() == 0) {
                    world.Send(new Integer[] {0, 1, 2, 3, 4, 5, 6, 7}, 0, 1, type, 1, 1);
                } else {
                    Integer[] got = new Integer[8];
                    world.Recv(got, 0, 1, type, 0, 1);
                    assertArrayEquals(new Integer[] {0, 1, 2, null, 4, 5, 6, null}, got);
                }
            }
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldMoveTheObjectsOfEachBlock(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Blocks.class));
    }
}
