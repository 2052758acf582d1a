package mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Messages that are shorter than their receives (defect O1 of Open MPI's bindings: the rest of the array is
 * overwritten).
 */
@Timeout(180)
class ShortMessageTest {
    private static final int[] SENT = {0, 1, 3, 129, 5000, 50_000};
    private static final int ROOM = 150_001;
    private static final int FIRST = 2;

    /** Rank 0 sends; rank 1 receives into a longer part of an array in each way. */
    static final class Ways {
        private Ways() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            Datatype gaps = Datatype.Vector(3, 1, 2, MPI.INT);
            int[] position = new int[ROOM];
            for (int way = 0; way < 4; way++) {
                for (int n : SENT) {
                    if (world.Rank() == 0) {
                        int[] data = new int[n];
                        Arrays.setAll(data, i -> i + 1);
                        world.Send(data, 0, n, MPI.INT, 1, way);
                        continue;
                    }
                    int[] a = new int[ROOM];
                    Arrays.fill(a, -1);
                    int elements = receive(world, way, a, gaps);
                    assertEquals(n, elements);
                    // Items of three elements at distances 0, 2 and 4 follow each other at a distance of 5.
                    Arrays.setAll(position, i -> way(i, gaps));
                    check(a, n, way % 2 == 0 ? null : position);
                }
            }
            MPI.Finalize();
            System.out.println("done");
        }

        private static int way(int element, Datatype gaps) {
            return element / 3 * gaps.Extent() + element % 3 * 2;
        }

        private static int receive(Intracomm world, int way, int[] a, Datatype gaps) {
            int room = 60_000;
            switch (way) {
                case 0:
                    return world.Recv(a, FIRST, room, MPI.INT, 0, way).numEls;
                case 1:
                    return world.Recv(a, FIRST, room / 3, gaps, MPI.ANY_SOURCE, way).numEls;
                case 2:
                    return world.Irecv(a, FIRST, room, MPI.INT, 0, way).Wait().numEls;
                default:
                    return Request.Waitall(new Request[] {world.Irecv(a, FIRST, room / 3, gaps, 0, way)})[0].numEls;
            }
        }

        /** Checks each element. {@code position} has those of the message's elements; null: in order. */
        private static void check(int[] a, int n, int[] position) {
            int[] expected = new int[a.length];
            Arrays.fill(expected, -1);
            for (int i = 0; i < n; i++) {
                expected[FIRST + (position == null ? i : position[i])] = i + 1;
            }
            assertEquals(-1, Arrays.mismatch(expected, a));
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldLeaveTheElementsBehindThem(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Ways.class));
    }
}
