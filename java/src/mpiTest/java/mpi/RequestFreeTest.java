package mpi;

import static mpi.Program.assertStatus;
import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Requests that are freed, asked without a wait, or not complete at the end. */
@Timeout(180)
class RequestFreeTest {
    private static final int LONG = 100_000;

    /** Receives that are freed before their messages store their elements all the same. */
    static final class Freed {
        private Freed() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int me = world.Rank();
            int other = 1 - me;
            int[] one = {0};
            double[] many = new double[LONG];
            Object[] object = new Object[1];
            Request[] receives = {world.Irecv(one, 0, 1, MPI.INT, other, 1),
                world.Irecv(many, 0, LONG, MPI.DOUBLE, other, 2), world.Irecv(object, 0, 1, MPI.OBJECT, other, 3)};
            for (Request receive : receives) {
                assertFalse(receive.Is_null());
                receive.Free();
                assertTrue(receive.Is_null());
                assertStatus(MPI.ANY_SOURCE, MPI.ANY_TAG, 0, receive.Wait());
                receive.Free();
                receive.Cancel();
            }
            world.Barrier();
            double[] data = new double[LONG];
            data[LONG - 1] = me + 1;
            world.Issend(new int[] {me + 5}, 0, 1, MPI.INT, other, 1).Free();
            world.Isend(data, 0, LONG, MPI.DOUBLE, other, 2).Free();
            world.Issend(new Object[] {"from " + me}, 0, 1, MPI.OBJECT, other, 3).Free();
            // The message behind them.
            world.Sendrecv(data, 0, 0, MPI.DOUBLE, other, 4, data, 0, 0, MPI.DOUBLE, other, 4);
            world.Barrier();
            while (one[0] == 0 || many[LONG - 1] == 0 || object[0] == null) {
                // The octets of a long or synchronous message may follow the messages behind.
                MPI.REQUEST_NULL.Wait();
            }
            assertEquals(other + 5, one[0]);
            assertEquals(other + 1, many[LONG - 1]);
            assertEquals("from " + other, object[0]);
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldCompleteOperationsOfFreedRequests(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Freed.class));
    }

    /** A status without a wait, in a world of one rank. */
    static final class Asked {
        private Asked() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int[] a = {0, 0};
            Request receive = world.Irecv(a, 0, 1, MPI.INT, 0, 1);
            assertNull(receive.Get_status());
            world.Send(new int[] {7, 8}, 0, 1, MPI.INT, 0, 1);
            Status status = receive.Get_status();
            while (status == null) {
                status = receive.Get_status();
            }
            assertStatus(0, 1, 1, status);
            assertEquals(7, a[0]);
            assertFalse(receive.Is_null());
            assertSame(status, receive.Get_status());
            assertStatus(0, 1, 1, receive.Wait());
            assertTrue(receive.Is_null());
            assertStatus(MPI.ANY_SOURCE, MPI.ANY_TAG, 0, receive.Get_status());
            // A failure stays until a wait has thrown it.
            Request tooShort = world.Irecv(a, 0, 1, MPI.INT, 0, 2);
            world.Send(new int[2], 0, 2, MPI.INT, 0, 2);
            fails(MPI.ERR_TRUNCATE, () -> {
                while (tooShort.Get_status() == null) {
                    Thread.onSpinWait();
                }
            });
            fails(MPI.ERR_TRUNCATE, tooShort::Get_status);
            fails(MPI.ERR_TRUNCATE, tooShort::Wait);
            assertTrue(tooShort.Is_null());
            // A freed persistent request starts again.
            Prequest again = world.Recv_init(a, 1, 1, MPI.INT, 0, 3);
            again.Start();
            again.Free();
            world.Send(new int[] {9}, 0, 1, MPI.INT, 0, 3);
            while (a[1] != 9) {
                MPI.REQUEST_NULL.Test();
            }
            again.Start();
            world.Send(new int[] {10}, 0, 1, MPI.INT, 0, 3);
            assertStatus(0, 3, 1, again.Wait());
            assertArrayEquals(new int[] {7, 10}, a);
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldTellTheStatusOfARequestThatStaysActive(World world) throws Exception {
        assertEquals(List.of("done"), world.run(1, Asked.class));
    }

    /** Rank 0 ends with requests that no rank can complete, and begins again. */
    static final class Incomplete {
        private Incomplete() {}

        public static void main(String[] args) {
            for (int time = 0; time < 2; time++) {
                MPI.Init(args);
                Intracomm world = MPI.COMM_WORLD;
                int[] a = new int[LONG];
                if (world.Rank() == 0) {
                    Request[] left = {world.Irecv(a, 0, 1, MPI.INT, 1, 1),
                        world.Irecv(a, 1, 1, MPI.INT, MPI.ANY_SOURCE, 2),
                        world.Issend(a, 0, 1, MPI.INT, 1, 3), world.Isend(a, 0, 1, MPI.INT, 1, 4)};
                    world.Irecv(a, 3, 1, MPI.INT, 1, 5).Free();
                    String text = fails(MPI.ERR_REQUEST, MPI::Finalize);
                    assertEquals("requests are not complete at MPI.Finalize: 1 sends, 2 receives", text);
                    assertTrue(!MPI.Initialized() && MPI.Finalized());
                    for (int i = 0; i < 3; i++) {
                        Request request = left[i];
                        fails(MPI.ERR_OTHER, request::Wait);
                    }
                } else {
                    world.Recv(a, 0, 1, MPI.INT, 0, 4);
                    MPI.Finalize();
                }
            }
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldNameIncompleteRequestsAtTheEnd(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Incomplete.class));
    }
}
