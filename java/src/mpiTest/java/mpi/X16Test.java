package mpi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Collections;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Defect X16 of MPJ Express: a function of the program gets arrays of another type than the program's, fails
 * for BOOLEAN, and combines ranks in any order although it does not commute.
 */
@Timeout(120)
class X16Test {
    private static final int RANKS = 4;

    /** The calls of one rank. */
    static final class Calls {
        private Calls() {}

        public static void main(String[] args) throws Exception {
            MPI.Init(args);
            run(MPI.COMM_WORLD, MPI.COMM_WORLD.Rank());
            MPI.Finalize();
            System.out.println("done");
        }

        /** Appends the numbers of the higher ranks to those of the lower ones. */
        private static final class Append extends User_function {
            @Override
            public void Call(Object in, int inoffset, Object inout, int inoutoffset, int count, Datatype datatype) {
                long[] lower = (long[]) in;
                long[] higher = (long[]) inout;
                for (int i = 0; i < count; i++) {
                    long digits = (long) Math.pow(10, Long.toString(higher[inoutoffset + i]).length());
                    higher[inoutoffset + i] += lower[inoffset + i] * digits;
                }
            }
        }

        /** Whether exactly one operand is true. */
        private static final class OneOf extends User_function {
            @Override
            public void Call(Object in, int inoffset, Object inout, int inoutoffset, int count, Datatype datatype) {
                for (int i = 0; i < count; i++) {
                    ((boolean[]) inout)[inoutoffset + i] ^= ((boolean[]) in)[inoffset + i];
                }
            }
        }

        private static void run(Intracomm world, int rank) {
            long[] joined = new long[1];
            world.Allreduce(new long[] {rank + 1}, 0, joined, 0, 1, MPI.LONG, new Op(new Append(), false));
            assertArrayEquals(new long[] {1234}, joined);
            boolean[] odd = new boolean[2];
            world.Allreduce(new boolean[] {true, rank < 3}, 0, odd, 0, 2, MPI.BOOLEAN, new Op(new OneOf(), true));
            assertArrayEquals(new boolean[] {false, true}, odd);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"SHM", "OPENMPI"})
    void shouldCombineInRankOrderAndInArraysOfTheProgram(World world) throws Exception {
        assertEquals(Collections.nCopies(RANKS, "done"), world.run(RANKS, Calls.class));
    }
}
