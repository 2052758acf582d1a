package mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Collections;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Defect X8 of MPJ Express: Compare of intercommunicators compares the first one with itself. */
@Timeout(180)
class IntercommCompareTest {
    /** Compares intercommunicators of four ranks whose own or remote groups differ. */
    static final class Comparisons {
        private Comparisons() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int me = world.Rank();
            boolean isLow = me < 2;
            Intracomm half = world.Split(isLow ? 0 : 1, 0);
            Intercomm inter = world.Create_intercomm(half, 0, isLow ? 2 : 0, 1);
            Intercomm same = world.Create_intercomm(half, 1, isLow ? 3 : 1, 1);
            Intercomm turned = world.Create_intercomm(half.Split(0, -me), 0, isLow ? 3 : 1, 1);
            // Ranks 0 and 1 meet, and so do 2 and 3.
            Intercomm pairs = half.Create_intercomm(MPI.COMM_SELF, 0, 1 - half.Rank(), 1);
            assertEquals(MPI.IDENT, Comm.Compare(inter, inter));
            assertEquals(MPI.CONGRUENT, Comm.Compare(inter, same));
            assertEquals(MPI.SIMILAR, Comm.Compare(inter, turned));
            assertEquals(MPI.UNEQUAL, Comm.Compare(inter, pairs));
            assertEquals(MPI.UNEQUAL, Comm.Compare(pairs, inter));
            assertEquals(MPI.UNEQUAL, Comm.Compare(inter, half));
            assertEquals(MPI.UNEQUAL, Comm.Compare(inter, inter.Merge(false)));
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"THREADS", "SHM"})
    void shouldCompareBothGroups(World world) throws Exception {
        assertEquals(Collections.nCopies(4, "done"), world.run(4, Comparisons.class));
    }
}
