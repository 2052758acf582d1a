package mpi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Defect M1 of other MPJ libraries: items of an indexed datatype ignore offset and count. */
@Timeout(180)
class M1Test {
    /** Rank 0 sends three items behind an offset, and receives them into others. */
    static final class Indexed {
        private Indexed() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int[] blocks = {2, 1};
            int[] displacements = {3, 0};
            for (Datatype type : new Datatype[] {Datatype.Indexed(blocks, displacements, MPI.INT),
                Datatype.Hindexed(blocks, displacements, MPI.INT)}) {
                assertEquals(5, type.Extent());
                int[] numbers = new int[20];
                for (int k = 0; k < numbers.length; k++) {
                    numbers[k] = k;
                }
                if (world.Rank() == 0) {
                    world.Send(numbers, 2, 3, type, 1, 1);
                    int[] got = new int[20];
                    assertEquals(3, world.Recv(got, 1, 3, type, 1, 2).count);
                    assertArrayEquals(new int[] {0, 3, 0, 0, 1, 2, 6, 0, 0, 4, 5, 9, 0, 0, 7, 8, 0, 0, 0, 0}, got);
                } else {
                    int[] got = new int[9];
                    assertEquals(9, world.Recv(got, 0, 9, MPI.INT, 0, 1).count);
                    assertArrayEquals(new int[] {5, 6, 2, 10, 11, 7, 15, 16, 12}, got);
                    world.Send(numbers, 1, 9, MPI.INT, 0, 2);
                }
            }
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldPlaceEachItemBehindTheOffset(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Indexed.class));
    }
}
