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

/** Conventions of all calls of messages: null arguments, base types, one array in both directions. */
@Timeout(180)
class ConventionsTest {
    private static final int N = 64;

    /** Calls with arguments that are null or do not fit. Nothing is sent. */
    static final class Arguments {
        private Arguments() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int[] a = new int[4];
            noDatatype(world, a);
            noRequests();
            fails(MPI.ERR_RANK, () -> world.Send(a, 0, 4, MPI.INT, 1, 0));
            fails(MPI.ERR_RANK, () -> world.Send(a, 0, 4, MPI.INT, -1, 0));
            fails(MPI.ERR_RANK, () -> world.Recv(a, 0, 4, MPI.INT, 1, 0));
            fails(MPI.ERR_RANK, () -> world.Irecv(a, 0, 4, MPI.INT, -7, 0));
            fails(MPI.ERR_TAG, () -> world.Send(a, 0, 4, MPI.INT, 0, -1));
            fails(MPI.ERR_TAG, () -> world.Isend(a, 0, 4, MPI.INT, 0, MPI.ANY_TAG));
            fails(MPI.ERR_TAG, () -> world.Recv(a, 0, 4, MPI.INT, 0, -7));
            fails(MPI.ERR_BUFFER, () -> world.Send(null, 0, 1, MPI.INT, 0, 0));
            fails(MPI.ERR_BUFFER, () -> world.Send(null, 0, 1, MPI.OBJECT, 0, 0));
            fails(MPI.ERR_BUFFER, () -> world.Irecv(null, 0, 1, MPI.INT, 0, 0));
            String numbers = fails(MPI.ERR_BUFFER, () -> world.Send(a, 2, 3, MPI.INT, 0, 0));
            assertEquals("source: offset 2 and count 3 reach outside an array of length 4", numbers);
            fails(MPI.ERR_BUFFER, () -> world.Recv(a, -1, 1, MPI.INT, 0, 0));
            fails(MPI.ERR_COUNT, () -> world.Recv(a, 0, -1, MPI.INT, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Send("text", 0, 1, MPI.INT, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Recv(new long[1], 0, 1, MPI.INT, 0, 0));
            String rows = fails(MPI.ERR_TYPE, () -> world.Send(new double[2][2], 0, 2, MPI.DOUBLE, 0, 0));
            assertTrue(rows.contains("send its rows one by one"), rows);
            world.Send(null, 9, 0, MPI.INT, 0, 1);
            assertStatus(0, 1, 0, world.Recv(null, 0, 0, MPI.INT, MPI.ANY_SOURCE, MPI.ANY_TAG));
            MPI.Finalize();
            fails(MPI.ERR_OTHER, () -> world.Send(a, 0, 4, MPI.INT, 0, 0));
            fails(MPI.ERR_OTHER, () -> world.Irecv(a, 0, 4, MPI.INT, 0, 0));
            System.out.println("done");
        }

        private static void noDatatype(Intracomm world, int[] a) {
            fails(MPI.ERR_TYPE, () -> world.Send(a, 0, 1, null, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Ssend(a, 0, 1, null, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Rsend(a, 0, 1, null, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Isend(a, 0, 1, null, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Issend(a, 0, 1, null, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Irsend(a, 0, 1, null, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Recv(a, 0, 1, null, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Irecv(a, 0, 1, null, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Sendrecv(a, 0, 1, null, 0, 0, a, 0, 1, MPI.INT, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Sendrecv(a, 0, 1, MPI.INT, 0, 0, a, 0, 1, null, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Sendrecv_replace(a, 0, 1, null, 0, 0, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Send_init(a, 0, 1, null, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Recv_init(a, 0, 1, null, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Pack_size(1, null));
            fails(MPI.ERR_TYPE, () -> world.Unpack(new byte[8], 0, a, 0, 1, null));
            fails(MPI.ERR_TYPE, () -> new Status().Get_count(null));
            fails(MPI.ERR_TYPE, () -> new Status().Get_elements(null));
        }

        private static void noRequests() {
            fails(MPI.ERR_ARG, () -> Request.Waitall(null));
            fails(MPI.ERR_ARG, () -> Request.Waitany(null));
            fails(MPI.ERR_ARG, () -> Request.Waitsome(null));
            fails(MPI.ERR_ARG, () -> Request.Testall(null));
            fails(MPI.ERR_ARG, () -> Request.Testany(null));
            fails(MPI.ERR_ARG, () -> Request.Testsome(null));
            fails(MPI.ERR_ARG, () -> Prequest.Startall(null));
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldRefuseArgumentsByClass(World world) throws Exception {
        assertEquals(List.of("done"), world.run(1, Arguments.class));
    }

    /** Rank 0 sends messages of which rank 1 names the base type, or another one. */
    static final class BaseTypes {
        private BaseTypes() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            Datatype column = Datatype.Vector(N, 1, 3, MPI.DOUBLE);
            double[] matrix = new double[3 * N];
            double[] line = new double[N];
            if (world.Rank() == 0) {
                for (int k = 0; k < N; k++) {
                    matrix[3 * k] = k;
                    line[k] = k;
                }
                world.Send(matrix, 0, 1, column, 1, 1);
                world.Send(line, 0, N, MPI.DOUBLE, 1, 1);
                for (int times = 0; times < 4; times++) {
                    world.Send(line, 0, N, MPI.DOUBLE, 1, 2);
                }
                world.Send(new int[] {7}, 0, 1, MPI.INT, 1, 2);
            } else {
                assertStatus(0, 1, N, world.Recv(line, 0, N, MPI.DOUBLE, 0, 1));
                assertEquals(1, world.Recv(matrix, 0, 1, column, 0, 1).count);
                for (int k = 0; k < N; k++) {
                    assertEquals(k, line[k]);
                    assertEquals(k, matrix[3 * k]);
                }
                long[] longs = new long[3 * N];
                fails(MPI.ERR_TYPE, () -> world.Recv(longs, 0, N, MPI.LONG, 0, 2));
                fails(MPI.ERR_TYPE, () -> world.Irecv(longs, 0, N, MPI.LONG, 0, 2).Wait());
                fails(MPI.ERR_TYPE, () -> world.Recv(longs, 0, 1, Datatype.Vector(N, 1, 3, MPI.LONG), 0, 2));
                Object[] objects = new Object[N];
                fails(MPI.ERR_TYPE, () -> world.Recv(objects, 0, N, MPI.OBJECT, 0, 2));
                // Each of these messages is lost, and no array has changed.
                assertArrayEquals(new long[3 * N], longs);
                assertArrayEquals(new Object[N], objects);
                int[] seven = new int[1];
                assertStatus(0, 2, 1, world.Recv(seven, 0, 1, MPI.INT, 0, 2));
                assertEquals(7, seven[0]);
            }
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldMatchBaseTypesAlone(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, BaseTypes.class));
    }

    /** Each call has one array in both directions. */
    static final class OneArray {
        private OneArray() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int other = 1 - world.Rank();
            int[] a = {1, 2, 3, 4, 5, 6};
            world.Sendrecv(a, 0, 4, MPI.INT, other, 1, a, 0, 4, MPI.INT, other, 1);
            assertArrayEquals(new int[] {1, 2, 3, 4, 5, 6}, a);
            // The places overlap.
            world.Sendrecv(a, 0, 4, MPI.INT, other, 1, a, 2, 4, MPI.INT, other, 1);
            assertArrayEquals(new int[] {1, 2, 1, 2, 3, 4}, a);
            Datatype second = Datatype.Vector(3, 1, 2, MPI.INT);
            world.Sendrecv(a, 0, 1, second, other, 1, a, 1, 1, second, other, 1);
            assertArrayEquals(new int[] {1, 1, 1, 1, 3, 3}, a);
            Request sent = world.Isend(a, 4, 2, MPI.INT, other, 1);
            a[4] = 9;
            Request.Waitall(new Request[] {sent, world.Irecv(a, 4, 2, MPI.INT, other, 1)});
            assertArrayEquals(new int[] {1, 1, 1, 1, 3, 3}, a);
            Object[] objects = {"one", "two", "three"};
            world.Sendrecv(objects, 0, 2, MPI.OBJECT, other, 1, objects, 1, 2, MPI.OBJECT, other, 1);
            assertArrayEquals(new Object[] {"one", "one", "two"}, objects);
            byte[] unit = new byte[64];
            int end = world.Pack(new byte[] {5, 6}, 0, 2, MPI.BYTE, unit, 8);
            // A part of the packing unit is packed into itself.
            assertEquals(32, world.Pack(unit, 16, 2, MPI.BYTE, unit, 16));
            world.Unpack(unit, 16, unit, 0, 2, MPI.BYTE);
            assertEquals(24, end);
            assertArrayEquals(new byte[] {5, 6}, new byte[] {unit[0], unit[1]});
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldTakeOneArrayInBothDirections(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, OneArray.class));
    }
}
