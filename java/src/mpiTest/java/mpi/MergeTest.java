package mpi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Collections;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Defect X19 of MPJ Express: Merge waits for all ranks of the world and ignores equal flags, clone of an
 * intercommunicator uses a tag of the program, and clone of a grid may lose ranks.
 */
@Timeout(180)
class MergeTest {
    private static final int TAG = 110;

    /** Ranks 3 and 1 meet while the others do something else. */
    static final class Merges {
        private Merges() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int me = world.Rank();
            if (me % 2 == 1) {
                meet(world, me == 3 ? 1 : 3);
            }
            Cartcomm grid = world.Create_cart(new int[] {2, 2}, new boolean[2], false);
            if (me < 4) {
                assertEquals(4, ((Cartcomm) grid.clone()).Size());
            }
            MPI.Finalize();
            System.out.println("done");
        }

        private static void meet(Intracomm world, int other) {
            Intercomm inter = world.Create_intercomm(MPI.COMM_SELF, 0, other, TAG);
            // A message with the tag of the peer's clone is in the way.
            Request sent = inter.Isend(new int[] {other}, 0, 1, MPI.INT, 0, TAG);
            Intercomm copy = (Intercomm) inter.clone();
            int[] got = new int[1];
            inter.Recv(got, 0, 1, MPI.INT, 0, TAG);
            assertEquals(world.Rank(), got[0]);
            sent.Wait();
            assertArrayEquals(new int[] {1, 3}, copy.Merge(false).Group().members, "1 leads the first group");
            assertArrayEquals(new int[] {1, 3}, copy.Merge(true).Group().members, "1 leads the first group");
            assertArrayEquals(new int[] {3, 1}, copy.Merge(other == 3).Group().members, "1 is high");
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"THREADS", "SHM", "OPENMPI", "MPICH"})
    void shouldMergeWithoutTheRestOfTheWorld(World world) throws Exception {
        assertEquals(Collections.nCopies(5, "done"), world.run(5, Merges.class));
    }
}
