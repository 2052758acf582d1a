package mpi;

import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Requests and exchanges of derived datatypes. */
@Timeout(180)
class DerivedRequestsTest {
    private static final int N = 100;

    /** Two ranks exchange columns of matrices of N x N elements. */
    static final class Columns {
        private Columns() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int other = 1 - world.Rank();
            Datatype column = Datatype.Vector(N, 1, N, MPI.DOUBLE);
            double[] mine = new double[N * N];
            double[] theirs = new double[N * N];
            double[] line = new double[N];
            for (int i = 0; i < N; i++) {
                mine[i * N + 2] = 100 * world.Rank() + i;
                line[i] = 100 * other + i;
            }
            Request[] both = {world.Irecv(theirs, 5, 1, column, other, 1), world.Issend(mine, 2, 1, column, other, 1)};
            Status status = Request.Waitall(both)[0];
            assertEquals(1, status.count);
            assertEquals(N, status.Get_count(MPI.DOUBLE));
            assertArrayEquals(line, column(theirs, 5));
            // As a column to a line, and as a line to a column.
            double[] got = new double[N];
            status = world.Sendrecv(mine, 2, 1, column, other, 2, got, 0, N, MPI.DOUBLE, other, 2);
            assertEquals(N, status.count);
            assertArrayEquals(line, got);
            Prequest send = world.Send_init(got, 0, N, MPI.DOUBLE, other, 3);
            Prequest receive = world.Recv_init(theirs, 7, 1, column, MPI.ANY_SOURCE, MPI.ANY_TAG);
            Prequest.Startall(new Prequest[] {receive, send});
            assertEquals(1, Request.Waitany(new Request[] {null, receive}).index);
            send.Wait();
            assertArrayEquals(column(mine, 2), column(theirs, 7));
            world.Sendrecv_replace(mine, 2, 1, column, other, 4, other, 4);
            assertArrayEquals(line, column(mine, 2));
            assertTrue(Arrays.stream(column(mine, 3)).allMatch(element -> element == 0));
            fails(MPI.ERR_BUFFER, () -> world.Irecv(theirs, N, 1, column, other, 5));
            MPI.Finalize();
            System.out.println("done");
        }

        private static double[] column(double[] matrix, int at) {
            double[] column = new double[N];
            for (int i = 0; i < N; i++) {
                column[i] = matrix[i * N + at];
            }
            return column;
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldMoveColumnsByRequestsAndExchanges(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Columns.class));
    }
}
