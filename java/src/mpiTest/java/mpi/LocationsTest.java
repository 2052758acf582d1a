package mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.reflect.Array;
import java.util.Arrays;
import java.util.Collections;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** MAXLOC and MINLOC on pairs of each type, over each way to start the ranks, against a model. */
@Timeout(180)
class LocationsTest {
    private static final int[] COUNTS = {0, 1, 7, 300};

    /** A type of pairs, and the distance of an index from its value. */
    private static final class Pairs {
        private final Datatype type;
        private final int distance;

        Pairs(Datatype type, int distance) {
            this.type = type;
            this.distance = distance;
        }

        private boolean isFloating() {
            return type == MPI.FLOAT2 || type == MPI.DOUBLE2;
        }

        private Object array(int pairs, int before) {
            return Elements.array(type, before + pairs * type.Extent());
        }

        private int at(int before, int pair) {
            return before + pair * type.Extent();
        }
    }

    /** Few values, so that many are equal; of floating-point types also NaN and both zeros. */
    private static double value(Pairs pairs, int rank, int k) {
        if (pairs.isFloating() && (rank * 3 + k) % 4 == 0) {
            return Double.NaN;
        }
        double value = (rank * 7 + k * 3) % 3;
        return value == 0 && rank % 2 == 1 ? -0.0 : value;
    }

    /** An index that no other rank has, in another order than that of the ranks. */
    private static double index(int rank, int size) {
        return size - rank + (rank % 2) * 2 * size;
    }

    /** The rank with the best value: a NaN is the worst, and of equal ones the smaller index wins. */
    private static int winner(Pairs pairs, boolean isMax, int k, int ranks, int size) {
        int best = 0;
        for (int rank = 1; rank < ranks; rank++) {
            double a = value(pairs, best, k);
            double b = value(pairs, rank, k);
            boolean isEqual = a == b || Double.isNaN(a) && Double.isNaN(b);
            boolean isBetter = Double.isNaN(a) || (isMax ? b > a : b < a);
            if (isEqual ? index(rank, size) < index(best, size) : isBetter && !Double.isNaN(b)) {
                best = rank;
            }
        }
        return best;
    }

    /** The calls of one rank. */
    static final class Calls {
        private Calls() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm comm = MPI.COMM_WORLD;
            Datatype bytes = Datatype.Contiguous(2, MPI.BYTE);
            Datatype chars = Datatype.Contiguous(2, MPI.CHAR);
            Datatype apart = Datatype.Vector(2, 1, 3, MPI.INT);
            for (Datatype type : new Datatype[] {bytes, chars, apart}) {
                type.Commit();
            }
            Pairs[] all = {new Pairs(MPI.SHORT2, 1), new Pairs(MPI.INT2, 1), new Pairs(MPI.LONG2, 1), new Pairs(MPI.FLOAT2, 1),
                new Pairs(MPI.DOUBLE2, 1), new Pairs(bytes, 1), new Pairs(chars, 1), new Pairs(apart, 3)};
            for (Pairs pairs : all) {
                for (int count : COUNTS) {
                    run(comm, pairs, count, MPI.MAXLOC);
                    run(comm, pairs, count, MPI.MINLOC);
                }
            }
            refuse(comm, new int[1], 1, MPI.INT);
            refuse(comm, new boolean[2], 1, Datatype.Contiguous(2, MPI.BOOLEAN));
            MPI.Finalize();
            System.out.println("done");
        }

        private static void refuse(Intracomm comm, Object array, int count, Datatype type) {
            MPIException refused =
                    assertThrows(MPIException.class, () -> comm.Allreduce(array, 0, array, 0, count, type, MPI.MAXLOC));
            assertEquals(MPI.ERR_OP, refused.getErrorClass(), refused.getMessage());
        }

        private static void run(Intracomm comm, Pairs pairs, int count, Op op) {
            int rank = comm.Rank();
            int size = comm.Size();
            Object own = pairs.array(count, 2);
            for (int k = 0; k < count; k++) {
                Elements.set(own, pairs.at(2, k), value(pairs, rank, k));
                Elements.set(own, pairs.at(2, k) + pairs.distance, index(rank, size));
            }
            Object all = pairs.array(count, 1);
            comm.Allreduce(own, 2, all, 1, count, pairs.type, op);
            check(pairs, op, all, 1, 0, count, size, size);
            Object prefix = pairs.array(count, 0);
            comm.Scan(own, 2, prefix, 0, count, pairs.type, op);
            check(pairs, op, prefix, 0, 0, count, rank + 1, size);
            int root = count % size;
            Object rooted = pairs.array(count, 0);
            comm.Reduce(own, 2, rooted, 0, count, pairs.type, op, root);
            check(pairs, op, rooted, 0, 0, rank == root ? count : 0, size, size);
            int[] counts = new int[size];
            Arrays.fill(counts, count / size);
            counts[0] += count % size;
            Object part = pairs.array(counts[rank], 3);
            comm.Reduce_scatter(own, 2, part, 3, counts, pairs.type, op);
            int first = rank == 0 ? 0 : counts[0] + (rank - 1) * (count / size);
            check(pairs, op, part, 3, first, counts[rank], size, size);
        }

        private static void check(Pairs pairs, Op op, Object array, int before, int first, int count, int ranks, int size) {
            for (int k = 0; k < count; k++) {
                int element = first + k;
                int winner = winner(pairs, op == MPI.MAXLOC, element, ranks, size);
                int at = pairs.at(before, k);
                assertEquals(index(winner, size), Array.getDouble(array, at + pairs.distance),
                        () -> op + " on " + pairs.type + ", index of pair " + element);
                double value = value(pairs, winner, element);
                // The pair is copied as it is, with the sign of its zero.
                assertEquals(pairs.isFloating() ? value : value + 0.0, Array.getDouble(array, at),
                        () -> op + " on " + pairs.type + ", value of pair " + element);
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldFindTheBestValueAndItsIndex(World world) throws Exception {
        for (int ranks : new int[] {1, 3, 5}) {
            assertEquals(Collections.nCopies(ranks, "done"), world.run(ranks, Calls.class));
        }
    }
}
