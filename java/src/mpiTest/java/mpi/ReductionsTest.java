package mpi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Array;
import java.util.Arrays;
import java.util.Collections;
import java.util.function.LongBinaryOperator;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Reductions over each way to start the ranks, against a computation of the test. */
@Timeout(180)
class ReductionsTest {
    private static final int[] COUNTS = {0, 1, 3, 130, 5000};

    /** A predefined operation on integers. */
    private static final class Case {
        private final Op op;
        private final LongBinaryOperator model;

        Case(Op op, LongBinaryOperator model) {
            this.op = op;
            this.model = model;
        }
    }

    private static final Case[] CASES = {
        new Case(MPI.MAX, Math::max), new Case(MPI.MIN, Math::min), new Case(MPI.SUM, Long::sum),
        new Case(MPI.PROD, (a, b) -> a * b), new Case(MPI.LAND, (a, b) -> a != 0 && b != 0 ? 1 : 0),
        new Case(MPI.LOR, (a, b) -> a != 0 || b != 0 ? 1 : 0), new Case(MPI.LXOR, (a, b) -> (a != 0) != (b != 0) ? 1 : 0),
        new Case(MPI.BAND, (a, b) -> a & b), new Case(MPI.BOR, (a, b) -> a | b), new Case(MPI.BXOR, (a, b) -> a ^ b),
    };

    /** Vectors of a rank. */
    private static long value(int rank, int k) {
        return (rank * 7L + k * 3L) % 11 - 3;
    }

    private static final Datatype[] TYPES = {MPI.BYTE, MPI.SHORT, MPI.INT, MPI.LONG, MPI.FLOAT, MPI.DOUBLE};

    /** All predefined operations on integers, with different offsets, in all calls. */
    static final class Predefined {
        private Predefined() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm comm = MPI.COMM_WORLD;
            int size = comm.Size();
            int rank = comm.Rank();
            for (Case c : CASES) {
                for (Datatype type : TYPES) {
                    boolean isFloating = type == MPI.FLOAT || type == MPI.DOUBLE;
                    if (isFloating && c.op.opCode > MPI.PROD.opCode) {
                        int code = assertThrows(MPIException.class,
                                () -> comm.Allreduce(Elements.array(type, 1), 0, Elements.array(type, 1), 0, 1, type, c.op)).getErrorClass();
                        assertEquals(MPI.ERR_OP, code);
                        continue;
                    }
                    for (int count : COUNTS) {
                        calls(comm, c, type, count, (count + c.op.opCode) % size, rank, size);
                    }
                }
            }
            MPI.Finalize();
            System.out.println("done");
        }

        private static long model(Case c, int ranks, int k) {
            long result = value(0, k);
            for (int rank = 1; rank < ranks; rank++) {
                result = c.model.applyAsLong(result, value(rank, k));
            }
            return result;
        }

        private static void calls(Intracomm comm, Case c, Datatype type, int count, int root, int rank, int size) {
            Object own = Elements.array(type, count + 2);
            for (int k = 0; k < count; k++) {
                Elements.set(own, 2 + k, value(rank, k));
            }
            Object all = Elements.array(type, count + 1);
            comm.Allreduce(own, 2, all, 1, count, type, c.op);
            check(c, type, all, 1, 0, count, size);
            Object prefix = Elements.array(type, count);
            comm.Scan(own, 2, prefix, 0, count, type, c.op);
            check(c, type, prefix, 0, 0, count, rank + 1);
            Object rooted = Elements.array(type, count);
            comm.Reduce(own, 2, rank == root ? rooted : null, 0, count, type, c.op, root);
            if (rank == root) {
                check(c, type, rooted, 0, 0, count, size);
            }
            int[] counts = new int[size];
            Arrays.fill(counts, count / size);
            counts[size - 1] += count % size;
            Object part = Elements.array(type, count + 3);
            comm.Reduce_scatter(own, 2, part, 3, counts, type, c.op);
            check(c, type, part, 3, rank * (count / size), counts[rank], size);
            // In place, with blocks of one length. The elements behind the own block stay.
            int each = count / size;
            Arrays.fill(counts, each);
            Object inPlace = Elements.array(type, count + 2);
            System.arraycopy(own, 0, inPlace, 0, count + 2);
            comm.Reduce_scatter(inPlace, 2, inPlace, 2, counts, type, c.op);
            check(c, type, inPlace, 2, rank * each, each, size);
            for (int k = each; k < count; k++) {
                assertEquals(Array.get(own, 2 + k), Array.get(inPlace, 2 + k));
            }
            // In place.
            comm.Allreduce(own, 2, own, 2, count, type, c.op);
            check(c, type, own, 2, 0, count, size);
        }

        private static void check(Case c, Datatype type, Object array, int off, int first, int count, int ranks) {
            for (int k = 0; k < count; k++) {
                int element = k;
                double expected = ((Number) Elements.of(array, model(c, ranks, first + k))).doubleValue();
                // The sum makes a positive zero of a negative one.
                assertEquals(expected, Array.getDouble(array, off + k) + 0.0,
                        () -> c.op + " of " + count + " x " + type + ", element " + element);
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldCombineByEachPredefinedOperation(World world) throws Exception {
        for (int ranks : new int[] {1, 3, 4}) {
            assertEquals(Collections.nCopies(ranks, "done"), world.run(ranks, Predefined.class));
        }
    }

    /** An associative function that is not commutative: affine maps, as pairs of factor and summand. */
    static final class Affine extends User_function {
        @Override
        public void Call(Object invec, int inoffset, Object inoutvec, int inoutoffset, int count, Datatype datatype) {
            long[] in = (long[]) invec;
            long[] inout = (long[]) inoutvec;
            int[] places = datatype.places(inoutoffset, count, inout.length);
            for (int k = 0; k < count * datatype.Size(); k += 2) {
                int factor = places == null ? inoutoffset + k : places[k];
                int summand = places == null ? inoutoffset + k + 1 : places[k + 1];
                int shift = inoffset - inoutoffset;
                inout[summand] += in[summand + shift] * inout[factor];
                inout[factor] *= in[factor + shift];
            }
        }
    }

    /** Concatenates strings. */
    static final class Concatenation extends User_function {
        @Override
        public void Call(Object invec, int inoffset, Object inoutvec, int inoutoffset, int count, Datatype datatype) {
            String[] in = (String[]) invec;
            Object[] inout = (Object[]) inoutvec;
            for (int k = 0; k < count; k++) {
                inout[inoutoffset + k] = in[inoffset + k] + inout[inoutoffset + k];
            }
        }
    }

    /** Functions of the program, on elements with and without gaps and on objects. */
    static final class Functions {
        private Functions() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm comm = MPI.COMM_WORLD;
            int size = comm.Size();
            int rank = comm.Rank();
            Op affine = new Op(new Affine(), false);
            Datatype gaps = Datatype.Vector(2, 1, 3, MPI.LONG);
            for (Datatype type : new Datatype[] {MPI.LONG2, gaps}) {
                int second = type == gaps ? 3 : 1;
                for (int count : new int[] {0, 1, 200}) {
                    long[] own = new long[count * type.Extent() + 1];
                    for (int k = 0; k < count; k++) {
                        own[1 + k * type.Extent()] = rank + 2;
                        own[1 + k * type.Extent() + second] = rank * 5L + k;
                    }
                    for (int root = 0; root < size; root++) {
                        long[] result = new long[own.length];
                        comm.Reduce(own, 1, result, 1, count, type, affine, root);
                        check(result, type, second, rank == root ? count : 0, size);
                    }
                    long[] result = new long[own.length];
                    comm.Allreduce(own, 1, result, 1, count, type, affine);
                    check(result, type, second, count, size);
                    comm.Scan(own, 1, result, 1, count, type, affine);
                    check(result, type, second, count, rank + 1);
                }
            }
            String[] words = {"a" + rank, "b" + rank};
            String[] joined = new String[2];
            comm.Allreduce(words, 0, joined, 0, 2, MPI.OBJECT, new Op(new Concatenation(), false));
            StringBuilder a = new StringBuilder();
            StringBuilder b = new StringBuilder();
            for (int r = 0; r < size; r++) {
                a.append('a').append(r);
                b.append('b').append(r);
            }
            assertArrayEquals(new String[] {a.toString(), b.toString()}, joined);
            assertArrayEquals(new String[] {"a" + rank, "b" + rank}, words);
            MPI.Finalize();
            System.out.println("done");
        }

        private static void check(long[] result, Datatype type, int second, int count, int ranks) {
            for (int k = 0; k < count; k++) {
                long factor = 2;
                long summand = k;
                for (int r = 1; r < ranks; r++) {
                    // The map of the lower ranks stands on the left.
                    long f = r + 2;
                    long s = r * 5L + k;
                    summand = s + summand * f;
                    factor = factor * f;
                }
                assertEquals(factor, result[1 + k * type.Extent()], "factor " + k);
                assertEquals(summand, result[1 + k * type.Extent() + second], "summand " + k);
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldCombineByFunctionsInRankOrder(World world) throws Exception {
        for (int ranks : new int[] {1, 3, 5}) {
            assertEquals(Collections.nCopies(ranks, "done"), world.run(ranks, Functions.class));
        }
    }

    /** Throws at rank 2, which combines its vector with that of rank 3. */
    static final class Throwing extends User_function {
        @Override
        public void Call(Object invec, int inoffset, Object inoutvec, int inoutoffset, int count, Datatype datatype) {
            if (MPI.COMM_WORLD.Rank() == 2) {
                throw new IllegalStateException("no sum today");
            }
        }
    }

    /** A function that throws ends the reduction at all ranks; the next one works. */
    static final class Failing {
        private Failing() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm comm = MPI.COMM_WORLD;
            int rank = comm.Rank();
            int[] untouched = {-1, -1};
            MPIException failed = assertThrows(MPIException.class, () -> comm.Allreduce(new int[2], 0, untouched, 0, 2, MPI.INT,
                    new Op(new Throwing(), true)));
            assertArrayEquals(new int[] {-1, -1}, untouched);
            if (rank == 2) {
                assertTrue(failed.getCause() instanceof IllegalStateException, failed.toString());
            } else {
                assertEquals(MPI.ERR_OP, failed.getErrorClass());
                assertTrue(failed.getMessage().contains("rank 2"), failed.getMessage());
            }
            int[] sum = new int[1];
            comm.Allreduce(new int[] {rank}, 0, sum, 0, 1, MPI.INT, MPI.SUM);
            assertEquals(comm.Size() * (comm.Size() - 1) / 2, sum[0]);
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldFailAtAllRanksIfAFunctionThrows(World world) throws Exception {
        assertEquals(Collections.nCopies(4, "done"), world.run(4, Failing.class));
    }
}
