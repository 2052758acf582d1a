package mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.Collections;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Defect X26 of MPJ Express: a rank outside the group gets a communicator of rank -1 from Create. */
@Timeout(180)
class NonMemberTest {
    /** Makes communicators without rank 2. */
    static final class Creations {
        private Creations() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            boolean isMember = world.Rank() != 2;
            Comm[] made = {world.Create(world.Group().Excl(new int[] {2})),
                world.Create_cart(new int[] {2}, new boolean[1], false),
                world.Create_graph(new int[] {1, 2}, new int[] {1, 0}, false),
                world.Split(isMember ? 0 : MPI.UNDEFINED, 0)};
            for (Comm comm : made) {
                if (isMember) {
                    assertNotNull(comm);
                    assertEquals(world.Rank(), comm.Rank());
                } else {
                    assertNull(comm);
                }
            }
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"THREADS", "SHM"})
    void shouldGetNull(World world) throws Exception {
        assertEquals(Collections.nCopies(3, "done"), world.run(3, Creations.class));
    }
}
