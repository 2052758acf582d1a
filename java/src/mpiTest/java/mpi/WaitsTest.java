package mpi;

import static mpi.Program.assertStatus;
import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Requests: their states, and waits and tests for one and for several. */
@Timeout(180)
class WaitsTest {
    private static final int WINDOW = 64;

    /** A window of messages in both directions, completed in each way. */
    static final class Window {
        private Window() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int other = 1 - world.Rank();
            for (int way = 0; way < 4; way++) {
                double[][] got = new double[WINDOW][1];
                Request[] requests = new Request[2 * WINDOW];
                for (int i = 0; i < WINDOW; i++) {
                    requests[i] = world.Irecv(got[i], 0, 1, MPI.DOUBLE, other, i);
                }
                double[] mine = new double[1];
                for (int i = 0; i < WINDOW; i++) {
                    mine[0] = 100 * way + i;
                    requests[WINDOW + i] = world.Isend(mine, 0, 1, MPI.DOUBLE, other, i);
                }
                int[] done = new int[2 * WINDOW];
                complete(requests, way, done);
                for (int i = 0; i < WINDOW; i++) {
                    assertEquals(100 * way + i, got[i][0]);
                    assertEquals(1, done[i]);
                    assertEquals(1, done[WINDOW + i]);
                    assertTrue(requests[i].Is_null());
                }
            }
            MPI.Finalize();
            System.out.println("done");
        }

        private static void complete(Request[] requests, int way, int[] done) {
            if (way == 0) {
                count(Request.Waitall(requests), done);
                return;
            }
            if (way == 1) {
                Status[] all = null;
                while (all == null) {
                    all = Request.Testall(requests);
                    Thread.onSpinWait();
                }
                count(all, done);
                return;
            }
            int left = requests.length;
            while (left > 0) {
                Status[] some = way == 2 ? new Status[] {Request.Waitany(requests)} : Request.Waitsome(requests);
                assertTrue(some.length > 0);
                count(some, done);
                left -= some.length;
            }
            assertEquals(MPI.UNDEFINED, Request.Waitany(requests).index);
            assertEquals(0, Request.Waitsome(requests).length);
        }

        private static void count(Status[] some, int[] done) {
            for (Status status : some) {
                done[status.index]++;
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldCompleteAWindowInEachWay(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Window.class));
    }

    /** Every state of a request, in a world of one rank. */
    static final class States {
        private States() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int[] a = {7};
            Request receive = world.Irecv(a, 0, 1, MPI.INT, 0, 1);
            assertNull(receive.Test());
            assertFalse(receive.Is_null());
            assertNull(Request.Testany(new Request[] {null, receive}));
            assertNull(Request.Testall(new Request[] {receive, null}));
            assertEquals(0, Request.Testsome(new Request[] {receive}).length);
            Request send = world.Isend(new int[] {8}, 0, 1, MPI.INT, 0, 1);
            assertStatus(0, 1, 1, receive.Wait());
            assertEquals(8, a[0]);
            assertStatus(MPI.ANY_SOURCE, MPI.ANY_TAG, 0, send.Wait());
            assertTrue(receive.Is_null() && send.Is_null() && MPI.REQUEST_NULL.Is_null());
            // All of them are void now.
            for (Request empty : new Request[] {receive, send, MPI.REQUEST_NULL}) {
                assertStatus(MPI.ANY_SOURCE, MPI.ANY_TAG, 0, empty.Wait());
                assertStatus(MPI.ANY_SOURCE, MPI.ANY_TAG, 0, empty.Test());
            }
            Request[] none = {null, send, MPI.REQUEST_NULL};
            assertEquals(MPI.UNDEFINED, Request.Testany(none).index);
            assertEquals(MPI.UNDEFINED, Request.Waitany(none).index);
            assertEquals(0, Request.Waitsome(none).length + Request.Testsome(none).length);
            Status[] all = Request.Waitall(none);
            assertNull(all[0]);
            assertEquals(1, all[1].index);
            assertNotNull(Request.Testall(none));
            assertEquals(0, Request.Waitall(new Request[0]).length);
            fails(MPI.ERR_ARG, () -> Request.Waitall(null));
            failures(world);
            cancelled(world);
            MPI.Finalize();
            System.out.println("done");
        }

        /** A failed receive throws once, after all others are done. */
        private static void failures(Intracomm world) {
            int[] good = {0};
            Request[] requests = {world.Irecv(new int[1], 0, 1, MPI.INT, 0, 1),
                world.Irecv(good, 0, 1, MPI.INT, 0, 2), world.Irecv(new float[2], 0, 2, MPI.FLOAT, 0, 3)};
            int[] two = {1, 2};
            world.Send(two, 0, 2, MPI.INT, 0, 1);
            world.Send(two, 1, 1, MPI.INT, 0, 2);
            world.Send(two, 0, 2, MPI.INT, 0, 3);
            MPIException e = assertThrows(MPIException.class, () -> Request.Waitall(requests));
            assertEquals(MPI.ERR_TRUNCATE, e.getErrorClass());
            assertEquals(MPI.ERR_TYPE, ((MPIException) e.getSuppressed()[0]).getErrorClass());
            assertArrayEquals(new int[] {2}, good);
            assertTrue(requests[0].Is_null() && requests[1].Is_null() && requests[2].Is_null());
        }

        private static void cancelled(Intracomm world) {
            int[] a = {5};
            Request receive = world.Irecv(a, 0, 1, MPI.INT, 0, 9);
            receive.Cancel();
            assertTrue(receive.Wait().Test_cancelled());
            // A send is never cancelled.
            Request send = world.Isend(a, 0, 1, MPI.INT, 0, 9);
            send.Cancel();
            assertFalse(send.Wait().Test_cancelled());
            assertStatus(0, 9, 1, world.Recv(a, 0, 1, MPI.INT, 0, 9));
            receive.Cancel();
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldBeVoidAfterItsStatusWasReturned(World world) throws Exception {
        assertEquals(List.of("done"), world.run(1, States.class));
    }
}
