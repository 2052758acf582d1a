package mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collections;
import java.util.Set;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Defect X9 of MPJ Express: TAG_UB, HOST and IO are one key, so the attribute TAG_UB is the rank. */
@Timeout(180)
class AttributeKeysTest {
    /** Reads the attributes of the environment. */
    static final class Keys {
        private Keys() {}

        public static void main(String[] args) {
            assertEquals(4, Set.of(MPI.TAG_UB, MPI.HOST, MPI.IO, MPI.WTIME_IS_GLOBAL).size());
            MPI.Init(args);
            int me = MPI.COMM_WORLD.Rank();
            int tagMax = MPI.COMM_WORLD.Attr_get(MPI.TAG_UB);
            assertTrue(tagMax >= 32_767, () -> "" + tagMax);
            assertEquals(MPI.PROC_NULL, MPI.COMM_WORLD.Attr_get(MPI.HOST).intValue());
            assertEquals(me, MPI.COMM_WORLD.Attr_get(MPI.IO).intValue());
            assertEquals(0, MPI.COMM_WORLD.Attr_get(MPI.WTIME_IS_GLOBAL).intValue());
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"THREADS", "SHM"})
    void shouldHaveAValueForEachKey(World world) throws Exception {
        assertEquals(Collections.nCopies(2, "done"), world.run(2, Keys.class));
    }
}
