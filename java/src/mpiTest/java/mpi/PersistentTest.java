package mpi;

import static mpi.Program.assertStatus;
import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Persistent requests. */
@Timeout(180)
class PersistentTest {
    private static final int TIMES = 20;

    /** Starts the same requests again and again, in two ranks. */
    static final class Rounds {
        private Rounds() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int other = 1 - world.Rank();
            int[] out = new int[2];
            int[] in = new int[2];
            Prequest[] both = {world.Recv_init(in, 0, 2, MPI.INT, other, 1), null,
                world.Send_init(out, 0, 2, MPI.INT, other, 1)};
            assertTrue(both[0].Is_null() && both[2].Is_null());
            assertStatus(MPI.ANY_SOURCE, MPI.ANY_TAG, 0, both[0].Wait());
            for (int i = 0; i < TIMES; i++) {
                out[1] = 10 * i + world.Rank();
                Prequest.Startall(both);
                fails(MPI.ERR_REQUEST, both[0]::Start);
                Status[] all = Request.Waitall(both);
                assertStatus(other, 1, 2, all[0]);
                assertEquals(10 * i + other, in[1]);
                assertTrue(both[0].Is_null() && both[2].Is_null());
            }
            Prequest synchronous = world.Ssend_init(out, 0, 1, MPI.INT, other, 2);
            Prequest ready = world.Rsend_init(out, 0, 1, MPI.INT, other, 3);
            Prequest any = world.Recv_init(in, 0, 1, MPI.INT, MPI.ANY_SOURCE, MPI.ANY_TAG);
            synchronous.Start();
            any.Start();
            assertStatus(other, 2, 1, any.Wait());
            synchronous.Wait();
            ready.Start();
            any.Start();
            assertStatus(other, 3, 1, any.Wait());
            ready.Wait();
            fails(MPI.ERR_TYPE, () -> world.Send_init(out, 0, 1, MPI.LONG, other, 0));
            fails(MPI.ERR_TYPE, () -> world.Recv_init(out, 0, 1, null, other, 0));
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldStartAgainAfterEachWait(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Rounds.class));
    }
}
