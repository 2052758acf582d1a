package mpi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Defect X27 of MPJ Express: Get returns the arrays of the topology itself, and Shift changes them. */
@Timeout(180)
class TopologyCopiesTest {
    private static final int TIMES = 20_000;

    /** Changes what Get returns, and shifts in two threads. */
    static final class Copies {
        private Copies() {}

        public static void main(String[] args) throws Exception {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            Cartcomm ring = world.Create_cart(new int[] {2}, new boolean[] {true}, false);
            CartParms cart = ring.Get();
            cart.dims[0] = 9;
            cart.coords[0] = 9;
            cart.periods[0] = false;
            int other = 1 - ring.Rank();
            assertEquals(other, ring.Shift(0, 1).rank_dest);
            assertArrayEquals(new int[] {2}, ring.Get().dims);
            assertArrayEquals(new int[] {ring.Rank()}, ring.Get().coords);
            Graphcomm graph = world.Create_graph(new int[] {1, 2}, new int[] {1, 0}, false);
            graph.Get().edges[0] = 9;
            graph.Get().index[0] = 9;
            assertArrayEquals(new int[] {1}, graph.Neighbours(0));
            ExecutorService threads = Executors.newFixedThreadPool(2);
            Future<Long> even = threads.submit(() -> count(ring, 2, ring.Rank()));
            Future<Long> odd = threads.submit(() -> count(ring, 1, other));
            assertEquals(TIMES, even.get());
            assertEquals(TIMES, odd.get());
            threads.shutdown();
            MPI.Finalize();
            System.out.println("done");
        }

        /** Counts the shifts that lead to a rank, and back to their source. */
        private static long count(Cartcomm ring, int disp, int expected) {
            return IntStream.range(0, TIMES).mapToObj(k -> ring.Shift(0, disp))
                    .filter(shift -> shift.rank_dest == expected && shift.rank_source == expected)
                    .count();
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"THREADS", "SHM"})
    void shouldKeepItsArraysToItself(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Copies.class));
    }
}
