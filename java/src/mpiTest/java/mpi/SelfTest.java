package mpi;

import static mpi.Program.assertStatus;
import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The communicator of a rank alone. */
@Timeout(180)
class SelfTest {
    private static final int TAG = 4;

    /** Rank 0 makes communicators of itself while rank 1 waits for its message. */
    static final class Alone {
        private Alone() {}

        public static void main(String[] args) {
            assertNull(MPI.COMM_SELF);
            for (int time = 0; time < 3; time++) {
                MPI.Init(args);
                int me = MPI.COMM_WORLD.Rank();
                int[] got = new int[1];
                if (me == 0) {
                    check(MPI.COMM_SELF, me);
                    MPI.COMM_WORLD.Send(got, 0, 1, MPI.INT, 1, TAG);
                } else {
                    MPI.COMM_WORLD.Recv(got, 0, 1, MPI.INT, 0, TAG);
                    check(MPI.COMM_SELF, me);
                }
                Intracomm self = MPI.COMM_SELF;
                MPI.Finalize();
                assertNull(MPI.COMM_SELF);
                fails(MPI.ERR_OTHER, self::Rank);
            }
            System.out.println("done");
        }

        private static void check(Intracomm self, int me) {
            assertEquals(1, self.Size());
            assertEquals(0, self.Rank());
            assertArrayEquals(new int[] {me}, self.Group().members);
            assertEquals(MPI.UNEQUAL, Comm.Compare(self, MPI.COMM_WORLD));
            fails(MPI.ERR_COMM, self::Free);
            fails(MPI.ERR_RANK, () -> self.Send(new int[1], 0, 1, MPI.INT, 1, TAG));
            self.Barrier();
            exchange(self);
            Intracomm copy = (Intracomm) self.clone();
            assertEquals(MPI.CONGRUENT, Comm.Compare(self, copy));
            exchange(copy);
            Intracomm part = copy.Split(3, 1);
            exchange(part);
            assertNull(copy.Split(MPI.UNDEFINED, 0));
            assertNotNull(self.Create(part.Group()));
            assertNull(self.Create(MPI.GROUP_EMPTY));
            assertEquals(1, self.Create_cart(new int[] {1}, new boolean[1], false).Get().dims[0]);
            copy.Free();
            fails(MPI.ERR_COMM, copy::Size);
            exchange(self);
        }

        /** Sends a message to this rank, which no receive awaits. */
        private static void exchange(Comm comm) {
            int[] got = new int[2];
            comm.Send(new int[] {1, 2}, 0, 2, MPI.INT, 0, TAG);
            assertStatus(0, TAG, 2, comm.Recv(got, 0, 2, MPI.INT, MPI.ANY_SOURCE, MPI.ANY_TAG));
            assertArrayEquals(new int[] {1, 2}, got);
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldNeedNoOtherRank(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Alone.class));
    }
}
