package mpi;

import static mpi.Program.assertStatus;
import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Modes of sends, wildcards of receives, and the rank that does not exist. */
@Timeout(180)
class SendModesTest {
    private static final int LONG = 100_000;

    /** Rank 0 sends in each mode; rank 1 receives with each kind of wildcard. */
    static final class Modes {
        private Modes() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            for (int n : new int[] {0, 1, LONG}) {
                long[] data = new long[n + 1];
                if (world.Rank() == 0) {
                    java.util.Arrays.fill(data, n);
                    world.Send(data, 1, n, MPI.LONG, 1, 1);
                    world.Rsend(data, 1, n, MPI.LONG, 1, 2);
                    world.Ssend(data, 1, n, MPI.LONG, 1, 3);
                    // A message of the other rank to any source and any tag.
                    assertStatus(1, 4, n, world.Recv(data, 1, n, MPI.LONG, MPI.ANY_SOURCE, MPI.ANY_TAG));
                } else {
                    assertStatus(0, 1, n, world.Recv(data, 1, n, MPI.LONG, 0, MPI.ANY_TAG));
                    assertStatus(0, 2, n, world.Recv(data, 1, n, MPI.LONG, MPI.ANY_SOURCE, 2));
                    assertStatus(0, 3, n, world.Recv(data, 1, n, MPI.LONG, MPI.ANY_SOURCE, MPI.ANY_TAG));
                    assertEquals(n == 0 ? 0 : n, data[n]);
                    world.Send(data, 1, n, MPI.LONG, 0, 4);
                }
            }
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldMoveMessagesInEachModeToEachWildcard(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Modes.class));
    }

    /** A synchronous send is not done before its receive; the tag orders both. */
    static final class Synchronous {
        private Synchronous() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            byte[] octet = new byte[1];
            if (world.Rank() == 0) {
                Request synchronous = world.Issend(octet, 0, 1, MPI.BYTE, 1, 1);
                assertTrue(synchronous.Test() == null && !synchronous.Is_null());
                world.Send(octet, 0, 1, MPI.BYTE, 1, 2);
                synchronous.Wait();
                assertTrue(synchronous.Is_null());
            } else {
                world.Recv(octet, 0, 1, MPI.BYTE, 0, 2);
                world.Recv(octet, 0, 1, MPI.BYTE, 0, 1);
            }
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldEndASynchronousSendWithItsReceive(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Synchronous.class));
    }

    /** Calls with the null process, and messages of a rank to itself. */
    static final class Alone {
        private Alone() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int[] a = {1, 2, 3};
            world.Send(a, 0, 3, MPI.INT, MPI.PROC_NULL, 0);
            world.Ssend(a, 0, 3, MPI.INT, MPI.PROC_NULL, 0);
            assertStatus(MPI.PROC_NULL, MPI.ANY_TAG, 0, world.Recv(a, 0, 3, MPI.INT, MPI.PROC_NULL, 0));
            assertTrue(world.Isend(a, 0, 3, MPI.INT, MPI.PROC_NULL, 0).Test() != null);
            assertStatus(MPI.PROC_NULL, MPI.ANY_TAG, 0, world.Irecv(a, 0, 3, MPI.INT, MPI.PROC_NULL, 0).Wait());
            Status status = world.Sendrecv(a, 0, 3, MPI.INT, MPI.PROC_NULL, 0, a, 0, 3, MPI.INT, MPI.PROC_NULL, 0);
            assertStatus(MPI.PROC_NULL, MPI.ANY_TAG, 0, status);
            world.Send(a, 0, 3, MPI.INT, 0, 5);
            assertStatus(0, 5, 1 + 2, world.Recv(a, 0, 3, MPI.INT, 0, 5));
            assertArrayEquals(new int[] {1, 2, 3}, a);
            // One array for both: the message is captured first.
            assertStatus(0, 6, 2, world.Sendrecv(a, 0, 2, MPI.INT, 0, 6, a, 1, 2, MPI.INT, 0, 6));
            assertArrayEquals(new int[] {1, 1, 2}, a);
            assertStatus(0, 7, 3, world.Sendrecv_replace(a, 0, 3, MPI.INT, 0, 7, MPI.ANY_SOURCE, MPI.ANY_TAG));
            fails(MPI.ERR_TYPE, () -> world.Sendrecv(a, 0, 1, MPI.INT, 0, 0, a, 0, 1, MPI.LONG, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Sendrecv(a, 0, 1, null, 0, 0, a, 0, 1, MPI.INT, 0, 0));
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldMoveNothingToTheNullProcessAndMessagesToItself(World world) throws Exception {
        assertEquals(List.of("done"), world.run(1, Alone.class));
    }

    /** Both ranks send to each other, also what no credit covers. */
    static final class Exchange {
        private Exchange() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int me = world.Rank();
            int other = 1 - me;
            for (int n : new int[] {1, LONG, 10 * LONG}) {
                double[] mine = new double[n];
                float[] other4 = new float[n];
                double[] theirs = new double[n];
                mine[n - 1] = me + 1;
                Status status = world.Sendrecv(mine, 0, n, MPI.DOUBLE, other, n, theirs, 0, n, MPI.DOUBLE, other, n);
                assertStatus(other, n, n, status);
                assertEquals(other + 1, theirs[n - 1]);
                world.Sendrecv_replace(mine, 0, n, MPI.DOUBLE, other, n, other, n);
                assertEquals(other + 1, mine[n - 1]);
                // Two types in one call.
                if (me == 0) {
                    world.Sendrecv(mine, 0, n, MPI.DOUBLE, 1, 0, other4, 0, n, MPI.FLOAT, 1, 0);
                } else {
                    world.Sendrecv(other4, 0, n, MPI.FLOAT, 0, 0, mine, 0, n, MPI.DOUBLE, 0, 0);
                }
            }
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldExchangeMessagesOfAnyLength(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Exchange.class));
    }
}
