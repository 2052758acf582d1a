package mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.reflect.Array;
import java.util.Arrays;
import java.util.Collections;
import java.util.Random;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Collective calls with data over each way to start the ranks, against a computation of the test. */
@Timeout(180)
class CollectivesTest {
    private static final int ROUNDS = 60;
    private static final int[] COUNTS = {0, 1, 2, 3, 7, 300, 9_000};
    private static final Datatype[] BASES = {MPI.BYTE, MPI.CHAR, MPI.SHORT, MPI.BOOLEAN, MPI.INT, MPI.LONG, MPI.FLOAT,
        MPI.DOUBLE, MPI.OBJECT};

    /**
     * Makes the same random calls at all ranks. What a rank sends follows from its number and that of the
     * call.
     */
    static final class Moves {
        private final Intracomm comm;
        private final int rank;
        private final int size;
        private final Random random = new Random(7);
        private int call;
        private Datatype base;
        /** Datatypes of the same number of elements in each item, with and without gaps. */
        private Datatype[] shapes;
        private int count;
        private int root;

        private Moves(Intracomm comm) {
            this.comm = comm;
            this.rank = comm.Rank();
            this.size = comm.Size();
        }

        public static void main(String[] args) {
            MPI.Init(args);
            Moves moves = new Moves(MPI.COMM_WORLD);
            for (int round = 0; round < ROUNDS; round++) {
                moves.round(BASES[round % BASES.length]);
            }
            MPI.Finalize();
            System.out.println("done");
        }

        private void round(Datatype type) {
            base = type;
            shapes = new Datatype[] {Datatype.Contiguous(2, base), Datatype.Vector(2, 1, 3, base),
                Datatype.Indexed(new int[] {1, 1}, new int[] {2, 0}, base)};
            count = COUNTS[random.nextInt(type == MPI.OBJECT ? COUNTS.length - 2 : COUNTS.length)] / 2;
            root = random.nextInt(size);
            bcast();
            rooted();
            toAll();
            listed();
        }

        /** Element k of the block that one rank sends to another in this call. */
        private Object value(int from, int to, int k) {
            int number = (from * 31 + to * 17 + k) * 7 + call;
            switch (base.baseType) {
                case 1:
                    return (byte) number;
                case 2:
                    return (char) number;
                case 3:
                    return (short) number;
                case 4:
                    return (number & 1) != 0;
                case 5:
                    return number;
                case 6:
                    return (long) number << 20;
                case 7:
                    return (float) number;
                case 8:
                    return (double) number;
                default:
                    return number % 5 == 0 ? null : "object " + number;
            }
        }

        private Datatype shape() {
            return shapes[random.nextInt(shapes.length)];
        }

        private Object array(int items, Datatype shape) {
            Class<?> component = base == MPI.OBJECT ? String.class : base.arrayOf(null, 0).getClass().getComponentType();
            return Array.newInstance(component, 3 + items * shape.Extent() + 4);
        }

        /** Puts a block into an array, or compares it. */
        private void block(Object array, int off, int items, Datatype shape, int from, int to, boolean isCheck) {
            // The elements of an item, written down here once more.
            int[] at = shape == shapes[0] ? new int[] {0, 1} : shape == shapes[1] ? new int[] {0, 3} : new int[] {2, 0};
            for (int item = 0; item < items; item++) {
                for (int k = 0; k < 2; k++) {
                    int index = off + item * shape.Extent() + at[k];
                    Object expected = value(from, to, 2 * item + k);
                    if (isCheck) {
                        assertEquals(expected, Array.get(array, index), () -> "call " + call + ", " + base + ", rank " + rank);
                    } else {
                        Array.set(array, index, expected);
                    }
                }
            }
        }

        private void bcast() {
            call++;
            Datatype shape = shape();
            Object array = array(count, shape);
            if (rank == root) {
                block(array, 2, count, shape, root, 0, false);
            }
            comm.Bcast(array, 2, count, shape, root);
            block(array, 2, count, shape, root, 0, true);
        }

        private void rooted() {
            Datatype one = shape();
            Datatype many = shape();
            call++;
            Object own = array(count, one);
            block(own, 1, count, one, rank, root, false);
            Object all = rank == root ? array(count * size, many) : null;
            comm.Gather(own, 1, count, one, all, 3, count, rank == root ? many : null, root);
            for (int from = 0; from < size && rank == root; from++) {
                block(all, 3 + from * count * many.Extent(), count, many, from, root, true);
            }
            call++;
            for (int to = 0; to < size && rank == root; to++) {
                block(all, 3 + to * count * many.Extent(), count, many, root, to, false);
            }
            comm.Scatter(all, 3, count, rank == root ? many : null, own, 1, count, one, root);
            block(own, 1, count, one, root, rank, true);
        }

        private void toAll() {
            Datatype one = shape();
            Datatype many = shape();
            call++;
            Object own = array(count, one);
            block(own, 1, count, one, rank, 0, false);
            Object all = array(count * size, many);
            comm.Allgather(own, 1, count, one, all, 0, count, many);
            for (int from = 0; from < size; from++) {
                block(all, from * count * many.Extent(), count, many, from, 0, true);
            }
            call++;
            for (int to = 0; to < size; to++) {
                block(all, to * count * many.Extent(), count, many, rank, to, false);
            }
            // The same array on both sides.
            comm.Alltoall(all, 0, count, many, all, 0, count, many);
            for (int from = 0; from < size; from++) {
                block(all, from * count * many.Extent(), count, many, from, rank, true);
            }
        }

        /** Items of a block in a call with a count for each rank. */
        private int length(int from, int to) {
            return (from + 2 * to + call) % 3 * (count / 2);
        }

        private void listed() {
            Datatype one = shape();
            Datatype many = shape();
            int slot = count + 1;
            int[] counts = new int[size + 2];
            int[] displs = new int[size + 2];
            for (int r = 0; r < size; r++) {
                displs[r] = (size - 1 - r) * slot;
            }
            call++;
            for (int from = 0; from < size; from++) {
                counts[from] = length(from, 0);
            }
            Object own = array(slot, one);
            block(own, 1, length(rank, 0), one, rank, 0, false);
            Object all = array(slot * size, many);
            if (random.nextBoolean()) {
                comm.Allgatherv(own, 1, length(rank, 0), one, all, 2, counts, displs, many);
            } else {
                comm.Gatherv(own, 1, length(rank, 0), one, all, 2, counts, displs, many, root);
                all = rank == root ? all : null;
            }
            for (int from = 0; from < size && all != null; from++) {
                block(all, 2 + displs[from] * many.Extent(), counts[from], many, from, 0, true);
            }
            call++;
            all = array(slot * size, many);
            for (int to = 0; to < size; to++) {
                counts[to] = length(root, to);
                block(all, 2 + displs[to] * many.Extent(), counts[to], many, root, to, false);
            }
            comm.Scatterv(all, 2, counts, displs, many, own, 0, length(root, rank), one, root);
            block(own, 0, length(root, rank), one, root, rank, true);
            call++;
            Object received = array(slot * size, one);
            int[] arriving = new int[size];
            for (int r = 0; r < size; r++) {
                counts[r] = length(rank, r);
                arriving[r] = length(r, rank);
                block(all, 2 + displs[r] * many.Extent(), counts[r], many, rank, r, false);
            }
            comm.Alltoallv(all, 2, counts, displs, many, received, 0, arriving, displs, one);
            for (int from = 0; from < size; from++) {
                block(received, displs[from] * one.Extent(), arriving[from], one, from, rank, true);
            }
        }
    }

    /** A root that sends fewer elements than the other rank has room for. */
    static final class FewerElements {
        private FewerElements() {}

        public static void main(String[] args) {
            MPI.Init(args);
            int rank = MPI.COMM_WORLD.Rank();
            for (int sent : new int[] {0, 3, 100, 2_000}) {
                int room = 2 * sent + 1;
                double[] array = new double[room];
                Arrays.fill(array, rank);
                MPI.COMM_WORLD.Bcast(array, 0, rank == 1 ? sent : room, MPI.DOUBLE, 1);
                for (int k = 0; k < room; k++) {
                    assertEquals(k < sent ? 1 : rank, array[k], "element " + k + " of " + room);
                }
            }
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldKeepElementsBehindAShorterBroadcast(World world) throws Exception {
        assertEquals(Collections.nCopies(2, "done"), world.run(2, FewerElements.class));
    }

    @ParameterizedTest
    @EnumSource
    void shouldMoveEachBlockToItsPlace(World world) throws Exception {
        for (int ranks : new int[] {1, 3, 4}) {
            assertEquals(Collections.nCopies(ranks, "done"), world.run(ranks, Moves.class));
        }
    }
}
