package mpi;

import static mpi.Program.assertStatus;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Cancelled receives, and sends that are not (defect M3 of MPJ Express: Cancel only prints a line). */
@Timeout(180)
class CancelTest {
    private static final int LONG = 100_000;

    /** Each rank cancels a receive of each kind, then gets the messages in other receives. */
    static final class Both {
        private Both() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int other = 1 - world.Rank();
            int[] a = new int[LONG];
            Object[] object = new Object[1];
            Prequest again = world.Recv_init(a, 0, 1, MPI.INT, other, 1);
            again.Start();
            Request[] receives = {world.Irecv(a, 0, LONG, MPI.INT, other, 1),
                world.Irecv(a, 0, 1, Datatype.Vector(2, 1, 2, MPI.INT), other, MPI.ANY_TAG),
                world.Irecv(object, 0, 1, MPI.OBJECT, MPI.ANY_SOURCE, 1), again};
            for (Request receive : receives) {
                receive.Cancel();
                receive.Cancel();
                assertFalse(receive.Is_null());
            }
            for (Status status : Request.Waitall(receives)) {
                assertTrue(status.Test_cancelled());
                assertEquals(0, status.numEls);
            }
            world.Barrier();
            int[] data = new int[LONG];
            data[LONG - 1] = 7;
            Request sent = world.Isend(data, 0, LONG, MPI.INT, other, 1);
            sent.Cancel();
            Request synchronous = world.Issend(data, LONG - 1, 1, MPI.INT, other, 2);
            synchronous.Cancel();
            // A send is never cancelled: its message arrives.
            assertStatus(other, 1, LONG, world.Recv(a, 0, LONG, MPI.INT, other, MPI.ANY_TAG));
            assertEquals(7, a[LONG - 1]);
            again.Start();
            Request late = world.Irecv(a, 1, 1, MPI.INT, other, 2);
            Status status = late.Wait();
            assertFalse(status.Test_cancelled());
            assertEquals(7, a[1]);
            // A receive that is done, and one that is void.
            late.Cancel();
            assertFalse(sent.Wait().Test_cancelled());
            assertFalse(synchronous.Wait().Test_cancelled());
            again.Cancel();
            assertTrue(again.Wait().Test_cancelled());
            MPI.REQUEST_NULL.Cancel();
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldEndReceivesWithoutAMessage(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Both.class));
    }

    /** A receive is cancelled while its message arrives: it has either the message, or left it to another. */
    static final class Race {
        private static final int TIMES = 200;

        private Race() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int[] a = {0};
            for (int i = 1; i <= TIMES; i++) {
                if (world.Rank() == 0) {
                    world.Send(new int[] {i}, 0, 1, MPI.INT, 1, i);
                } else {
                    Request receive = world.Irecv(a, 0, 1, MPI.INT, 0, i);
                    receive.Cancel();
                    if (receive.Wait().Test_cancelled()) {
                        assertEquals(i - 1, a[0]);
                        world.Recv(a, 0, 1, MPI.INT, 0, i);
                    }
                    assertEquals(i, a[0]);
                }
            }
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldNotLoseAMessageThatArrivesMeanwhile(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Race.class));
    }
}
