package mpi;

import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Get_count and Get_elements of any datatype (defect X17 of MPJ Express: they answer for that of the
 * receive).
 */
@Timeout(180)
class ItemCountTest {
    /** Rank 0 sends n ints, which rank 1 receives and waits for as other items. */
    static final class Counts {
        private Counts() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            Datatype triple = Datatype.Vector(3, 1, 2, MPI.INT);
            for (int n = 0; n < 13; n++) {
                if (world.Rank() == 0) {
                    for (int time = 0; time < 3; time++) {
                        world.Send(new int[n], 0, n, MPI.INT, 1, n);
                    }
                } else {
                    Status status = world.Recv(new int[12], 0, 6, MPI.INT2, 0, n);
                    check(n, status, triple);
                    assertEquals(n % 2 == 0 ? n / 2 : MPI.UNDEFINED, status.count);
                    status = world.Recv(new int[24], 0, 4, triple, 0, n);
                    check(n, status, triple);
                    assertEquals(n % 3 == 0 ? n / 3 : MPI.UNDEFINED, status.count);
                    status = world.Irecv(new int[12], 0, 12, MPI.INT, 0, n).Wait();
                    check(n, status, triple);
                    assertEquals(n, status.count);
                }
            }
            MPI.Finalize();
            System.out.println("done");
        }

        private static void check(int n, Status status, Datatype triple) {
            assertEquals(n, status.numEls);
            assertEquals(4 * n, status.countInBytes);
            assertEquals(n, status.Get_count(MPI.INT));
            assertEquals(n % 2 == 0 ? n / 2 : MPI.UNDEFINED, status.Get_count(MPI.INT2));
            assertEquals(n % 3 == 0 ? n / 3 : MPI.UNDEFINED, status.Get_count(triple));
            for (Datatype type : new Datatype[] {MPI.INT, MPI.INT2, triple}) {
                assertEquals(n, status.Get_elements(type));
            }
            for (Datatype type : new Datatype[] {MPI.FLOAT, MPI.DOUBLE2, MPI.OBJECT}) {
                assertEquals(n == 0 ? 0 : MPI.UNDEFINED, status.Get_count(type));
                assertEquals(n == 0 ? 0 : MPI.UNDEFINED, status.Get_elements(type));
            }
            fails(MPI.ERR_TYPE, () -> status.Get_count(null));
            fails(MPI.ERR_TYPE, () -> status.Get_elements(null));
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldAnswerForTheDatatypeThatIsAsked(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Counts.class));
    }

    /** An empty status answers as an empty message. */
    static final class Empty {
        private Empty() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Status empty = new Status();
            assertTrue(empty.Get_count(MPI.INT) == 0 && empty.Get_elements(MPI.DOUBLE2) == 0);
            assertEquals(MPI.UNDEFINED, empty.index);
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource(names = "SHM")
    void shouldBeZeroInAnEmptyStatus(World world) throws Exception {
        assertEquals(List.of("done"), world.run(1, Empty.class));
    }
}
