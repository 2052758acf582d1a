package mpi;

import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collections;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Cartesian and graph topologies. */
@Timeout(180)
class TopologyTest {
    private static final int RANKS = 5;

    private static int[] dims(int nodes, int... dims) {
        Cartcomm.Dims_create(nodes, dims);
        return dims;
    }

    @Test
    void shouldBalanceDimensions() {
        assertArrayEquals(new int[] {3, 2}, dims(6, 0, 0));
        assertArrayEquals(new int[] {2, 3}, dims(6, 2, 0));
        assertArrayEquals(new int[] {3, 2, 1}, dims(6, 0, 0, 0));
        assertArrayEquals(new int[] {7, 1}, dims(7, 0, 0));
        fails(MPI.ERR_DIMS, () -> dims(7, 2, 0));
        fails(MPI.ERR_DIMS, () -> dims(6, -1, 0));
        fails(MPI.ERR_ARG, () -> Cartcomm.Dims_create(6, null));
    }

    /** A grid of 2 x 2 ranks out of five, the second dimension periodic. */
    static final class Grid {
        private Grid() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            assertEquals(MPI.UNDEFINED, world.Topo_test());
            int me = world.Rank();
            int[] dims = {2, 2};
            boolean[] periods = {false, true};
            fails(MPI.ERR_TOPOLOGY, () -> world.Create_cart(new int[] {2, 3}, periods, false));
            fails(MPI.ERR_TOPOLOGY, () -> world.Create_cart(new int[] {2, 0}, periods, false));
            fails(MPI.ERR_TOPOLOGY, () -> world.Create_cart(dims, new boolean[1], false));
            fails(MPI.ERR_ARG, () -> world.Create_cart(null, periods, false));
            Cartcomm grid = world.Create_cart(dims, periods, false);
            if (me == 4) {
                assertNull(grid);
            } else {
                dims[0] = 9;
                check(grid, me);
            }
            MPI.Finalize();
            System.out.println("done");
        }

        private static void check(Cartcomm grid, int me) {
            assertEquals(MPI.CART, grid.Topo_test());
            assertEquals(4, grid.Size());
            CartParms parms = grid.Get();
            assertArrayEquals(new int[] {2, 2}, parms.dims);
            assertFalse(parms.periods[0]);
            assertTrue(parms.periods[1]);
            assertArrayEquals(new int[] {me / 2, me % 2}, parms.coords);
            parms.dims[0] = 7;
            assertArrayEquals(new int[] {2, 2}, grid.Get().dims);
            assertEquals(me, grid.Rank(new int[] {me / 2, me % 2 - 2}));
            fails(MPI.ERR_ARG, () -> grid.Rank(new int[] {2, 0}));
            fails(MPI.ERR_ARG, () -> grid.Rank(new int[] {0}));
            fails(MPI.ERR_RANK, () -> grid.Coords(4));
            ShiftParms down = grid.Shift(0, 1);
            assertEquals(me < 2 ? MPI.PROC_NULL : me - 2, down.rank_source);
            assertEquals(me < 2 ? me + 2 : MPI.PROC_NULL, down.rank_dest);
            ShiftParms left = grid.Shift(1, -3);
            assertEquals(me ^ 1, left.rank_source);
            assertEquals(me ^ 1, left.rank_dest);
            fails(MPI.ERR_DIMS, () -> grid.Shift(2, 1));
            assertEquals(me < 2 ? me : MPI.UNDEFINED, grid.Map(new int[] {2}, new boolean[1]));
            Cartcomm row = grid.Sub(new boolean[] {false, true});
            assertArrayEquals(new int[] {me / 2 * 2, me / 2 * 2 + 1}, row.Group().members);
            assertArrayEquals(new int[] {2}, row.Get().dims);
            assertTrue(row.Get().periods[0]);
            Cartcomm point = grid.Sub(new boolean[2]);
            assertEquals(1, point.Size());
            assertEquals(0, point.Get().dims.length);
            Cartcomm copy = (Cartcomm) grid.clone();
            assertArrayEquals(new int[] {me / 2, me % 2}, copy.Coords(copy.Rank()));
            int[] got = {-1};
            copy.Send(new int[] {me}, 0, 1, MPI.INT, down.rank_dest, 1);
            copy.Recv(got, 0, 1, MPI.INT, down.rank_source, 1);
            assertEquals(me < 2 ? -1 : me - 2, got[0]);
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldArrangeRanksInAGrid(World world) throws Exception {
        assertEquals(Collections.nCopies(RANKS, "done"), world.run(RANKS, Grid.class));
    }

    /** A graph of four nodes out of five ranks. */
    static final class Graph {
        private Graph() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int[] index = {2, 3, 4, 6};
            int[] edges = {1, 3, 0, 3, 0, 2};
            fails(MPI.ERR_TOPOLOGY, () -> world.Create_graph(index, new int[] {1, 3, 0, 3, 0, 4}, false));
            fails(MPI.ERR_TOPOLOGY, () -> world.Create_graph(new int[6], new int[0], false));
            fails(MPI.ERR_ARG, () -> world.Create_graph(index, null, false));
            Graphcomm graph = world.Create_graph(index, edges, true);
            if (world.Rank() == 4) {
                assertNull(graph);
            } else {
                assertEquals(MPI.GRAPH, graph.Topo_test());
                assertArrayEquals(new int[] {1, 3}, graph.Neighbours(0));
                assertArrayEquals(new int[] {0, 2}, graph.Neighbors(3));
                fails(MPI.ERR_RANK, () -> graph.Neighbours(4));
                graph.Get().index[0] = 99;
                Graphcomm copy = (Graphcomm) graph.clone();
                assertArrayEquals(index, copy.Get().index);
                assertArrayEquals(edges, copy.Get().edges);
                int me = graph.Rank();
                assertEquals(me == 0 ? 0 : MPI.UNDEFINED, graph.Map(new int[] {0}, new int[0]));
            }
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"SHM", "THREADS", "OPENMPI", "MPICH"})
    void shouldArrangeRanksInAGraph(World world) throws Exception {
        assertEquals(Collections.nCopies(RANKS, "done"), world.run(RANKS, Graph.class));
    }
}
