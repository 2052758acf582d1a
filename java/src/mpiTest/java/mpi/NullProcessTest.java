package mpi;

import static mpi.Program.assertStatus;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Messages to and from the null process (defect X11 of MPJ Express: sends to it throw). */
@Timeout(180)
class NullProcessTest {
    /** Every call that names a peer. */
    static final class Every {
        private Every() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int none = MPI.PROC_NULL;
            int[] a = {1, 2, 3};
            Object[] objects = {"a"};
            world.Send(a, 0, 3, MPI.INT, none, 0);
            world.Bsend(a, 0, 3, MPI.INT, none, 0);
            world.Ssend(a, 0, 3, MPI.INT, none, 0);
            world.Rsend(objects, 0, 1, MPI.OBJECT, none, 0);
            isNull(world.Recv(a, 0, 3, MPI.INT, none, 7));
            isNull(world.Recv(objects, 0, 1, MPI.OBJECT, none, MPI.ANY_TAG));
            isNull(world.Probe(none, 7));
            isNull(world.Iprobe(none, MPI.ANY_TAG));
            isNull(world.Sendrecv(a, 0, 3, MPI.INT, none, 0, a, 0, 3, MPI.INT, none, 0));
            isNull(world.Sendrecv_replace(a, 0, 3, MPI.INT, none, 0, none, 0));
            // One peer is there: the rank itself.
            isNull(world.Sendrecv(a, 0, 3, MPI.INT, 0, 1, a, 0, 3, MPI.INT, none, 1));
            assertStatus(0, 1, 3, world.Sendrecv(a, 0, 3, MPI.INT, none, 1, a, 0, 3, MPI.INT, 0, 1));
            Request[] started = {world.Isend(a, 0, 3, MPI.INT, none, 0), world.Ibsend(a, 0, 3, MPI.INT, none, 0),
                world.Issend(a, 0, 3, MPI.INT, none, 0), world.Irsend(a, 0, 3, MPI.INT, none, 0)};
            assertNotNull(Request.Testall(started));
            isNull(world.Irecv(a, 0, 3, MPI.INT, none, 0).Wait());
            Prequest[] again = {world.Send_init(a, 0, 3, MPI.INT, none, 0), world.Bsend_init(a, 0, 3, MPI.INT, none, 0),
                world.Ssend_init(a, 0, 3, MPI.INT, none, 0), world.Rsend_init(a, 0, 3, MPI.INT, none, 0),
                world.Recv_init(a, 0, 3, MPI.INT, none, 0)};
            for (int time = 0; time < 2; time++) {
                Prequest.Startall(again);
                isNull(Request.Waitall(again)[4]);
            }
            assertArrayEquals(new int[] {1, 2, 3}, a);
            assertEquals("a", objects[0]);
            MPI.Finalize();
            System.out.println("done");
        }

        private static void isNull(Status status) {
            assertStatus(MPI.PROC_NULL, MPI.ANY_TAG, 0, status);
            assertEquals(0, status.Get_count(MPI.INT));
            assertEquals(0, status.Get_elements(MPI.DOUBLE));
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldNeitherSendNorReceive(World world) throws Exception {
        assertEquals(List.of("done"), world.run(1, Every.class));
    }
}
