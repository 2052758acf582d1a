package mpi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Collections;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Defect X3 of MPJ Express: Split with equal keys throws a NullPointerException at every rank. */
@Timeout(180)
class EqualKeysTest {
    /** Splits five ranks with keys of which all, or some, are equal. */
    static final class Splits {
        private Splits() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int me = world.Rank();
            for (int key : new int[] {0, -1, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
                Intracomm equal = world.Split(1, key);
                assertArrayEquals(new int[] {0, 1, 2, 3, 4}, equal.Group().members);
                assertEquals(me, equal.Rank());
            }
            Intracomm some = world.Split(1, me == 1 || me == 3 ? 0 : 1);
            assertArrayEquals(new int[] {1, 3, 0, 2, 4}, some.Group().members);
            some.Barrier();
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"THREADS", "SHM"})
    void shouldKeepTheOrderOfRanks(World world) throws Exception {
        assertEquals(Collections.nCopies(5, "done"), world.run(5, Splits.class));
    }
}
