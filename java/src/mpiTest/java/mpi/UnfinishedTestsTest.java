package mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests of requests that are not done (defect X5 of MPJ Express: each sleeps for half a second). */
@Timeout(180)
class UnfinishedTestsTest {
    /** With a sleep of half a second each, they would take hours. */
    private static final int TIMES = 20_000;

    /** Rank 0 tests for messages that rank 1 sends only after its answer. */
    static final class Many {
        private Many() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int[] a = new int[3];
            if (world.Rank() == 0) {
                Request[] requests = {world.Irecv(a, 0, 1, MPI.INT, 1, 1), world.Irecv(a, 1, 1, MPI.INT, 1, 2)};
                for (int i = 0; i < TIMES; i++) {
                    assertNull(Request.Testall(requests));
                    assertNull(Request.Testany(requests));
                    assertEquals(0, Request.Testsome(requests).length);
                    assertNull(requests[0].Test());
                }
                world.Send(a, 2, 1, MPI.INT, 1, 3);
                Request.Waitall(requests);
                assertEquals(12, a[0] + a[1]);
            } else {
                world.Recv(a, 2, 1, MPI.INT, 0, 3);
                world.Send(new int[] {5}, 0, 1, MPI.INT, 0, 1);
                world.Send(new int[] {7}, 0, 1, MPI.INT, 0, 2);
            }
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldReturnWithoutASleep(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Many.class));
    }
}
